/** A key's owner, its row in the table of Idempotency-Keys, and the statements that change the row. `StoredAnswers` deletes old responses. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { Clock, Effect } from "effect"
import type { Context } from "effect"
import { refusedLate } from "../../books/gate/Gate.ts"
import { holderOf } from "../../kernel/Caller.ts"
import type { Caller } from "../../kernel/Caller.ts"
import * as Calls from "../../books/ledger/Calls.ts"
import { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import type { Writer } from "../../books/ledger/write/Writer.ts"

export interface Row {
  readonly holder: string
  readonly request_hash: string
  /** The run of the process that is using the key. */
  readonly run: string
  /** The call that used the key; `null` before its admission. */
  readonly call: string | null
  readonly status: number | null
  readonly headers: string | null
  readonly body: Uint8Array | null
  /** When the response was stored. If a row contains a time but no status, its response was deleted (`StoredAnswers`). */
  readonly answered_at: number | null
}

export interface StoredAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
}

/** A response as the database stores it. If its headers contain `content-encoding: gzip`, the body is compressed. */
export interface PackedAnswer extends StoredAnswer {
  readonly body: Buffer
}

/** The maximum number of old keys deleted in one transaction. */
const forgottenAtOnce = 500

/** The holder of keys from versions without holders. Every credential of the key's account can use such a key. */
const anyHolder = "any"

interface Parts {
  readonly sql: SqlClient
  readonly writer: Context.Tag.Service<Writer>
  /** The run of this process. */
  readonly run: string
}

export type Keys = ReturnType<typeof make>
export type Key = ReturnType<Keys["of"]>

export const make = (sql: SqlClient, writer: Context.Tag.Service<Writer>, run: string) => {
  const parts: Parts = { sql, writer, run }
  return {
    of: (caller: Caller, key: string) => keyOf(parts, caller, key),
    forget: (before: number) => forget(parts, before)
  }
}

const submit = ({ writer }: Parts, template: Parameters<typeof statement>[0], rows?: number) =>
  writer.submit({ postings: [], statements: [statement(template, rows)] })

interface Owner {
  readonly caller: Caller
  readonly key: string
  readonly holder: string
  readonly mine: Fragment
}

const keyOf = (parts: Parts, caller: Caller, key: string) => {
  const { account_id, tenant_id } = caller
  const holder = holderOf(caller)
  const mine = parts.sql`tenant_id = ${tenant_id} AND account_id = ${account_id} AND key = ${key}
    AND holder IN (${holder}, ${anyHolder})`
  const owner: Owner = { caller, key, holder, mine }
  return {
    account_id,
    /** Identifies the key. Equal keys have equal ids. */
    id: `${tenant_id} ${account_id} ${holder} ${key}`,
    ...takingOf(parts, owner),
    ...useOf(parts, owner)
  }
}

/** Builds the effects that find, claim and take over a key. */
const takingOf = (parts: Parts, { caller: { account_id, tenant_id }, holder, key, mine }: Owner) => {
  const { run, sql } = parts
  return {
    find: Effect.map(
      Effect.orDie(
        sql<Row>`SELECT holder, request_hash, run, call, status, headers, body, answered_at
          FROM tollgate_idempotency_keys WHERE ${mine}`
      ),
      ([row]) => row
    ),
    /** Inserts the key. Returns whether it was new. */
    take: (request_hash: string) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        foundRow(
          submit(
            parts,
            sql`INSERT INTO tollgate_idempotency_keys (tenant_id, account_id, holder, key, request_hash, run, created_at)
              SELECT ${tenant_id}, ${account_id}, ${holder}, ${key}, ${request_hash}, ${run}, ${now}
              WHERE NOT EXISTS (SELECT 1 FROM tollgate_idempotency_keys WHERE ${mine})
              ON CONFLICT DO NOTHING RETURNING key`,
            1
          )
        )
      ),
    /** Claims the abandoned key in this row. Its call, if there is one, reached no provider. */
    takeAgain: (row: Row, request_hash: string) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        foundRow(
          submit(
            parts,
            sql`UPDATE tollgate_idempotency_keys
              SET holder = ${holder}, request_hash = ${request_hash}, created_at = ${now}, call = NULL
              WHERE ${mine} AND holder = ${row.holder} AND status IS NULL AND call IS NOT DISTINCT FROM ${row.call} RETURNING key`,
            1
          )
        )
      ),
    /** Takes over the key of a run that has ended. */
    takeOver: (ended: string) =>
      foundRow(
        submit(
          parts,
          sql`UPDATE tollgate_idempotency_keys SET run = ${run}
            WHERE ${mine} AND status IS NULL AND run = ${ended} RETURNING key`,
          1
        )
      )
  }
}

