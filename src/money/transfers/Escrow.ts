/**
 * The transactions of transfers. Each fails unless the transfer's row is in the expected state. Therefore, even with concurrent moves, a transfer
 * ends once and its escrow is paid out once.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { AccountId, BillingAccountId, TenantId } from "../../kernel/Ids.ts"
import { fromRow } from "../../kernel/Money.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Refusal, Statement } from "../../books/ledger/rules/Transaction.ts"
import type { Writer } from "../../books/ledger/write/Writer.ts"
import { endedNotices } from "./Invitations.ts"
import { TransferInvalid } from "./Problems.ts"
import type { Reading, Row } from "./Reading.ts"
import { moves } from "./States.ts"
import type { Draft } from "./Transfer.ts"
import type { Move, TransferId } from "./States.ts"

/** The row was no longer in the expected state. */
export type Conflict = Extract<Refusal, { readonly _tag: "Conflict" }>

export interface NewRow extends Draft {
  readonly id: TransferId
  readonly billing_account_id: BillingAccountId
  readonly sender_account_id: AccountId
  readonly recipient_account_id: AccountId | null
  readonly token_hash: string
  readonly idempotency_key: string
  readonly request_hash: string
  readonly created_at: number
  readonly expires_at: number
}

/** The account that accepts or declines. */
export interface Recipient {
  readonly account_id: AccountId
  /** The tenant that receives the credit. */
  readonly home_tenant_id: TenantId
}

interface Parts {
  readonly sql: SqlClient
  readonly writer: Writer["Type"]
  readonly reading: Reading
}

export const make = (parts: Parts) => ({
  /** Writes a transfer and moves its amount into escrow, in the same transaction as `beside`. */
  begin: begin(parts),
  /** Changes a pending transfer without moving credit. */
  update: update(parts),
  /** Ends a pending transfer: updates the row, pays out the escrow and notifies the parties. Accepting and declining require a `recipient`. */
  end: end(parts)
})

export type Escrow = ReturnType<typeof make>

const begin =
  ({ sql, writer }: Parts) =>
  (row: NewRow, beside: ReadonlyArray<Statement>) => {
    const { amount, billing_account_id: account, created_at, id: transfer } = row
    const description = `${row.kind} to ${row.recipient_email}`
    const written = {
      ...row,
      status: "pending",
      letters: 1,
      updated_at: created_at,
      last_sent_at: created_at
    }
    return writer.submit({
      postings: [{ _tag: "Escrow", account, amount, transfer, description }],
      statements: [
        statement(sql`INSERT INTO tollgate_transfers ${sql.insert(written)} ON CONFLICT DO NOTHING RETURNING id`, 1),
        ...beside
      ]
    })
  }

const update =
  ({ writer }: Parts) =>
  (change: Statement, beside: ReadonlyArray<Statement>): Effect.Effect<void, Conflict | BooksUnavailable> =>
    writer.submit({ postings: [], statements: [change, ...beside] }).pipe(Effect.asVoid, Effect.catchAll(unforeseen))

const end = ({ reading, sql, writer }: Parts) =>
  Effect.fnUntraced(function* (
    row: Row,
    move: Move,
    recipient?: Recipient
  ): Effect.fn.Return<void, Conflict | BooksUnavailable | TransferInvalid> {
    const now = yield* Clock.currentTimeMillis
    const status = moves[move].to
    const bound = recipient?.account_id ?? row.recipient_account_id
    const inTime = move === "expire" ? sql`expires_at <= ${now}` : sql`expires_at > ${now}`
    const ended = writer.submit({
      postings: [payout(row, move, recipient)],
      statements: [
        statement(
          sql`UPDATE tollgate_transfers SET status = ${status}, recipient_account_id = ${bound}, updated_at = ${now},
            ended_at = ${now} WHERE id = ${row.id} AND status = 'pending' AND ${inTime} RETURNING id`,
          1
        ),
        ...endedNotices(row, move, bound, now)
      ]
    })
    yield* ended.pipe(
      Effect.catchTags({
        // If the escrow is missing, another move ended the transfer. If the row is nevertheless pending, the books are wrong.
        NotHeld: (refusal) =>
          Effect.flatMap(reading.byId(row.id), (current) =>
            current?.status === "pending"
              ? Effect.die(refusal)
              : Effect.fail<Conflict>({ _tag: "Conflict", statement: 0 })
          ),
        BalanceTooLarge: () =>
          new TransferInvalid({ message: "amount: must not raise the recipient's balance above its maximum" }),
        // The recipient must not learn that the sender owes money.
        InsufficientCredits: () =>
          new TransferInvalid({
            message: "the credit for this transfer is not available now; ask the sender and try again later"
          })
      }),
      Effect.catchAll((refusal): Effect.Effect<never, Conflict | BooksUnavailable | TransferInvalid> =>
        refusal._tag === "TransferInvalid" ? refusal : unforeseen(refusal)
      )
    )
  })

/** Releases the escrow to the recipient, or returns it to the sender. */
const payout = (row: Row, move: Move, recipient: Recipient | undefined) => {
  const { escrow, to: status } = moves[move]
  const isReleased = escrow === "recipient"
  return {
    _tag: "EndEscrow",
    source: isReleased ? "transfer_release" : "transfer_return",
    from: row.billing_account_id,
    to: isReleased && recipient !== undefined ? billingAccountOf(recipient.home_tenant_id) : row.billing_account_id,
    amount: fromRow(row.amount),
    transfer: row.id,
    description: isReleased
      ? `${row.kind} from ${row.sender_name ?? "another user"}`
      : `${row.kind} to ${row.recipient_email}: ${status}`
  } as const
}

/** Dies on errors that these transactions cannot cause. */
const unforeseen = (refusal: Refusal | BooksUnavailable): Effect.Effect<never, Conflict | BooksUnavailable> =>
  refusal._tag === "Conflict" || refusal._tag === "BooksUnavailable" ? Effect.fail(refusal) : Effect.die(refusal)
