/** Actions on a pending transfer. The recipient can accept or decline it. The sender can revoke it or send the email again. */
import { useState } from "react"
import { dayAndTime } from "../../moments.ts"
import { exact } from "../../money.ts"
import { Button } from "../../parts/Button.tsx"
import { Confirm } from "../../parts/Dialog.tsx"
import { advice } from "../../parts/States.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { useNow } from "../../parts/When.tsx"
import { transfersTexts } from "../../texts/transfers.ts"
import { resendAt, useMove } from "./asking.ts"
import type { Transfer } from "./asking.ts"

const nameOf = ({ sender }: Transfer): string => sender.name || sender.email

const Problem = ({ error }: { readonly error: unknown }) =>
  error === null ? null : (
    <p role="alert" className="field-error">
      {advice(error)}
    </p>
  )

export const Answering = ({ of: transfer }: { readonly of: Transfer }) => {
  const [isAsking, setAsking] = useState(false)
  const accept = useMove("accept", ({ amount }) => toast(transfersTexts.accepted(exact(amount))))
  const decline = useMove("decline", () => {
    setAsking(false)
    toast(transfersTexts.declined)
  })
  const { amount, id } = transfer
  return (
    <div className="stack">
      <div className="row wrap">
        <Button kind="primary" isPending={accept.isPending} onPress={() => accept.mutate(id)}>
          {transfersTexts.accept}
        </Button>
        <Button onPress={() => setAsking(true)}>{transfersTexts.decline}</Button>
      </div>
      <Problem error={accept.error} />
      <Confirm
        title={transfersTexts.declineTitle(exact(amount), nameOf(transfer))}
        action={transfersTexts.decline}
        isOpen={isAsking}
        isPending={decline.isPending}
        error={decline.error}
        onClose={() => setAsking(false)}
        onConfirm={() => decline.mutate(id)}
      >
        {transfersTexts.declineText(nameOf(transfer))}
      </Confirm>
    </div>
  )
}

export const Steering = ({ of: transfer }: { readonly of: Transfer }) => {
  const [isAsking, setAsking] = useState(false)
  const now = useNow()
  const resend = useMove("resend", () => toast(transfersTexts.resent))
  const revoke = useMove("revoke", () => {
    setAsking(false)
    toast(transfersTexts.revoked)
  })
  const { amount, id, recipient_email } = transfer
  const free = resendAt(transfer)
  return (
    <div className="stack">
      <div className="row wrap">
        <Button isDisabled={free > now} isPending={resend.isPending} onPress={() => resend.mutate(id)}>
          {transfersTexts.resend}
        </Button>
        <Button kind="danger" onPress={() => setAsking(true)}>
          {transfersTexts.revoke}
        </Button>
      </div>
      {free > now ? <p className="quiet small">{transfersTexts.resendFrom(dayAndTime(free))}</p> : null}
      <Problem error={resend.error} />
      <Confirm
        title={transfersTexts.revokeTitle(exact(amount))}
        action={transfersTexts.revoke}
        isOpen={isAsking}
        isPending={revoke.isPending}
        error={revoke.error}
        onClose={() => setAsking(false)}
        onConfirm={() => revoke.mutate(id)}
      >
        {transfersTexts.revokeText(recipient_email)}
      </Confirm>
    </div>
  )
}
