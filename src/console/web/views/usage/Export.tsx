/** Downloads the window's charges as a file. Renders nothing for members, who are not allowed to do this. */
import { useMutation } from "@tanstack/react-query"
import { Download } from "lucide-react"
import { useMembership } from "../../app/Asking.ts"
import { api, responseBody, tenantId } from "../../app/Client.ts"
import { Button } from "../../parts/Button.tsx"
import { advice } from "../../parts/States.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { texts } from "../../texts.ts"
import { dayOf } from "./Window.ts"
import type { Span } from "./Window.ts"

const formats = ["csv", "focus"] as const
type Format = (typeof formats)[number]

const save = (file: Blob, name: string): void => {
  const url = URL.createObjectURL(file)
  const link = document.createElement("a")
  link.href = url
  link.download = name
  link.click()
  // Revoke the URL once the browser has certainly opened it.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}

export const ExportButtons = ({ span }: { readonly span: Span }) => {
  const membership = useMembership()
  const download = useMutation({
    mutationFn: async (format: Format) => {
      const file: Blob = await responseBody(
        api.GET("/v1/tenants/{tenant_id}/billing/export", {
          params: { path: { tenant_id: tenantId() }, query: { format, from: span.start, to: span.end } },
          parseAs: "blob"
        })
      )
      save(file, `${texts.usage.exportFile[format]}-${dayOf(span.start)}.csv`)
    },
    onError: (error) => toast(advice(error), "bad")
  })
  if (membership === undefined || membership.role === "member") return null
  return formats.map((format) => (
    <Button
      key={format}
      icon={Download}
      isPending={download.isPending && download.variables === format}
      isDisabled={download.isPending}
      aria-label={texts.usage.exportAs[format]}
      onPress={() => download.mutate(format)}
    >
      {texts.usage.exportShort[format]}
    </Button>
  ))
}
