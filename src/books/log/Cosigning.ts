/**
 * Collects witnesses' cosignatures for the log's checkpoints (C2SP tlog-witness), and publishes checkpoints with enough cosignatures. A witness
 * cosigns a checkpoint only if the log has only grown since its last cosignature, so two customers who trust the same witnesses cannot be shown two
 * histories. Neither charges nor new checkpoints wait for a witness.
 *
 * Where the specification is silent:
 * - With witnesses, `GET /checkpoint` and receipts contain the newest checkpoint that enough witnesses have cosigned. If that takes more than ten
 *   seconds, they contain the newest checkpoint with the available cosignatures, so that receipts are not delayed further. A client that requires
 *   witnesses rejects these receipts. Before the first published checkpoint, there are no receipts.
 * - All witnesses are required unless the configuration sets a number. A later cosignature is added to the published checkpoint.
 * - The request to a failed witness is retried after a second. The pause doubles with each further failure, up to a minute.
 * - A witness contradicts the log if it rejects the consistency proof, knows a longer log, or knows another root of the same size. `verify` reports
 *   this until the witness cosigns again or is removed from the configuration. Restoring a backup can cause the same contradiction.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import type { BooksUnavailable } from "../ledger/rules/Problems.ts"
import { write } from "../ledger/write/Statements.ts"
import { Writer } from "../ledger/write/Writer.ts"
import type { WriterContract } from "../ledger/write/Writer.ts"
import * as Head from "./Head.ts"
import * as Note from "./Note.ts"
import * as Published from "./Published.ts"
import { LogSettings } from "./Settings.ts"
import type { LogFacts, Witness } from "./Settings.ts"
import * as Tree from "./Tree.ts"

/** A witness's reply to a checkpoint. */
export type WitnessReply =
  /** The reply's signature lines. */
  | { readonly _tag: "Cosigned"; readonly lines: string }
  /** The witness last cosigned a checkpoint of another size (409). */
  | { readonly _tag: "OtherSize"; readonly size: number }
  /** The consistency proof is wrong (422). */
  | { readonly _tag: "Inconsistent" }
  /** The request failed for another reason, such as a timeout. */
  | { readonly _tag: "Failed"; readonly reason: string }

/** Sends the body of an `add-checkpoint` request to a witness. */
export type SendToWitness = (witness: Witness, body: string) => Effect.Effect<WitnessReply>

/** A witness's state, for the metrics. */
export interface WitnessFigures {
  readonly witness: string
  /** The time since its last cosignature; 0 if it has cosigned the newest checkpoint, and infinity if it has never cosigned. */
  readonly lag_seconds: number
  /** Whether the witness contradicts the log. */
  readonly conflict: boolean
}

export interface CosigningContract {
  /**
   * Sends the newest checkpoint to the witnesses that have not cosigned it, except those that pause after a failure. Returns the number of new
   * cosignatures; `undefined` if every witness has cosigned or the log is empty.
   */
  readonly round: (ask: SendToWitness) => Effect.Effect<number | undefined, BooksUnavailable>
  /** Ends the conflicts of removed witnesses. Without witnesses, deletes the published checkpoint. */
  readonly dismiss: Effect.Effect<void, BooksUnavailable>
  readonly figures: Effect.Effect<ReadonlyArray<WitnessFigures>>
}

export class Cosigning extends Context.Tag("tollgate/log/Cosigning")<Cosigning, CosigningContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Cosigning, make))
}

/** How long the newest checkpoint waits for cosignatures before it is published without them, in milliseconds. */
const cosignTimeout = 10_000
/** The pause after a failure, in milliseconds. It doubles from the first value to the last. */
const pauseFirst = 1_000
const pauseLast = 60_000
/** The maximum number of requests to a witness per round. The first can return the witness's size, which can change once more. */
const requestsMax = 3

interface Parts {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly settings: LogFacts
  /** When this process started. */
  readonly began: number
  /** The time since which checkpoints lack cosignatures. */
  readonly waiting: { since: number | undefined }
  readonly state: Map<string, WitnessState>
}

interface WitnessState {
  /** The size of the checkpoint that the witness last cosigned, as far as known. */
  size: number
  failures: number
  /** No request is sent before this time. */
  pausedUntil: number
}

const make = Effect.gen(function* () {
  const parts: Parts = {
    sql: yield* SqlClient,
    writer: yield* Writer,
    settings: yield* LogSettings,
    began: yield* Clock.currentTimeMillis,
    waiting: { since: undefined },
    state: new Map()
  }
  return { round: roundOf(parts), dismiss: dismissOf(parts), figures: figuresOf(parts) } satisfies CosigningContract
})

// ---- a round ------------------------------------------------------------------------------------------------------------

/** The newest checkpoint, with its cosignatures so far. */
interface Round {
  readonly head: Head.Head
  readonly text: string
  readonly lines: Array<string>
  /** When enough witnesses last cosigned a checkpoint. */
  cosigned_at: number
}

