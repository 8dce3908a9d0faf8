/** The rows of the published checkpoint, which has cosignatures, and of the witnesses. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import type { Statement } from "../ledger/rules/Transaction.ts"

/** The checkpoint that `GET /checkpoint` and receipts show. */
export interface Published {
  readonly size: number
  /** The row of its newest entry. */
  readonly entry: number
  /** The signed note, with the cosignatures. */
  readonly checkpoint: string
  readonly cosignatures: number
  /** When as many witnesses as required last cosigned a checkpoint, in milliseconds since 1970. 0: never. */
  readonly cosigned_at: number
}

/** `undefined` before the first checkpoint that was published for witnesses. */
export const read = (sql: SqlClient): Effect.Effect<Published | undefined, SqlError> =>
  Effect.map(
    sql<Published>`SELECT size, entry, checkpoint, cosignatures, cosigned_at FROM tollgate_log_published`,
    ([row]) => row
  )

/** Publishes a checkpoint. It never replaces a larger one, nor the same one with as many cosignatures. */
export const publishing = ({ checkpoint, cosignatures, cosigned_at, entry, size }: Published): Statement => ({
  text: `INSERT INTO tollgate_log_published (id, size, entry, checkpoint, cosignatures, cosigned_at) VALUES (1, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET size = excluded.size, entry = excluded.entry, checkpoint = excluded.checkpoint,
      cosignatures = excluded.cosignatures, cosigned_at = excluded.cosigned_at
    WHERE excluded.size > tollgate_log_published.size
      OR (excluded.size = tollgate_log_published.size AND excluded.cosignatures > tollgate_log_published.cosignatures)`,
  params: [size, entry, checkpoint, cosignatures, cosigned_at]
})

/** Forgets the published checkpoint, for a log that has no witnesses any more. */
export const forgetting: Statement = { text: "DELETE FROM tollgate_log_published", params: [] }

// ---- witnesses ----------------------------------------------------------------------------------------------------------

/** A witness, by its verifier key. */
export interface WitnessRow {
  readonly witness: string
  /** The size of the newest checkpoint that it cosigned; 0 before the first. */
  readonly size: number
  /** In milliseconds since 1970. 0: never. */
  readonly cosigned_at: number
  /** Why the witness contradicts the log; `null` if it does not. */
  readonly conflict: string | null
}

export const witnesses = (sql: SqlClient): Effect.Effect<ReadonlyArray<WitnessRow>, SqlError> =>
  sql<WitnessRow>`SELECT witness, size, cosigned_at, conflict FROM tollgate_log_witnesses ORDER BY witness`

/** Records a cosignature. It ends a conflict. */
export const cosigning = ({ cosigned_at, size, witness }: Omit<WitnessRow, "conflict">): Statement => ({
  text: `INSERT INTO tollgate_log_witnesses (witness, size, cosigned_at, conflict) VALUES (?, ?, ?, NULL)
    ON CONFLICT (witness) DO UPDATE SET size = excluded.size, cosigned_at = excluded.cosigned_at, conflict = NULL`,
  params: [witness, size, cosigned_at]
})

/** Records that a witness contradicts the log. */
export const conflicting = (witness: string, conflict: string): Statement => ({
  text: `INSERT INTO tollgate_log_witnesses (witness, size, cosigned_at, conflict) VALUES (?, 0, 0, ?)
    ON CONFLICT (witness) DO UPDATE SET conflict = excluded.conflict`,
  params: [witness, conflict]
})

/** Ends the conflict of a witness that is not configured any more. Its row stays, because its key verifies published cosignatures. */
export const dismissing = (witness: string): Statement => ({
  text: "UPDATE tollgate_log_witnesses SET conflict = NULL WHERE witness = ?",
  params: [witness]
})
