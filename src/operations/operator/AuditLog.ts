/** Reads the audit log, newest entry first, and writes entries that belong to no other transaction, such as refusals. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import * as Tenancy from "../../people/tenants/Directory.ts"
import * as Audit from "./Audit.ts"
import type { AuditEntry } from "./Audit.ts"
import { keyset } from "./Keyset.ts"
import type { KeysetOf } from "./Keyset.ts"
import type { Operator } from "./Operator.ts"

export interface AuditLogContract {
  readonly page: (asked: AuditAsked) => Effect.Effect<KeysetOf<AuditEntry>>
  /** Records an action that has no transaction. */
  readonly done: (by: Operator, act: Audit.Act) => Effect.Effect<void, BooksUnavailable>
  readonly refused: (by: Operator, act: Audit.Act, why: string) => Effect.Effect<void, BooksUnavailable>
}

export interface AuditAsked {
  readonly limit: number
  /** `next` from the previous page. */
  readonly before?: string | undefined
  readonly operator?: string | undefined
  readonly tenant_id?: string | undefined
  readonly account_id?: string | undefined
}

export class AuditLog extends Context.Tag("tollgate/operator/AuditLog")<AuditLog, AuditLogContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(AuditLog, make))
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const tenancy = Tenancy.make(sql)

  const page: AuditLogContract["page"] = Effect.fn("AuditLog.page")(function* (asked) {
    const before = /^\d{1,15}$/.test(asked.before ?? "") ? Number(asked.before) : Number.MAX_SAFE_INTEGER
    const conditions = [
      sql`id < ${before}`,
      ...(["operator", "tenant_id", "account_id"] as const).flatMap((column) =>
        asked[column] === undefined ? [] : [sql`${sql.literal(column)} = ${asked[column]}`]
      )
    ]
    const rows = yield* sql<Omit<AuditEntry, "details" | "tenant_name"> & { readonly details: string }>`
      SELECT id, at, operator, via, action, tenant_id, account_id, subject, result, details FROM tollgate_operator_audit
      WHERE ${sql.and(conditions)} ORDER BY id DESC LIMIT ${asked.limit + 1}`
    const names = yield* tenancy.namesOf(rows.map(({ tenant_id }) => tenant_id))
    const entries = rows.map((row): AuditEntry => ({
      ...row,
      tenant_name: names.get(row.tenant_id ?? "") ?? null,
      details: JSON.parse(row.details) as Record<string, unknown>
    }))
    return keyset(entries, asked.limit, ({ id }) => `${id}`)
  }, Effect.orDie)

  const refused: AuditLogContract["refused"] = (by, act, why) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Statements.write(writer, Audit.entry(by, { ...act, details: { ...act.details, why } }, now, "refused"))
    )

  const done: AuditLogContract["done"] = (by, act) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => Statements.write(writer, Audit.entry(by, act, now)))

  return { page, done, refused } satisfies AuditLogContract
})
