/** Schemas for receipts as shown to clients. */
import { Schema } from "effect"
import { parse } from "../../kernel/Moment.ts"

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

export interface LogWitness extends Schema.Schema.Type<typeof LogWitness> {}
export const LogWitness = Schema.Struct({
  name: Schema.String,
  key: Schema.String.annotations({ description: "The verifier key of its cosignatures (C2SP tlog-cosignature)" })
}).annotations({ identifier: "LogWitness" })

export interface LogKeys extends Schema.Schema.Type<typeof LogKeys> {}
export const LogKeys = Schema.Struct({
  keys: Schema.Array(Schema.String).annotations({
    description:
      "The verifier keys of the log (C2SP signed-note), newest first. Compare them with a copy from another source"
  }),
  witnesses: Schema.Array(LogWitness).annotations({
    description:
      "The witnesses that this service asks to cosign the log. Compare their keys with those that the witnesses publish"
  })
}).annotations({ identifier: "LogKeys" })

const dayDescription = "The UTC day; by default the newest with a proof"

/** A UTC day, such as `2026-03-01`, in a query. */
export const LiabilityDay = Schema.String.pipe(
  Schema.filter((text) => text.length === 10 && parse(text) !== undefined, {
    message: () => "must be a date like 2026-03-01",
    jsonSchema: { type: "string", format: "date", description: dayDescription }
  })
).annotations({ description: dayDescription })

const statement = Schema.String.annotations({
  description:
    "The total of all balances at the end of the day in nano-USD, the number of accounts and of ledger entries, and the root of the tree, signed by the log's key (C2SP signed-note)"
})

export interface LiabilityStatement extends Schema.Schema.Type<typeof LiabilityStatement> {}
export const LiabilityStatement = Schema.Struct({ day: Schema.String, statement }).annotations({
  identifier: "LiabilityStatement"
})

export interface LiabilityProof extends Schema.Schema.Type<typeof LiabilityProof> {}
export const LiabilityProof = Schema.Struct({
  day: Schema.String,
  leaf: Schema.String.annotations({
    description:
      "The balance as text, one `name value` per line, in nano-USD; `entry` is the number of the last ledger entry"
  }),
  index: Schema.NonNegativeInt.annotations({ description: "The position of the leaf in the tree, from 0" }),
  proof: Schema.String.annotations({
    description:
      "The nodes beside the way from the leaf to the root, in base64: each is a sum (16 bytes, the most significant first) and a hash (32 bytes)"
  }),
  statement
}).annotations({ identifier: "LiabilityProof" })
