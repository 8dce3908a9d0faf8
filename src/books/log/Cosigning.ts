/**
 * Collects witnesses' cosignatures for the log's checkpoints (C2SP tlog-witness), and publishes checkpoints that have enough of them. A witness
 * cosigns a checkpoint only if the log still begins with everything that the witness saw before, so two customers who trust the same witnesses
 * cannot be shown two histories. No charge and no new checkpoint waits for a witness.
 *
 * Where the specification is silent:
 * - With witnesses, `GET /checkpoint` and receipts show the newest checkpoint that enough witnesses cosigned. If that takes more than ten seconds,
 *   they show the newest checkpoint with the cosignatures that it has, so that receipts go on. A client that requires witnesses refuses those. There is
 *   no receipt before the first of these checkpoints.
 * - All witnesses are required unless the configuration states a number. A cosignature that arrives later is added to the published checkpoint.
 * - A witness that fails is asked again after a second, and after twice the time for each further failure, up to a minute.
 * - A witness contradicts the log if it refuses the consistency proof, knows a longer log, or knows another root of the same size. `verify` reports
 *   that until the witness cosigns again or is removed from the configuration. A restored backup has the same effect.
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
  /** The signature lines of the reply. */
  | { readonly _tag: "Cosigned"; readonly lines: string }
  /** The witness last cosigned a checkpoint of another size (409). */
  | { readonly _tag: "OtherSize"; readonly size: number }
  /** The consistency proof is wrong (422). */
  | { readonly _tag: "Inconsistent" }
  /** There is no cosignature for another reason, such as a timeout. */
  | { readonly _tag: "Failed"; readonly reason: string }

/** Sends the body of an `add-checkpoint` request to a witness. */
export type AskWitness = (witness: Witness, body: string) => Effect.Effect<WitnessReply>

/** A witness's state, for the metrics. */
export interface WitnessFigures {
  readonly witness: string
  /** Time since its last cosignature, if the log has a newer checkpoint; else 0. Infinite if it never cosigned. */
  readonly lag_seconds: number
  /** Whether it contradicts the log. */
  readonly conflict: boolean
}

export interface CosigningContract {
  /**
   * Asks every witness that has not cosigned the newest checkpoint. Returns the number of new cosignatures; `undefined` if every witness has cosigned
   * it.
   */
  readonly round: (ask: AskWitness) => Effect.Effect<number | undefined, BooksUnavailable>
  /** Withdraws what witnesses that are not configured any more left behind. */
  readonly dismiss: Effect.Effect<void, BooksUnavailable>
  readonly figures: Effect.Effect<ReadonlyArray<WitnessFigures>>
}

export class Cosigning extends Context.Tag("tollgate/log/Cosigning")<Cosigning, CosigningContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Cosigning, make))
}

/** How long the newest checkpoint waits for cosignatures before it is published without them, in milliseconds. */
const patience = 10_000
/** The pause after a failure, which doubles from the first value to the last, in milliseconds. */
const pauseFirst = 1_000
const pauseLast = 60_000
/** The number of requests to a witness in a round: its size may have to be asked for, and may change once. */
const requestsMax = 3

interface Parts {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly settings: LogFacts
  /** When this process began to wait for the first cosignatures. */
  readonly began: number
  /** Since when the newest checkpoint lacks cosignatures. */
  readonly waiting: { since: number | undefined }
  readonly state: Map<string, WitnessState>
}

interface WitnessState {
  /** The size of the checkpoint that the witness last cosigned, as far as is known. */
  size: number
  failures: number
  /** The witness is not asked before this time. */
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

/** The newest checkpoint, with the cosignatures that arrived so far. */
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
      // Most rounds have nothing to do, and do not read the tiles. An empty log says nothing.
      if (head === undefined || head.size === 0 || isComplete(published, head, settings)) {
        parts.waiting.since = undefined
        return undefined
      }
      parts.waiting.since ??= yield* Clock.currentTimeMillis
      const round = yield* begun(parts, published)
      if (round === undefined) return undefined
      const before = round.lines.length
      yield* Effect.forEach(yield* due(parts, round), (witness) => asked(parts, round, witness, ask), {
        concurrency: "unbounded",
        discard: true
      })
      yield* withoutEnough(parts, round, published)
      return round.lines.length - before
    })

/** Whether every witness has cosigned the newest checkpoint. */
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
  // Cosignatures of a checkpoint that another key of the log signed stay valid, because its text is the same.
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

