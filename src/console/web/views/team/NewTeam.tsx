/** Making a team. The person who makes it works in it at once. */
import { useQueryClient } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { useState } from "react"
import { api, resultOf } from "../../app/Client.ts"
import { switchTo } from "../../app/Switching.ts"
import { Button } from "../../parts/Button.tsx"
import { Dialog, DialogActions } from "../../parts/Dialog.tsx"
import { FormOf, TextField } from "../../parts/Fields.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { texts } from "../../texts.ts"
import { teamTexts } from "../../texts/team.ts"
import { useChange } from "./asking.ts"

export const NewTeam = ({ onClose }: { readonly onClose: () => void }) => {
  const [name, setName] = useState("")
  const queries = useQueryClient()
  const navigate = useNavigate()
  const make = useChange(
    async (body: { readonly name: string }) => {
      const made = await resultOf(api.POST("/v1/tenants", { body }))
      // Before the view of the other tenant takes this one's place.
      await navigate({ to: "/team", search: {}, replace: true })
      await switchTo(made.id, queries)
      return made
    },
    (made) => toast(teamTexts.made(made.name))
  )
  return (
    <Dialog title={teamTexts.make} isOpen onClose={onClose}>
      <FormOf
        onSubmit={() => make.mutate({ name: name.trim() })}
        error={make.error}
        actions={
          <DialogActions>
            <Button onPress={onClose}>{texts.app.cancel}</Button>
            <Button kind="primary" type="submit" isPending={make.isPending}>
              {teamTexts.makeDo}
            </Button>
          </DialogActions>
        }
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
      </FormOf>
    </Dialog>
  )
}
