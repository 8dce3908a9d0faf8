/** The user's passkeys, with forms to add and delete them. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { Plus, Trash2 } from "lucide-react"
import { useState } from "react"
import { api, resultOf } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { useProviders } from "../../app/Providers.ts"
import { createPasskey, hasPasskeys, isDismissed, isKnown } from "../../app/WebAuthn.ts"
import { Button } from "../../parts/Button.tsx"
import { Confirm, Dialog, DialogActions } from "../../parts/Dialog.tsx"
import { FormOf, TextField } from "../../parts/Fields.tsx"
import { Section } from "../../parts/Page.tsx"
import { Answer } from "../../parts/States.tsx"
import { Table } from "../../parts/Table.tsx"
import type { Column } from "../../parts/Table.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { When } from "../../parts/When.tsx"
import { texts } from "../../texts.ts"
import { accountTexts } from "../../texts/account.ts"

type Passkey = Schemas["Passkey"]

const key = ["passkeys"]

const usePasskeys = () =>
  useQuery({ queryKey: key, queryFn: async () => (await resultOf(api.GET("/v1/me/passkeys"))).passkeys })

/** Adds a passkey. Returns a reason if the user dismissed the browser's dialog or the device already has a passkey. Rethrows all other errors. */
const addPasskey = async (name: string): Promise<string | undefined> => {
  const options = await resultOf(api.POST("/v1/me/passkeys/options"))
  try {
    const credential = await createPasskey(options)
    await resultOf(api.POST("/v1/me/passkeys", { body: { name, credential } }))
    return undefined
  } catch (error) {
    if (isKnown(error)) return accountTexts.known
    if (isDismissed(error)) return accountTexts.dismissed
    throw error
  }
}

const Add = ({ onClose }: { readonly onClose: () => void }) => {
  const [name, setName] = useState("")
  const queries = useQueryClient()
  const add = useMutation({
    mutationFn: addPasskey,
    onSuccess: async (refusal, name) => {
      if (refusal !== undefined) return
      await queries.invalidateQueries({ queryKey: key })
      toast(accountTexts.added(name))
      onClose()
    }
  })
  return (
    <Dialog title={accountTexts.add} isOpen onClose={onClose}>
      <FormOf
        onSubmit={() => add.mutate(name.trim())}
        error={add.error}
        actions={
          <DialogActions>
            <Button onPress={onClose}>{texts.app.cancel}</Button>
            <Button kind="primary" type="submit" isPending={add.isPending}>
              {accountTexts.add}
            </Button>
          </DialogActions>
        }
      >
        <TextField
          name="name"
          label={accountTexts.addName}
          help={accountTexts.addHelp}
          value={name}
          onChange={setName}
          maxLength={100}
          isRequired
          autoFocus
        />
        {add.data === undefined ? null : <p role="alert">{add.data}</p>}
      </FormOf>
    </Dialog>
  )
}

const Remove = ({ of, onClose }: { readonly of: Passkey; readonly onClose: () => void }) => {
  const queries = useQueryClient()
  const remove = useMutation({
    mutationFn: () => resultOf(api.DELETE("/v1/me/passkeys/{passkey_id}", { params: { path: { passkey_id: of.id } } })),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: key })
      toast(accountTexts.removed(of.name))
      onClose()
    }
  })
  return (
    <Confirm
      title={accountTexts.removeTitle(of.name)}
      action={accountTexts.remove}
      isOpen
      isPending={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      {accountTexts.removeText}
    </Confirm>
  )
}

const columnsOf = (onRemove: (passkey: Passkey) => void): ReadonlyArray<Column<Passkey>> => [
  { id: "name", title: accountTexts.addName, card: "title", cell: ({ name }) => name },
  { id: "created", title: accountTexts.created, cell: ({ created_at }) => <When at={created_at} /> },
  {
    id: "used",
    title: accountTexts.used,
    cell: ({ last_used_at }) =>
      last_used_at === null ? <span className="quiet">{accountTexts.never}</span> : <When at={last_used_at} />
  },
  {
    id: "actions",
    title: texts.app.more,
    isActions: true,
    cell: (passkey) => (
      <Button
        kind="ghost"
        icon={Trash2}
        aria-label={`${accountTexts.remove}: ${passkey.name}`}
        onPress={() => onRemove(passkey)}
      />
    )
  }
]

export const Passkeys = () => {
  const passkeys = usePasskeys()
  const { data: providers } = useProviders()
  const [isAdding, setAdding] = useState(false)
  const [removing, setRemoving] = useState<Passkey>()
  const why =
    providers?.passkeys === false ? accountTexts.unavailable : hasPasskeys() ? undefined : accountTexts.unknownHere
  return (
    <Section
      title={accountTexts.passkeys}
      actions={
        why === undefined ? (
          <Button icon={Plus} onPress={() => setAdding(true)}>
            {accountTexts.add}
          </Button>
        ) : null
      }
    >
      <p className="quiet">{why ?? accountTexts.passkeysLead}</p>
      <Answer of={passkeys} lines={2}>
        {(all) =>
          all.length === 0 ? (
            <p className="quiet">{accountTexts.none}</p>
          ) : (
            <Table
              caption={accountTexts.passkeys}
              columns={columnsOf(setRemoving)}
              rows={all}
              rowKey={({ id }) => id}
            />
          )
        }
      </Answer>
      {isAdding ? <Add onClose={() => setAdding(false)} /> : null}
      {removing === undefined ? null : <Remove of={removing} onClose={() => setRemoving(undefined)} />}
    </Section>
  )
}
