/** Schemas for receipts as shown to clients. */
import { Schema } from "effect"

export interface Receipt extends Schema.Schema.Type<typeof Receipt> {}
export const Receipt = Schema.Struct({
  leaf: Schema.String.annotations({
    description:
      "The entry as text, with one `name value` per line. Amounts are in nano-USD, and `time` is in milliseconds"
  }),
  index: Schema.NonNegativeInt.annotations({ description: "The position of the leaf in the log, from 0" }),
  proof: Schema.String.annotations({
    description: "The hashes of the inclusion proof (RFC 6962), from the leaf upwards, one after another in base64"
  }),
  checkpoint: Schema.String.annotations({ description: "The signed head of the log (C2SP tlog-checkpoint)" })
}).annotations({ identifier: "Receipt" })

export interface LogKeys extends Schema.Schema.Type<typeof LogKeys> {}
export const LogKeys = Schema.Struct({
  keys: Schema.Array(Schema.String).annotations({
    description:
      "The verifier keys of the log (C2SP signed-note), newest first. Compare them with a copy from another source"
  })
}).annotations({ identifier: "LogKeys" })
