/** A dialog with a form that creates an item. The item's key or code, if any, is shown only in this dialog. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { Plus } from "lucide-react"
import { useState } from "react"
import type { ReactNode } from "react"
import { Button } from "../parts/Button.tsx"
import { Code } from "../parts/Code.tsx"
import { Dialog, DialogActions } from "../parts/Dialog.tsx"
import { FormOf } from "../parts/Fields.tsx"
import { texts as common } from "../texts.ts"

export interface FieldOf<Draft> {
  <K extends keyof Draft & string>(
    name: K
  ): {
    readonly name: K
    readonly value: string
    readonly onChange: (value: string) => void
  }
}

interface MakingProps<Draft, Made> {
  /** The title of the dialog and the text of both buttons. */
  readonly title: string
  readonly first: Draft
  readonly fields: (field: FieldOf<Draft>, draft: Draft, set: (draft: Draft) => void) => ReactNode
  readonly make: (draft: Draft) => Promise<Made>
  /** Returns a sentence about the new item. */
  readonly said: (made: Made) => string
  /** Returns the new item's key or codes, if any. */
  readonly secret?: (made: Made) => string | undefined
}

const Done = ({ onClose, said, secret }: { said: string; secret: string | undefined; onClose: () => void }) => (
  <div className="stack">
    <p role="status">{said}</p>
    {secret === undefined ? null : <Code of={secret} />}
    <DialogActions>
      <Button kind="primary" onPress={onClose} autoFocus>
        {common.app.done}
      </Button>
    </DialogActions>
  </div>
)

type Opened<Draft, Made> = MakingProps<Draft, Made> & { readonly onClose: () => void }

const Form = <Draft extends Readonly<Record<keyof Draft, string>>, Made>(props: Opened<Draft, Made>) => {
  const { fields, first, make, onClose, said, secret, title } = props
  const queries = useQueryClient()
  const [draft, set] = useState<Draft>(first)
  const making = useMutation({
    mutationFn: () => make(draft),
    onSettled: () => queries.invalidateQueries({ queryKey: ["operator"] }),
    // Remove the key or code from the cache when the dialog closes.
    gcTime: 0
  })
  const field: FieldOf<Draft> = (name) => ({
    name,
    value: draft[name],
    onChange: (value) => set({ ...draft, [name]: value })
  })
  const shown = making.data === undefined ? undefined : secret?.(making.data)
  return (
    <Dialog title={title} isOpen stays={shown !== undefined} onClose={onClose}>
      {making.data === undefined ? (
        <FormOf
          error={making.error}
          onSubmit={() => making.mutate()}
          actions={
            <DialogActions>
              <Button onPress={onClose}>{common.app.cancel}</Button>
              <Button type="submit" kind="primary" isPending={making.isPending}>
                {title}
              </Button>
            </DialogActions>
          }
        >
          {fields(field, draft, set)}
        </FormOf>
      ) : (
        <Done said={said(making.data)} secret={shown} onClose={onClose} />
      )}
    </Dialog>
  )
}

/** Renders the button that opens the dialog. */
export const Making = <Draft extends Readonly<Record<keyof Draft, string>>, Made>(props: MakingProps<Draft, Made>) => {
  const [isOpen, open] = useState(false)
  return (
    <>
      <Button icon={Plus} onPress={() => open(true)}>
        {props.title}
      </Button>
      {isOpen ? <Form {...props} onClose={() => open(false)} /> : null}
    </>
  )
}
