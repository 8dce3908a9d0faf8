/**
 * The transactions of transfers. Each changes the transfer's row together with the credit that it moves, and names the state that
 * it starts from. So whatever runs at once, a transfer ends once and its escrow goes one way.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { AccountId, BillingAccountId, TenantId } from "../../kernel/Ids.ts"
import { fromRow } from "../../kernel/Money.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import { statement } from "../../books/ledger/Transaction.ts"
import type { Refusal, Statement } from "../../books/ledger/Transaction.ts"
import type { Writer } from "../../books/ledger/Writer.ts"
import { endedNotices } from "./Invitations.ts"
import { TransferInvalid } from "./Problems.ts"
import type { Reading, Row } from "./Reading.ts"
import { moves } from "./States.ts"
import type { Draft } from "./Transfer.ts"
import type { Move, TransferId } from "./States.ts"

/** The row was no longer in the state that the transaction starts from. */
export type Conflict = Extract<Refusal, { readonly _tag: "Conflict" }>

/** A transfer before it is written. */
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

export interface Recipient {
  readonly account_id: AccountId
  /** Where the credit lands. */
  readonly home_tenant_id: TenantId
}

export const make = (sql: SqlClient, writer: Writer["Type"], reading: Reading) => {
  /** Writes the transfer and moves its amount into escrow. `beside` stands in the same transaction. */
  const begin = (row: NewRow, beside: ReadonlyArray<Statement>) =>
    writer.submit({
      postings: [
        {
          _tag: "Escrow",
          account: row.billing_account_id,
          amount: row.amount,
          transfer: row.id,
          description: `${row.kind} to ${row.recipient_email}`
        }
      ],
      statements: [
        statement(
          sql`INSERT INTO tollgate_transfers ${sql.insert({
            ...row,
            status: "pending",
            letters: 1,
            updated_at: row.created_at,
            last_sent_at: row.created_at
          })} ON CONFLICT DO NOTHING RETURNING id`,
          1
        ),
        ...beside
      ]
    })

  /** Changes a pending transfer without moving credit. */
  const update = (
    change: Statement,
    beside: ReadonlyArray<Statement>
  ): Effect.Effect<void, Conflict | BooksUnavailable> =>
    writer.submit({ postings: [], statements: [change, ...beside] }).pipe(Effect.asVoid, Effect.catchAll(unforeseen))

  /** Ends a pending transfer by a move: row, escrow and notifications. `recipient` is who accepts or declines. */
  const end = Effect.fnUntraced(function* (
    row: Row,
    move: Move,
    recipient?: Recipient
  ): Effect.fn.Return<void, Conflict | BooksUnavailable | TransferInvalid> {
    const now = yield* Clock.currentTimeMillis
    const { escrow, to: status } = moves[move]
    const released = escrow === "recipient"
    const bound = recipient?.account_id ?? row.recipient_account_id
    const inTime = move === "expire" ? sql`expires_at <= ${now}` : sql`expires_at > ${now}`
    const ended = writer.submit({
      postings: [
        {
          _tag: "EndEscrow",
          source: released ? "transfer_release" : "transfer_return",
          from: row.billing_account_id,
          to: released && recipient !== undefined ? billingAccountOf(recipient.home_tenant_id) : row.billing_account_id,
          amount: fromRow(row.amount),
          transfer: row.id,
          description: released
            ? `${row.kind} from ${row.sender_name ?? "somebody"}`
            : `${row.kind} to ${row.recipient_email}: ${status}`
        }
      ],
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
        // The escrow goes with the state. Where the state is still `pending`, the books are wrong.
        NotHeld: (refusal) =>
          Effect.flatMap(reading.byId(row.id), (current) =>
            current?.status === "pending"
              ? Effect.die(refusal)
              : Effect.fail<Conflict>({ _tag: "Conflict", statement: 0 })
          ),
        BalanceTooLarge: () => new TransferInvalid({ message: "amount: the recipient's balance cannot hold so much" })
      }),
      Effect.catchAll((refusal): Effect.Effect<never, Conflict | BooksUnavailable | TransferInvalid> =>
        refusal._tag === "TransferInvalid" ? refusal : unforeseen(refusal)
      )
    )
  })

  return { begin, update, end }
}

export type Escrow = ReturnType<typeof make>

/** A refusal that the transaction cannot meet is a defect. */
const unforeseen = (refusal: Refusal | BooksUnavailable): Effect.Effect<never, Conflict | BooksUnavailable> =>
  refusal._tag === "Conflict" || refusal._tag === "BooksUnavailable" ? Effect.fail(refusal) : Effect.die(refusal)