const roundOf =
  (parts: Parts): CosigningContract["round"] =>
  (ask) =>
    Effect.gen(function* () {
      const { settings, sql } = parts
      const head = yield* Effect.orDie(Head.readShort(sql))
      const published = yield* Effect.orDie(Published.read(sql))
      // Most rounds end here, without reading the tiles. An empty log needs no cosignatures.
      if (head === undefined || head.size === 0 || isComplete(published, head, settings)) {
        parts.waiting.since = undefined
        return undefined
      }
      parts.waiting.since ??= yield* Clock.currentTimeMillis
      const round = yield* begun(parts, published)
      if (round === undefined) return undefined
      const before = round.lines.length
      yield* Effect.forEach(yield* due(parts, round), (witness) => requestCosignature(parts, round, witness, ask), {
        concurrency: "unbounded",
        discard: true
      })
      yield* withoutEnough(parts, round, published)
      return round.lines.length - before
    })

/** Returns whether every witness has cosigned the newest checkpoint. */
const isComplete = (
  published: Published.Published | undefined,
  head: { readonly size: number },
  { witnesses }: LogFacts
): boolean => {
  if (published?.size !== head.size) return false
  const lines = Note.partsOf(published.checkpoint)?.lines ?? []
  return witnesses.every(({ key }) => lines.some((line) => Note.isCosignatureBy(line, key)))
}

const begun = Effect.fnUntraced(function* (
  { began, settings, sql }: Parts,
  published: Published.Published | undefined
) {
  const head = yield* Effect.orDie(Head.read(sql))
  const text = head === undefined ? undefined : Note.partsOf(head.checkpoint)?.text
  if (head === undefined || text === undefined) return undefined
  const parts = published?.size === head.edge.size ? Note.partsOf(published.checkpoint) : undefined
  // Cosignatures remain valid when the log's key changes, because they cover only the text.
  const lines = parts?.text === text ? parts.lines : []
  const isConfigured = (line: string) => settings.witnesses.some(({ key }) => Note.isCosignatureBy(line, key))
  const round: Round = {
    head,
    text,
    lines: lines.filter(isConfigured),
    cosigned_at: published?.cosigned_at || began
  }
  return round
})

/** Returns the witnesses that have not cosigned and do not pause after a failure. */
const due = Effect.fnUntraced(function* ({ settings, sql, state }: Parts, { lines }: Round) {
  const now = yield* Clock.currentTimeMillis
  const missing = settings.witnesses.filter(({ key }) => !lines.some((line) => Note.isCosignatureBy(line, key)))
  if (missing.some(({ verifier }) => !state.has(verifier))) {
    const rows = yield* Effect.orDie(Published.witnesses(sql))
    for (const { verifier } of missing) {
      if (state.has(verifier)) continue
      const size = rows.find(({ witness }) => witness === verifier)?.size ?? 0
      state.set(verifier, { size, failures: 0, pausedUntil: 0 })
    }
  }
  return missing.filter(({ verifier }) => state.get(verifier)!.pausedUntil <= now)
})

/** Sends the checkpoint to a witness until it cosigns, rejects it or fails. */
const requestCosignature = Effect.fnUntraced(function* (
  parts: Parts,
  round: Round,
  witness: Witness,
  ask: SendToWitness
) {
  const { head } = round
  const state = parts.state.get(witness.verifier)!
  for (let i = 0; i < requestsMax; i++) {
    const { size } = state
    if (size > head.edge.size) return yield* longer(parts, round, witness, size)
    const proof = yield* Effect.orDie(Head.roots(parts.sql, Tree.consistencyRanges(size, head.edge.size)))
    const reply = yield* ask(witness, bodyOf(size, proof, head.checkpoint))
    if (reply._tag === "Cosigned") return yield* recordCosignature(parts, round, witness, reply.lines)
    if (reply._tag === "Failed") return yield* reportFailure(parts, witness, reply.reason)
    if (reply._tag === "Inconsistent")
      return yield* recordConflict(parts, witness, `it refuses the proof that the log of ${size} entries grew`)
    if (reply.size === size && size === head.edge.size)
      return yield* recordConflict(parts, witness, `it knows another root of the log of ${size} entries`)
    if (reply.size === size)
      return yield* reportFailure(parts, witness, `it refuses the size ${size} that it states itself`)
    state.size = reply.size
  }
  yield* reportFailure(parts, witness, "it states another size each time")
})

const bodyOf = (old: number, proof: ReadonlyArray<Uint8Array>, checkpoint: string): string =>
  `old ${old}\n${proof.map((hash) => `${Buffer.from(hash).toString("base64")}\n`).join("")}\n${checkpoint}`

/** Handles a witness that knows a longer log. Either another node has sent a newer checkpoint, or the log has lost entries. */
const longer = Effect.fnUntraced(function* (parts: Parts, { head }: Round, witness: Witness, size: number) {
  const newest = yield* Effect.orDie(Head.readShort(parts.sql))
  if ((newest?.size ?? 0) >= size) return
  yield* recordConflict(parts, witness, `it knows ${size} entries, but the log has only ${head.edge.size}`)
  // Ask for the size again next time, because the witness's operator might reset it.
  parts.state.get(witness.verifier)!.size = 0
})

