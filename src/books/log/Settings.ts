/** Settings for the log of charges: `log`. */
import { Context, Layer, Schema } from "effect"
import { Address, Count, readAs, Seconds } from "../../kernel/Setting.ts"
import * as Note from "./Note.ts"
import type { NoteKey } from "./Note.ts"

/** A server that cosigns the log's checkpoints (C2SP tlog-witness). */
export interface Witness {
  /** The URL prefix for `add-checkpoint`. */
  readonly url: string
  /** The witness's name and key. */
  readonly key: NoteKey
  /** `key` as a verifier key, which identifies the witness in the database. */
  readonly verifier: string
}

const keyRule = "must be a verifier key for Ed25519 cosignatures: name+id+base64, with the type 4"

/** The maximum number of witnesses, and the maximum length of a witness's name in bytes. A receipt can contain a line for each witness. */
const witnessesMax = 8
export const nameMax = 48

const nameRule = `must contain a name of at most ${nameMax} bytes`
const isShort = (key: string): boolean => Buffer.byteLength(key.split("+", 1)[0]!) <= nameMax

const WitnessEntry = readAs(
  Schema.Struct({
    url: Address.pipe(
      Schema.filter((url) => !/[?#]/.test(url), { message: () => "must be a URL without a query or a fragment" })
    ),
    key: Schema.String.pipe(
      Schema.filter((key) => Note.cosignerOf(key) !== undefined, { message: () => keyRule }),
      Schema.filter(isShort, { message: () => nameRule })
    )
  }),
  ({ key, url }): Witness => ({ url, key: Note.cosignerOf(key)!, verifier: key })
)

/** Finds repeated witnesses, because a witness that counted twice would make one operator look like two. */
const repeated = (witnesses: ReadonlyArray<Witness>): ReadonlyArray<Schema.FilterIssue> =>
  witnesses.flatMap(({ key, url }, i) => {
    const earlier = witnesses.slice(0, i)
    return [
      ...(earlier.some((one) => one.key.name === key.name || one.key.public === key.public)
        ? [{ path: ["witnesses", i, "key"], message: "an earlier witness has this name or this public key" }]
        : []),
      ...(earlier.some((one) => one.url === url)
        ? [{ path: ["witnesses", i, "url"], message: "an earlier witness has this address" }]
        : [])
    ]
  })

const Log = Schema.Struct({
  witnesses: Schema.optionalWith(
    Schema.Array(WitnessEntry).pipe(
      Schema.maxItems(witnessesMax, { message: () => `must contain at most ${witnessesMax} witnesses` })
    ),
    { default: () => [] }
  ),
  /** The number of witnesses that must cosign a checkpoint. The default is all. */
  required: Schema.optional(Count),
  /** The minimum time between checkpoints that are sent to the witnesses. */
  cosign_seconds: Schema.optionalWith(Seconds, { default: () => 1_000 }),
  /** Whether a proof of liabilities is published every day. */
  liabilities: Schema.optionalWith(Schema.Boolean, { default: () => true })
}).pipe(
  Schema.filter(({ required = 0, witnesses }) => [
    ...repeated(witnesses),
    ...(required > witnesses.length
      ? [{ path: ["required"], message: `must be at most ${witnesses.length}, the number of witnesses` }]
      : [])
  ])
)

export const fields = {
  log: Schema.optionalWith(Log, { default: () => Schema.decodeSync(Log)({}) })
}

export interface LogFacts {
  readonly witnesses: ReadonlyArray<Witness>
  readonly required: number
  readonly cosign_ms: number
  readonly liabilities: boolean
}

/** The log's settings. By default, it has no witnesses and publishes a proof of liabilities every day. */
export class LogSettings extends Context.Reference<LogSettings>()("tollgate/log/LogSettings", {
  defaultValue: (): LogFacts => ({ witnesses: [], required: 0, cosign_ms: 1_000, liabilities: true })
}) {}

export const layer = ({ log }: { readonly log: typeof Log.Type }) =>
  Layer.succeed(LogSettings, {
    witnesses: log.witnesses,
    required: log.required ?? log.witnesses.length,
    cosign_ms: log.cosign_seconds,
    liabilities: log.liabilities
  })
