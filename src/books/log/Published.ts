/** Reads and writes the rows of the published checkpoint, which includes cosignatures, and of the witnesses. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import type { Statement } from "../ledger/rules/Transaction.ts"

/** The checkpoint in `GET /checkpoint` and receipts if there are witnesses. */
export interface Published {
  readonly size: number
  /** The checkpoint's newest row. */
  readonly entry: number
  /** The signed note, with the cosignatures. */
  readonly checkpoint: string
  readonly cosignatures: number
  /** When the required number of witnesses last cosigned a checkpoint, as Unix time in milliseconds; 0 for never. */
  readonly cosigned_at: number
}

/** Reads the published checkpoint; `undefined` if there is none. */
export const read = (sql: SqlClient): Effect.Effect<Published | undefined, SqlError> =>
  Effect.map(
    sql<Published>`SELECT size, entry, checkpoint, cosignatures, cosigned_at FROM tollgate_log_published`,
    ([row]) => row
  )

/** Builds the statement that publishes a checkpoint, unless a published one is larger, or equally large with as many cosignatures. */
export const publishing = ({ checkpoint, cosignatures, cosigned_at, entry, size }: Published): Statement => ({
  text: `INSERT INTO tollgate_log_published (id, size, entry, checkpoint, cosignatures, cosigned_at) VALUES (1, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET size = excluded.size, entry = excluded.entry, checkpoint = excluded.checkpoint,
      cosignatures = excluded.cosignatures, cosigned_at = excluded.cosigned_at
    WHERE excluded.size > tollgate_log_published.size
      OR (excluded.size = tollgate_log_published.size AND excluded.cosignatures > tollgate_log_published.cosignatures)`,
  params: [size, entry, checkpoint, cosignatures, cosigned_at]
})

/** Deletes the published checkpoint, for a log that no longer has witnesses. */
export const forgetting: Statement = { text: "DELETE FROM tollgate_log_published", params: [] }

// ---- witnesses ----------------------------------------------------------------------------------------------------------

/** A witness, by its verifier key. */
export interface WitnessRow {
  readonly witness: string
  /** The size of the last checkpoint that it cosigned; 0 before the first. */
  readonly size: number
  /** Unix time in milliseconds; 0 for never. */
  readonly cosigned_at: number
  /** Why the witness contradicts the log; `null` if it does not. */
  readonly conflict: string | null
}

export const witnesses = (sql: SqlClient): Effect.Effect<ReadonlyArray<WitnessRow>, SqlError> =>
  sql<WitnessRow>`SELECT witness, size, cosigned_at, conflict FROM tollgate_log_witnesses ORDER BY witness`

/** Builds the statement that records a cosignature. This ends a conflict. */
export const cosigning = ({ cosigned_at, size, witness }: Omit<WitnessRow, "conflict">): Statement => ({
  text: `INSERT INTO tollgate_log_witnesses (witness, size, cosigned_at, conflict) VALUES (?, ?, ?, NULL)
    ON CONFLICT (witness) DO UPDATE SET size = excluded.size, cosigned_at = excluded.cosigned_at, conflict = NULL`,
  params: [witness, size, cosigned_at]
})

/** Builds the statement that records a contradiction by a witness. */
export const conflicting = (witness: string, conflict: string): Statement => ({
  text: `INSERT INTO tollgate_log_witnesses (witness, size, cosigned_at, conflict) VALUES (?, 0, 0, ?)
    ON CONFLICT (witness) DO UPDATE SET conflict = excluded.conflict`,
  params: [witness, conflict]
})

/** Builds the statement that ends the conflict of a removed witness. The row remains, because its key verifies published cosignatures. */
export const dismissing = (witness: string): Statement => ({
  text: "UPDATE tollgate_log_witnesses SET conflict = NULL WHERE witness = ?",
  params: [witness]
})
