/**
 * Calls that were released because their run had ended, and that settle after all: their node was only slow or cut off. Such a call has a
 * usage record already, at cost 0. That record gives up its id, so that the id that the client was told names the charge. It is found by
 * that id, so a second settlement finds nothing, and a call is charged once.
 */
import { usageOf } from "../../../kernel/Ids.ts"
import { query, run } from "./SqlEffect.ts"
import type { SqlSteps } from "./SqlEffect.ts"
import { dimensionsOf, withDimensions } from "./Dimensions.ts"
import type { DimensionsRow } from "./Dimensions.ts"
import { interrupted } from "../rules/Transaction.ts"
import type { Reservation } from "../rules/Transaction.ts"

/** Those of the calls that were released, with the number of their dimensions. */
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
      released: true
    },
    number: row.number
  }))
}

/** Gives the records of these releases another id. */
export function* rename(calls: ReadonlyArray<string>): SqlSteps<void> {
  if (calls.length > 0) yield* run(renameAll, [JSON.stringify(calls.map(usageOf))])
}

interface ReleasedRow extends DimensionsRow {
  readonly id: string
  readonly at: number
}

const select = `SELECT r.id, r.at, d.* FROM tollgate_usage_records r ${withDimensions}
  WHERE r.id IN (SELECT value FROM json_each(?)) AND r.error_type = '${interrupted}' AND r.cost = 0`

const renameAll =
  "UPDATE tollgate_usage_records SET id = id || '_released' WHERE id IN (SELECT value FROM json_each(?))"
