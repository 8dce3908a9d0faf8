/** The form that creates a team and switches to it. */
import { useQueryClient } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { useState } from "react"
import { api, resultOf } from "../../app/Client.ts"
import { switchTo } from "../../app/Switching.ts"
import { FormDialog } from "../../parts/FormDialog.tsx"
import { TextField } from "../../parts/Fields.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { teamTexts } from "../../texts/team.ts"
import { useChange } from "./asking.ts"

export const NewTeam = ({ onClose }: { readonly onClose: () => void }) => {
  const [name, setName] = useState("")
  const queries = useQueryClient()
  const navigate = useNavigate()
  const make = useChange(
    async (body: { readonly name: string }) => {
      const made = await resultOf(api.POST("/v1/tenants", { body }))
      // Navigate first, because switching tenants replaces this view.
      await navigate({ to: "/team", search: {}, replace: true })
      await switchTo(made.id, queries)
      return made
    },
    (made) => toast(teamTexts.made(made.name))
  )
  return (
    <FormDialog
      title={teamTexts.make}
      action={teamTexts.makeDo}
      error={make.error}
      isPending={make.isPending}
      onSubmit={() => make.mutate({ name: name.trim() })}
      onClose={onClose}
    >
      <p className="quiet">{teamTexts.makeText}</p>
      <TextField
        name="name"
        label={teamTexts.name}
        help={teamTexts.nameHelp}
        value={name}
        onChange={setName}
        isRequired
        autoFocus
      />
    </FormDialog>
  )
}
