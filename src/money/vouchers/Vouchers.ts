/**
 * Vouchers. The operator creates them, and users redeem them for their tenant.
 *
 * Where the specification is silent:
 * - A voucher grants credit that can be spent but not transferred.
 * - A tenant can redeem a code once. Any member of a team may redeem one for the team.
 * - A code has 20 characters. It is shown once and stored as a hash. Case, spaces and dashes do not matter.
 * - An account may try 10 codes per minute on each node.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import { Ledger } from "../../books/ledger/Ledger.ts"
import type { LedgerContract } from "../../books/ledger/Ledger.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import type { Actor } from "../../kernel/Caller.ts"
import { billingAccountOf, make as makeId } from "../../kernel/Ids.ts"
import * as MinuteLimit from "../../kernel/MinuteLimit.ts"
import { fromRow } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import {
  TooManyVouchers,
  VoucherEnded,
  VoucherNotFound,
  VoucherRedeemed,
  VoucherTooLarge,
  VoucherUsedUp
} from "./Problems.ts"
import { hashOf, makeCode, prefixOf } from "./Voucher.ts"
import type { CreatedVoucher, NewVouchers, Redeemed, Voucher, VoucherId } from "./Voucher.ts"

const codesAMinute = 10

/** `beside` contains statements that commit with the change, such as an audit log entry. */
export interface VouchersContract {
  /** Creates the requested vouchers in one transaction. Only this response contains their codes. */
  readonly create: (
    newVouchers: NewVouchers,
    beside?: ReadonlyArray<Statement>
  ) => Effect.Effect<ReadonlyArray<CreatedVoucher>, BooksUnavailable>
  /** Lists vouchers with ids below `before`, newest first. */
  readonly list: (before: string | undefined, limit: number) => Effect.Effect<ReadonlyArray<Voucher>>
  /** Ends a voucher, so that no tenant can redeem it. Idempotent. */
  readonly end: (
    id: VoucherId,
    beside?: ReadonlyArray<Statement>
  ) => Effect.Effect<Voucher, VoucherNotFound | BooksUnavailable>
  readonly redeem: (request: {
    readonly caller: Actor
    readonly code: string
  }) => Effect.Effect<
    Redeemed,
    | VoucherNotFound
    | VoucherUsedUp
    | VoucherEnded
    | VoucherRedeemed
    | VoucherTooLarge
    | TooManyVouchers
    | BooksUnavailable
  >
}

export class Vouchers extends Context.Tag("tollgate/vouchers/Vouchers")<Vouchers, VouchersContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Vouchers, make))
}

interface Parts {
  readonly sql: SqlClient
  readonly ledger: LedgerContract
  readonly writer: Writer["Type"]
  readonly attempts: MinuteLimit.MinuteLimit
}

const make = Effect.gen(function* () {
  const parts: Parts = {
    sql: yield* SqlClient,
    ledger: yield* Ledger,
    writer: yield* Writer,
    attempts: yield* MinuteLimit.make("vouchers", codesAMinute)
  }
  return { create: create(parts), list: list(parts), end: end(parts), redeem: redeem(parts) } satisfies VouchersContract
})

const none: ReadonlyArray<Statement> = []

interface Row {
  readonly id: VoucherId
  readonly code_prefix: string
  readonly amount: string
  readonly uses: number
  readonly uses_max: number
  readonly description: string
  readonly created_at: number
  readonly expires_at: number | null
  readonly ended_at: number | null
}

const columns = `id, code_prefix, CAST(amount AS TEXT) AS amount, uses, uses_max, description, created_at, expires_at, ended_at`

const statusOf = ({ ended_at, expires_at, uses, uses_max }: Row, now: number): Voucher["status"] => {
  if (ended_at !== null) return "ended"
  if (expires_at !== null && expires_at <= now) return "expired"
  return uses < uses_max ? "active" : "used_up"
}

const voucherOf = (row: Row, now: number): Voucher => {
  const { code_prefix, created_at, description, expires_at, id, uses, uses_max } = row
  const amount_usd = fromRow(row.amount)
  return {
    id,
    code_prefix,
    amount_usd,
    uses,
    uses_max,
    status: statusOf(row, now),
    description,
    created_at,
    expires_at
  }
}

