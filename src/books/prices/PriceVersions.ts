/**
 * Stores price versions. A version's id is a hash of its lines. Usage records contain this id, so a charge can be recomputed years later even if the
 * price has changed.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import { createHash } from "node:crypto"
import type { UnitPrice } from "../../kernel/Price.ts"
import type { BooksUnavailable } from "../ledger/rules/Problems.ts"
import * as Statements from "../ledger/write/Statements.ts"
import { statement } from "../ledger/rules/Transaction.ts"
import { Writer } from "../ledger/write/Writer.ts"
import type { PriceLine } from "./Lines.ts"

export interface PriceVersionsContract {
  /** Returns the version's id once the version is stored durably. Ids are cached. */
  readonly of: (lines: ReadonlyArray<PriceLine>) => Effect.Effect<string, BooksUnavailable>
  /** Finds a version's lines; `undefined` if the id is unknown. */
  readonly find: (id: string) => Effect.Effect<ReadonlyArray<PriceLine> | undefined>
}

export class PriceVersions extends Context.Tag("tollgate/prices/PriceVersions")<
  PriceVersions,
  PriceVersionsContract
>() {
  static readonly layer = Layer.suspend(() => Layer.effect(PriceVersions, make))
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const known = new Set<string>()

  const of = Effect.fnUntraced(function* (lines: ReadonlyArray<PriceLine>) {
    // The JSON omits `above` and `factors` if a line has none.
    const text = JSON.stringify(
      lines.map(({ above, factors, price, quantity, unit }) => ({ quantity, unit, price: `${price}`, above, factors }))
    )
    const id = createHash("sha256").update(text).digest("hex").slice(0, 16)
    if (known.has(id)) return id
    const now = yield* Clock.currentTimeMillis
    const insert = sql`INSERT INTO tollgate_price_versions (id, lines, first_used_at) VALUES (${id}, ${text}, ${now}) ON CONFLICT DO NOTHING`
    yield* Statements.write(writer, statement(insert))
    known.add(id)
    return id
  })

  const find = Effect.fnUntraced(function* (id: string) {
    const [row] = yield* Effect.orDie(
      sql<{ lines: string }>`SELECT lines FROM tollgate_price_versions WHERE id = ${id}`
    )
    if (row === undefined) return undefined
    const lines = JSON.parse(row.lines) as ReadonlyArray<Omit<PriceLine, "price"> & { readonly price: string }>
    return lines.map((line): PriceLine => ({ ...line, price: BigInt(line.price) as UnitPrice }))
  })

  return { of, find } satisfies PriceVersionsContract
})
