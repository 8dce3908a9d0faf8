/** Shows a transfer's timeline and the actions on it. */
import { useMe, useMembership } from "../../app/Asking.ts"
import { exact } from "../../money.ts"
import { Dialog } from "../../parts/Dialog.tsx"
import { Facts } from "../../parts/Page.tsx"
import { Answer } from "../../parts/States.tsx"
import { Story } from "../../parts/Story.tsx"
import type { Step } from "../../parts/Story.tsx"
import { transfersTexts } from "../../texts/transfers.ts"
import { endOf, useTransfer } from "./asking.ts"
import type { Side, Transfer } from "./asking.ts"
import { Answering, Steering } from "./Decisions.tsx"

const words = transfersTexts.story

const endingOf = (transfer: Transfer, side: Side): Step => {
  const { recipient_email: to, status } = transfer
  const at = endOf(transfer)
  const isMine = side === "received"
  switch (status) {
    case "accepted":
      return isMine
        ? { at, title: words.youAccepted, text: words.youAcceptedText, tone: "good" }
        : { at, title: words.accepted(to), text: words.acceptedText, tone: "good" }
    case "declined":
      return { at, title: isMine ? words.youDeclined : words.declined(to), text: words.returnedText, tone: "bad" }
    case "revoked":
      return { at, title: isMine ? words.revoked : words.youRevoked, text: words.returnedText }
    case "expired":
      return { at, title: words.expired, text: words.returnedText }
    default:
      return { at: transfer.expires_at, title: words.ends, text: words.endsText, isAhead: true }
  }
}

const stepsOf = (transfer: Transfer, side: Side): ReadonlyArray<Step> => {
  const { created_at, last_sent_at, recipient_email, sender } = transfer
  const again: ReadonlyArray<Step> =
    last_sent_at === created_at ? [] : [{ at: last_sent_at, title: words.mailedAgain, text: words.mailedAgainText }]
  return [
    {
      at: created_at,
      title: side === "sent" ? words.youSent : words.sentBy(sender.name || sender.email),
      ...(side === "sent" && { text: words.held })
    },
    { at: created_at, title: side === "sent" ? words.mailed(recipient_email) : words.mailedYou },
    ...again,
    endingOf(transfer, side)
  ]
}

const Content = ({ of: transfer, side }: { readonly of: Transfer; readonly side: Side }) => {
  const { kind, message, reason, recipient_email, sender, status } = transfer
  const manages = useMembership()?.role !== "member"
  return (
    <div className="stack transfers-story">
      <Facts
        of={[
          side === "sent"
            ? [words.to, recipient_email]
            : [words.from, `${sender.name}${sender.name === "" ? "" : ", "}${sender.email}`],
          [
            words.kind,
            reason === null
              ? transfersTexts.kinds[kind]
              : `${transfersTexts.kinds[kind]}: ${transfersTexts.reasons[reason]}`
          ],
          ...(message === null
            ? []
            : [
                [
                  words.message,
                  <q key="message" className="transfers-message">
                    {message}
                  </q>
                ] as const
              ])
        ]}
      />
      <Story steps={stepsOf(transfer, side)} />
      {status !== "pending" ? null : side === "received" ? (
        <Answering of={transfer} />
      ) : manages ? (
        <Steering of={transfer} />
      ) : null}
    </div>
  )
}

interface StoryDialogProps {
  readonly id: string
  readonly onClose: () => void
}

export const StoryDialog = ({ id, onClose }: StoryDialogProps) => {
  const transfer = useTransfer(id)
  const { data: me } = useMe()
  const side: Side = transfer.data?.recipient_email === me?.account.email ? "received" : "sent"
  return (
    <Dialog
      title={transfer.data === undefined ? transfersTexts.title : words.title(exact(transfer.data.amount))}
      isOpen
      onClose={onClose}
    >
      <Answer of={transfer}>{(found) => <Content of={found} side={side} />}</Answer>
    </Dialog>
  )
}
