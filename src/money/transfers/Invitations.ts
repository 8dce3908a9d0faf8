/** Builds the messages about a transfer: the email with its link, and the notifications at its creation and at its end. */
import type { AccountId } from "../../kernel/Ids.ts"
import { toDay } from "../../kernel/Moment.ts"
import { fromRow, toDecimal } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { plainName } from "../../people/mail/Letter.ts"
import type { Letter } from "../../people/mail/Outbox.ts"
import { notice } from "../../people/notifications/Notification.ts"
import type { Row } from "./Reading.ts"
import { moves } from "./States.ts"
import type { Move, TransferId } from "./States.ts"

/** The facts in an email or notification. */
export interface Invited {
  readonly id: TransferId
  readonly kind: string
  readonly amount: Nano
  readonly message: string | null
  readonly recipient_email: string
  readonly sender_name: string
  readonly expires_at: number
}

export const invitedOf = (row: Row): Invited => ({
  id: row.id,
  kind: row.kind,
  amount: fromRow(row.amount),
  message: row.message,
  recipient_email: row.recipient_email,
  sender_name: row.sender_name ?? "Another user",
  expires_at: row.expires_at
})

/** Builds the n-th email for a transfer, with a link that contains `token`. */
export const letterOf = (
  { amount, expires_at, id, kind, message, recipient_email, sender_name }: Invited,
  { caused_by, n, token }: { readonly caused_by: AccountId; readonly n: number; readonly token: string },
  { public_url, service_name }: { readonly public_url: string; readonly service_name: string }
): Letter => {
  const from = plainName(sender_name, "Another user")
  return {
    key: `transfer/${id}/${n}`,
    to: recipient_email,
    caused_by,
    subject: `${from} sends you ${toDecimal(amount)} credits`,
    text: [
      `${from} sends you ${toDecimal(amount)} credits on ${service_name}, as a ${kind}.`,
      ...(message === null ? [] : [`"${message}"`]),
      `Sign in with this address to accept or decline:`,
      `${public_url}/transfer-invites/${token}`,
      `Unless you accept by ${toDay(expires_at)}, the credits will be returned to the sender.`
    ].join("\n\n")
  }
}

/** Builds the notification for a recipient with an account. */
export const receivedNotice = (
  account_id: AccountId,
  { amount, expires_at, id, kind, sender_name }: Invited,
  now: number
): Statement =>
  notice(
    {
      account_id,
      kind: "transfer_received",
      title: `${sender_name} sends you ${toDecimal(amount)} credits`,
      text: `Accept the ${kind} by ${toDay(expires_at)}, or it will be returned.`,
      data: { transfer_id: id }
    },
    now
  )

/**
 * Builds the notifications for the party that did not end the transfer, or for both parties if it expired. `recipient` is the account bound to the
 * transfer, if any.
 */
export const endedNotices = (
  row: Row,
  move: Move,
  recipient: AccountId | null,
  now: number
): ReadonlyArray<Statement> => {
  const { escrow, to } = moves[move]
  const accounts =
    move === "revoke" ? [recipient] : move === "expire" ? [row.sender_account_id, recipient] : [row.sender_account_id]
  return accounts
    .filter((account) => account !== null)
    .map((account_id) =>
      notice(
        {
          account_id,
          kind: "transfer_ended",
          title: `A ${row.kind} of ${toDecimal(fromRow(row.amount))} credits ${to === "expired" ? to : `was ${to}`}`,
          text:
            escrow === "recipient"
              ? `${row.recipient_email} accepted it.`
              : `It was for ${row.recipient_email}; the credit was returned to its sender.`,
          data: { transfer_id: row.id, status: to }
        },
        now
      )
    )
}
