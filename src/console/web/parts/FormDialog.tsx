/** A dialog with a form, a Cancel button and a submit button. */
import type { ReactNode } from "react"
import { texts } from "../texts.ts"
import { Button } from "./Button.tsx"
import { Dialog, DialogActions } from "./Dialog.tsx"
import { FormOf } from "./Fields.tsx"

interface FormDialogProps {
  readonly title: string
  readonly action: string
  readonly children: ReactNode
  readonly error: unknown
  readonly isPending: boolean
  readonly onSubmit: () => void
  readonly onClose: () => void
}

export const FormDialog = ({ action, children, error, isPending, onClose, onSubmit, title }: FormDialogProps) => (
  <Dialog title={title} isOpen onClose={onClose}>
    <FormOf
      onSubmit={onSubmit}
      error={error}
      actions={
        <DialogActions>
          <Button onPress={onClose}>{texts.app.cancel}</Button>
          <Button kind="primary" type="submit" isPending={isPending}>
            {action}
          </Button>
        </DialogActions>
      }
    >
      {children}
    </FormOf>
  </Dialog>
)