const recordCosignature = Effect.fnUntraced(function* (parts: Parts, round: Round, witness: Witness, reply: string) {
  const { head, text } = round
  const line = reply.split("\n").find((one) => Note.cosignedAt(one, text, witness.key) !== undefined)
  if (line === undefined) return yield* reportFailure(parts, witness, "its reply has no valid cosignature by its key")
  const now = yield* Clock.currentTimeMillis
  const { size } = head.edge
  const state = parts.state.get(witness.verifier)!
  if (state.failures > 0)
    yield* Effect.logInfo("a witness cosigns the log again").pipe(Effect.annotateLogs({ witness: witness.key.name }))
  parts.state.set(witness.verifier, { size, failures: 0, pausedUntil: 0 })
  round.lines.push(line)
  const isEnough = round.lines.length >= parts.settings.required
  if (isEnough) {
    round.cosigned_at = now
    parts.waiting.since = undefined
  }
  yield* write(
    parts.writer,
    Published.cosigning({ witness: witness.verifier, size, cosigned_at: now }),
    ...(isEnough ? [Published.publishing(publishedOf(round))] : [])
  )
})

const publishedOf = ({ cosigned_at, head, lines }: Round): Published.Published => ({
  size: head.edge.size,
  entry: head.entry,
  checkpoint: head.checkpoint + lines.map((line) => `${line}\n`).join(""),
  cosignatures: lines.length,
  cosigned_at
})

/** Publishes the checkpoint with too few cosignatures if the required number has been missing for too long. */
const withoutEnough = Effect.fnUntraced(function* (
  { settings, waiting, writer }: Parts,
  round: Round,
  published: Published.Published | undefined
) {
  if (round.lines.length >= settings.required) return
  // While the log does not grow, no cosignatures are missing.
  const since = Math.max(round.cosigned_at, waiting.since ?? 0)
  if ((yield* Clock.currentTimeMillis) - since < cosignTimeout) return
  yield* write(writer, Published.publishing({ ...publishedOf(round), cosigned_at: published?.cosigned_at ?? 0 }))
})

// ---- failures -----------------------------------------------------------------------------------------------------------

const pause = Effect.fnUntraced(function* ({ state }: Parts, { verifier }: Witness) {
  const found = state.get(verifier)!
  found.pausedUntil = (yield* Clock.currentTimeMillis) + Math.min(pauseLast, pauseFirst * 2 ** found.failures)
  found.failures++
})

const reportFailure = (parts: Parts, witness: Witness, reason: string) =>
  Effect.zipRight(
    pause(parts, witness),
    Effect.logWarning("a witness does not cosign the log").pipe(
      Effect.annotateLogs({ witness: witness.key.name, reason })
    )
  )

const recordConflict = Effect.fnUntraced(function* (parts: Parts, witness: Witness, conflict: string) {
  yield* pause(parts, witness)
  yield* Effect.logError("a witness contradicts the log of charges").pipe(
    Effect.annotateLogs({ witness: witness.key.name, reason: conflict })
  )
  yield* write(parts.writer, Published.conflicting(witness.verifier, conflict))
})

const dismissOf = ({ settings, sql, writer }: Parts): CosigningContract["dismiss"] =>
  Effect.gen(function* () {
    const rows = yield* Effect.orDie(Published.witnesses(sql))
    const gone = rows.filter(
      ({ conflict, witness }) => conflict !== null && !settings.witnesses.some(({ verifier }) => verifier === witness)
    )
    const statements = gone.map(({ witness }) => Published.dismissing(witness))
    if (settings.witnesses.length === 0 && (yield* Effect.orDie(Published.read(sql))) !== undefined)
      statements.push(Published.forgetting)
    if (statements.length > 0) yield* write(writer, ...statements)
  })

// ---- figures ------------------------------------------------------------------------------------------------------------

const figuresOf = ({ settings, sql }: Parts): CosigningContract["figures"] =>
  Effect.gen(function* () {
    if (settings.witnesses.length === 0) return []
    const now = yield* Clock.currentTimeMillis
    const size = (yield* Head.readShort(sql))?.size ?? 0
    const rows = yield* Published.witnesses(sql)
    return settings.witnesses.map(({ key, verifier }): WitnessFigures => {
      const row = rows.find(({ witness }) => witness === verifier)
      const isNewest = row !== undefined && row.size >= size && row.cosigned_at > 0
      const since = row === undefined || row.cosigned_at === 0 ? Number.POSITIVE_INFINITY : now - row.cosigned_at
      return {
        witness: key.name,
        lag_seconds: isNewest ? 0 : Math.max(0, since / 1000),
        conflict: row !== undefined && row.conflict !== null
      }
    })
  }).pipe(Effect.orDie)
