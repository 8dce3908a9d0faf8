/** A modal dialog. Escape or a click outside closes it unless `stays` is set. */
import { X } from "lucide-react"
import { Dialog as AriaDialog } from "react-aria-components/Dialog"
import { Heading } from "react-aria-components/Heading"
import { Modal, ModalOverlay } from "react-aria-components/Modal"
import { useEffect } from "react"
import type { ReactNode } from "react"
import { texts } from "../texts.ts"
import { advice } from "./States.tsx"
import { Button } from "./Button.tsx"

interface DialogProps {
  readonly title: string
  readonly isOpen: boolean
  readonly onClose: () => void
  /** Whether only a button can close the dialog, for content that is shown only once. */
  readonly stays?: boolean
  readonly wide?: boolean
  readonly children: ReactNode
}

/** After the dialog closes, moves a lost focus to the view instead of to the top of the page. */
const useFocusReturn = (isOpen: boolean): void =>
  useEffect(() => {
    if (!isOpen) return
    // React Aria first restores the focus to the trigger if it still exists.
    const restoreFocus = (): void => {
      if (document.activeElement !== document.body || document.querySelector("[role=dialog]") !== null) return
      document.querySelector("main")?.focus({ preventScroll: true })
    }
    return () => void setTimeout(restoreFocus, 100)
  }, [isOpen])

export const Dialog = ({ children, isOpen, onClose, stays = false, title, wide = false }: DialogProps) => {
  useFocusReturn(isOpen)
  return (
    <ModalOverlay
      className="dialog-shade"
      isOpen={isOpen}
      isDismissable={!stays}
      isKeyboardDismissDisabled={stays}
      onOpenChange={(open) => {
        if (!open) onClose()
      }}
    >
      <Modal className={`dialog${wide ? " dialog-wide" : ""}`}>
        <AriaDialog className="dialog-content">
          <header className="row between">
            <Heading slot="title" className="dialog-title">
              {title}
            </Heading>
            {stays ? null : <Button kind="ghost" icon={X} aria-label={texts.app.close} onPress={onClose} />}
          </header>
          {children}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  )
}

export const DialogActions = ({ children }: { readonly children: ReactNode }) => (
  <footer className="dialog-actions">{children}</footer>
)

interface ConfirmProps {
  readonly title: string
  readonly children: ReactNode
  readonly action: string
  readonly isOpen: boolean
  readonly isPending?: boolean
  readonly error?: unknown
  readonly onConfirm: () => void
  readonly onClose: () => void
}

export const Confirm = ({
  action,
  children,
  error,
  isOpen,
  isPending = false,
  onClose,
  onConfirm,
  title
}: ConfirmProps) => (
  <Dialog title={title} isOpen={isOpen} onClose={onClose}>
    <p>{children}</p>
    {error === undefined || error === null ? null : (
      <p role="alert" className="dialog-error">
        {advice(error)}
      </p>
    )}
    <DialogActions>
      <Button onPress={onClose} autoFocus>
        {texts.app.cancel}
      </Button>
      <Button kind="danger" isPending={isPending} onPress={onConfirm}>
        {action}
      </Button>
    </DialogActions>
  </Dialog>
)