const create = ({ sql, writer }: Parts): VouchersContract["create"] =>
  Effect.fn("Vouchers.create")(function* (newVouchers, beside = none) {
    const { amount_usd, count, description = "voucher", expires_at = null, uses: uses_max } = newVouchers
    const now = yield* Clock.currentTimeMillis
    const drafts = yield* Effect.replicateEffect(
      Effect.map(makeId("vch"), (id) => ({ id: id as VoucherId, code: makeCode() })),
      count
    )
    const inserts = drafts.map(({ code, id }) =>
      statement(
        sql`INSERT INTO tollgate_vouchers_vouchers
          (id, code_hash, code_prefix, amount, uses_max, uses, description, created_at, expires_at)
          VALUES (${id}, ${hashOf(code)}, ${prefixOf(code)}, ${amount_usd}, ${uses_max}, 0, ${description}, ${now}, ${expires_at})`
      )
    )
    yield* Statements.write(writer, ...inserts, ...beside)
    const status = expires_at !== null && expires_at <= now ? ("expired" as const) : ("active" as const)
    return drafts.map(({ code, id }) => ({
      id,
      code,
      code_prefix: prefixOf(code),
      amount_usd,
      uses: 0,
      uses_max,
      status,
      description,
      created_at: now,
      expires_at
    }))
  })

const list = ({ sql }: Parts): VouchersContract["list"] =>
  Effect.fn("Vouchers.list")(function* (before, limit) {
    const now = yield* Clock.currentTimeMillis
    const rows = yield* sql<Row>`SELECT ${sql.literal(columns)} FROM tollgate_vouchers_vouchers
      WHERE id < ${before ?? "~"} ORDER BY id DESC LIMIT ${limit}`
    return rows.map((row) => voucherOf(row, now))
  }, Effect.orDie)

const end = ({ sql, writer }: Parts): VouchersContract["end"] =>
  Effect.fn("Vouchers.end")(function* (id, beside = none) {
    const now = yield* Clock.currentTimeMillis
    const ended = statement(
      sql`UPDATE tollgate_vouchers_vouchers SET ended_at = ${now} WHERE id = ${id} AND ended_at IS NULL RETURNING id`,
      1
    )
    yield* Statements.tryWrite(writer, ended, ...beside)
    const [row] = yield* Effect.orDie(
      sql<Row>`SELECT ${sql.literal(columns)} FROM tollgate_vouchers_vouchers WHERE id = ${id}`
    )
    return row === undefined ? yield* new VoucherNotFound({ message: "no such voucher" }) : voucherOf(row, now)
  })

const redeem = (parts: Parts): VouchersContract["redeem"] =>
  Effect.fn("Vouchers.redeem")(function* ({ caller, code }) {
    const { attempts, sql } = parts
    const now = yield* Clock.currentTimeMillis
    const retry_after = yield* attempts.take(caller.account_id, now)
    if (retry_after !== undefined) return yield* new TooManyVouchers({ limit: codesAMinute, retry_after })
    const [row] = yield* Effect.orDie(
      sql<Row>`SELECT ${sql.literal(columns)} FROM tollgate_vouchers_vouchers WHERE code_hash = ${hashOf(code)}`
    )
    if (row === undefined) return yield* new VoucherNotFound()
    const amount = fromRow(row.amount)
    const balance = yield* credit(parts, caller, row, amount, now).pipe(
      Effect.catchTags({
        AccountMissing: Effect.die,
        BalanceTooLarge: () => new VoucherTooLarge(),
        Conflict: ({ statement }) =>
          statement === 0
            ? new VoucherRedeemed()
            : Effect.flatMap(reread(parts, row.id), (again) => refusalOf(again, now))
      })
    )
    return { tenant_id: caller.tenant_id, amount_usd: amount, balance }
  })

/** Writes the redemption, the count and the credit in one transaction. Returns the new balance. */
const credit = (
  { ledger, sql }: Parts,
  { account_id, tenant_id }: Actor,
  { description, id }: Row,
  amount: Nano,
  now: number
) => {
  const reference = `${id}_${tenant_id}`
  const use = statement(
    sql`INSERT INTO tollgate_vouchers_uses (voucher_id, tenant_id, account_id, reference, at)
      VALUES (${id}, ${tenant_id}, ${account_id}, ${reference}, ${now}) ON CONFLICT DO NOTHING RETURNING voucher_id`,
    1
  )
  const count = statement(
    sql`UPDATE tollgate_vouchers_vouchers SET uses = uses + 1 WHERE id = ${id} AND uses < uses_max AND ended_at IS NULL
      AND (expires_at IS NULL OR expires_at > ${now}) RETURNING id`,
    1
  )
  const posting = { account: billingAccountOf(tenant_id), amount, source: "voucher", reference, description } as const
  return Effect.map(ledger.credit(posting, [use, count]), ({ balance }) => balance)
}

const reread = ({ sql }: Parts, id: VoucherId): Effect.Effect<Row> =>
  Effect.map(
    Effect.orDie(sql<Row>`SELECT ${sql.literal(columns)} FROM tollgate_vouchers_vouchers WHERE id = ${id}`),
    ([row]) => row!
  )

const refusalOf = (row: Row, now: number): Effect.Effect<never, VoucherEnded | VoucherUsedUp> => {
  const status = statusOf(row, now)
  return status === "ended" || status === "expired"
    ? new VoucherEnded({ ended_at: row.ended_at ?? row.expires_at! })
    : new VoucherUsedUp()
}
