/**
 * Handles calls that were released because their run seemed to have ended, although their node was only slow or disconnected and still settles them.
 * A released call already has a usage record, at cost 0. The record gets another id, so that the usage id sent to the client identifies the charge.
 * A second settlement no longer finds the released record by its id, so the call is charged only once.
 */
import { usageOf } from "../../../kernel/Ids.ts"
import { query, run } from "./SqlEffect.ts"
import type { SqlSteps } from "./SqlEffect.ts"
import { dimensionsOf, withDimensions } from "./Dimensions.ts"
import { parseIds } from "./Rows.ts"
import type { DimensionsRow } from "./Dimensions.ts"
import { interrupted } from "../rules/Transaction.ts"
import type { Reservation } from "../rules/Transaction.ts"

/** Loads the released calls among `calls`, with their dimensions numbers. */
export function* load(
  calls: ReadonlyArray<string>
): SqlSteps<ReadonlyArray<{ readonly reservation: Reservation; readonly number: number }>> {
  if (calls.length === 0) return []
  const callOf = new Map(calls.map((call) => [usageOf(call), call]))
  const rows = (yield* query(select, [JSON.stringify([...callOf.keys()])])) as ReadonlyArray<ReleasedRow>
  return rows.map((row) => ({
    reservation: {
      id: callOf.get(row.id)!,
      dimensions: dimensionsOf(row),
      amount: 0n,
      at: row.at,
      run: "",
      budgets: parseIds(row.budgets),
      released: true
    },
    number: row.number
  }))
}

export function* rename(calls: ReadonlyArray<string>): SqlSteps<void> {
  if (calls.length > 0) yield* run(renameAll, [JSON.stringify(calls.map(usageOf))])
}

interface ReleasedRow extends DimensionsRow {
  readonly id: string
  readonly at: number
  readonly budgets: string | null
}

const select = `SELECT r.id, r.at, r.budgets, d.* FROM tollgate_usage_records r ${withDimensions}
  WHERE r.id IN (SELECT value FROM json_each(?)) AND r.error_type = '${interrupted}' AND r.cost = 0`

const renameAll =
  "UPDATE tollgate_usage_records SET id = id || '_released' WHERE id IN (SELECT value FROM json_each(?))"
