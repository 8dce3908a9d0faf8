/** Renders its content for signed-in users. Redirects all others to the sign-in page, which returns them to this page afterwards. */
import { useNavigate, useRouter } from "@tanstack/react-router"
import { useEffect } from "react"
import type { ReactNode } from "react"
import { Failed, Loading } from "../parts/States.tsx"
import { texts } from "../texts.ts"
import { personSession } from "./PersonSession.ts"
import { useSession } from "./Session.ts"

export const Gate = ({ children }: { readonly children: ReactNode }) => {
  const state = useSession(personSession)
  const navigate = useNavigate()
  const router = useRouter()
  useEffect(() => {
    if (state.kind === "unknown") void personSession.renew()
    if (state.kind !== "none") return
    // The server's sign-in expects the path without a leading slash.
    const to = router.state.location.href.replace(/^\//, "")
    void navigate({ to: "/sign-in", search: to === "" ? {} : { to }, replace: true })
  }, [state.kind, navigate, router])
  switch (state.kind) {
    case "open":
      return children
    case "unreachable":
      return (
        <main className="shell-alone">
          <Failed error={state.error} title={texts.failed.reached} retry={() => void personSession.renew()} />
        </main>
      )
    default:
      return (
        <main className="shell-alone">
          <Loading lines={3} />
        </main>
      )
  }
}