/** Builds the statements and effects for a claimed key. */
const useOf = (parts: Parts, { mine }: Owner) => {
  const { run, sql } = parts
  return {
    /**
     * Ties the key to the call, in the transaction that admits the call. If another process has taken over the key, the call is rejected, because
     * that process may have made the call. Another process takes over a key if this node was frozen and presumed dead.
     */
    beside: (call: string): ReadonlyArray<Statement> => [
      statement(
        sql`UPDATE tollgate_idempotency_keys SET call = ${call} WHERE ${mine} AND run = ${run} RETURNING key`,
        1
      )
    ],
    /** Deletes the key, unless another process has taken it over. */
    release: submit(parts, sql`DELETE FROM tollgate_idempotency_keys WHERE ${mine} AND run = ${run}`),
    store: ({ body, headers, status }: PackedAnswer) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        submit(
          parts,
          sql`UPDATE tollgate_idempotency_keys SET status = ${status}, headers = ${JSON.stringify(headers)},
          body = ${body}, answered_at = ${now} WHERE ${mine}`
        )
      )
  }
}

/** Deletes a batch of keys created before `before`, except those of open calls. Returns whether to delete another batch immediately. */
const forget = Effect.fnUntraced(function* (parts: Parts, before: number) {
  const { sql } = parts
  const oldest = sql.literal("ORDER BY created_at, tenant_id, account_id, key, holder")
  const old = yield* sql<{ call: string | null }>`SELECT call FROM tollgate_idempotency_keys
    WHERE created_at < ${before} ${oldest} LIMIT ${forgottenAtOnce}`
  const calls = old.flatMap(({ call }) => (call === null ? [] : [call]))
  const open = [...(yield* Calls.openOf(sql, calls))]
  if (old.length === open.length) return false
  const exceptOpen = open.length === 0 ? sql`` : sql`AND (call IS NULL OR NOT (${sql.in("call", open)}))`
  yield* submit(
    parts,
    sql`DELETE FROM tollgate_idempotency_keys WHERE (tenant_id, account_id, key, holder) IN (
    SELECT tenant_id, account_id, key, holder FROM tollgate_idempotency_keys
    WHERE created_at < ${before} ${oldest} LIMIT ${forgottenAtOnce}) ${exceptOpen}`
  )
  return old.length === forgottenAtOnce
})

/** Returns whether a call reached no provider because it was refused before its reservation was known to be written. */
export const reachedNoProvider = (state: Calls.CallState): boolean =>
  state._tag === "ended" && state.error_type === refusedLate

/** Returns whether the statement inserted or updated a row. */
const foundRow = <E extends { readonly _tag: string }>(write: Effect.Effect<unknown, E>) =>
  write.pipe(
    Effect.as(true),
    Effect.catchAll((refusal) =>
      refusal._tag === "Conflict"
        ? Effect.succeed(false)
        : refusal instanceof BooksUnavailable
          ? refusal
          : Effect.dieMessage(`an Idempotency-Key was refused: ${refusal._tag}`)
    )
  )