/** The witnesses to ask: those without a cosignature that do not pause after a failure. */
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

/** Asks a witness until it cosigns, refuses or fails. */
const asked = Effect.fnUntraced(function* (parts: Parts, round: Round, witness: Witness, ask: AskWitness) {
  const { head } = round
  const state = parts.state.get(witness.verifier)!
  for (let i = 0; i < requestsMax; i++) {
    const { size } = state
    if (size > head.edge.size) return yield* longer(parts, round, witness, size)
    const proof = yield* Effect.orDie(Head.roots(parts.sql, Tree.consistencyRanges(size, head.edge.size)))
    const reply = yield* ask(witness, bodyOf(size, proof, head.checkpoint))
    if (reply._tag === "Cosigned") return yield* cosigned(parts, round, witness, reply.lines)
    if (reply._tag === "Failed") return yield* failed(parts, witness, reply.reason)
    if (reply._tag === "Inconsistent")
      return yield* contradicted(parts, witness, `it refuses the proof that the log of ${size} entries grew`)
    if (reply.size === size && size === head.edge.size)
      return yield* contradicted(parts, witness, `it knows another root of the log of ${size} entries`)
    if (reply.size === size) return yield* failed(parts, witness, `it refuses the size ${size} that it states itself`)
    state.size = reply.size
  }
  yield* failed(parts, witness, "it states another size each time")
})

const bodyOf = (old: number, proof: ReadonlyArray<Uint8Array>, checkpoint: string): string =>
  `old ${old}\n${proof.map((hash) => `${Buffer.from(hash).toString("base64")}\n`).join("")}\n${checkpoint}`

/** Another node may have sent a newer checkpoint. Otherwise, the witness knows entries that the log lost. */
const longer = Effect.fnUntraced(function* (parts: Parts, { head }: Round, witness: Witness, size: number) {
  const newest = yield* Effect.orDie(Head.readShort(parts.sql))
  if ((newest?.size ?? 0) >= size) return
  yield* contradicted(parts, witness, `it knows ${size} entries, but the log has only ${head.edge.size}`)
  // The size is asked for again, because the witness may have a reason to go back.
  parts.state.get(witness.verifier)!.size = 0
})

const cosigned = Effect.fnUntraced(function* (parts: Parts, round: Round, witness: Witness, reply: string) {
  const { head, text } = round
  const line = reply.split("\n").find((one) => Note.cosignedAt(one, text, witness.key) !== undefined)
  if (line === undefined) return yield* failed(parts, witness, "its reply has no valid cosignature by its key")
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

/** Publishes the checkpoint with too few cosignatures, if enough of them have been missing for too long. */
const withoutEnough = Effect.fnUntraced(function* (
  { settings, waiting, writer }: Parts,
  round: Round,
  published: Published.Published | undefined
) {
  if (round.lines.length >= settings.required) return
  // While the log does not grow, nothing is missing.
  const since = Math.max(round.cosigned_at, waiting.since ?? 0)
  if ((yield* Clock.currentTimeMillis) - since < patience) return
  yield* write(writer, Published.publishing({ ...publishedOf(round), cosigned_at: published?.cosigned_at ?? 0 }))
})

// ---- failures -----------------------------------------------------------------------------------------------------------

const pause = Effect.fnUntraced(function* ({ state }: Parts, { verifier }: Witness) {
  const found = state.get(verifier)!
  found.pausedUntil = (yield* Clock.currentTimeMillis) + Math.min(pauseLast, pauseFirst * 2 ** found.failures)
  found.failures++
})

const failed = (parts: Parts, witness: Witness, reason: string) =>
  Effect.zipRight(
    pause(parts, witness),
    Effect.logWarning("a witness does not cosign the log").pipe(
      Effect.annotateLogs({ witness: witness.key.name, reason })
    )
  )

const contradicted = Effect.fnUntraced(function* (parts: Parts, witness: Witness, conflict: string) {
  yield* pause(parts, witness)
  yield* Effect.logError("a witness contradicts the log of charges").pipe(
    Effect.annotateLogs({ witness: witness.key.name, reason: conflict })
  )
  yield* write(parts.writer, Published.conflicting(witness.verifier, conflict))
})

/** Ends the conflicts of witnesses that are not configured any more. Without witnesses, every checkpoint is published once it is signed. */
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
