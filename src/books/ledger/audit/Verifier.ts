/**
 * Verifies the books of a running service at intervals. It checks the rows since the last clean verification, in slices with pauses between them.
 * Findings are logged and counted in `/metrics`. After a full verification with findings, the job checks nothing until a full one is clean, because a
 * check of only the newer rows would prove nothing.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Deferred, Effect, Fiber, Layer, Option } from "effect"
import type { Scope } from "effect"
import * as Loop from "../../../kernel/Loop.ts"
import { turn } from "../../../kernel/Pieces.ts"
import type { Finding } from "../rules/Check.ts"
import { beginning } from "./Checkpoint.ts"
import type { Pace, Progress } from "./Checkpoint.ts"
import { VerifyInterval } from "./Settings.ts"
import * as Verifications from "./Verifications.ts"
import type { VerifySince } from "./Verifications.ts"
import type { Writer } from "../write/Writer.ts"

export interface Running extends Progress {
  readonly began_at: number
  readonly whole: boolean
}

export interface VerifierContract {
  /**
   * Starts a verification in the background, of everything or of the rows after the last clean verification. Returns `false` if this process is
   * already running a verification.
   */
  readonly start: (whole: boolean) => Effect.Effect<boolean>
  /** Returns this process's running verification, started by a request or the job. */
  readonly running: () => Running | undefined
  /** Returns the first findings of this process's last verification. */
  readonly found: () => ReadonlyArray<Finding>
  /**
   * Verifies the rows since the last clean verification and returns the number of findings. Checks nothing if the last verification was clean and
   * there are no new rows, or if the last one was full and had findings.
   */
  readonly verify: Effect.Effect<number>
  /** The job that runs `verify` every `VerifyInterval`. `layerJobs` runs this job. */
  readonly job: Loop.Job
}

export class Verifier extends Context.Tag("tollgate/ledger/Verifier")<Verifier, VerifierContract>() {
  /** Provides the verifier. `load` loads the verification code on demand. */
  static readonly layer = (load: Effect.Effect<VerifySince>) => Layer.scoped(Verifier, make(load))
  static readonly layerJobs = Loop.layer(Verifier, ({ job }) => [job])
}

/** The verifier's pace. A slice takes a millisecond or two and is followed by a pause of ten milliseconds. */
const backgroundPace: Pace = { slice: 256, pause: Effect.zipRight(turn, Effect.sleep("10 millis")) }

/** The minimum time from the job's start to its first verification, in milliseconds. */
const pauseFirst = 60_000
/** The maximum time that an iteration of the job waits for a verification. A longer verification continues across iterations. */
const turnMax = "60 seconds"
/** The maximum number of findings in the log, and in memory. */
const loggedMax = 10
export const keptFindings = 50

interface Parts {
  readonly sql: SqlClient
  readonly interval: number | undefined
  readonly load: Effect.Effect<VerifySince>
  readonly context: Context.Context<Writer | SqlClient>
  readonly scope: Scope.Scope
  /** Allows one verification at a time in this process. */
  readonly alone: Effect.Semaphore
  readonly state: State
}

interface State {
  current: Running | undefined
  found: ReadonlyArray<Finding>
}

const make = (load: Effect.Effect<VerifySince>) =>
  Effect.gen(function* () {
    const parts: Parts = {
      sql: yield* SqlClient,
      interval: yield* VerifyInterval,
      load,
      context: yield* Effect.context<Writer | SqlClient>(),
      scope: yield* Effect.scope,
      alone: yield* Effect.makeSemaphore(1),
      state: { current: undefined, found: [] }
    }
    return {
      verify: verify(parts),
      start: start(parts),
      running: () => parts.state.current,
      found: () => parts.state.found,
      job: jobOf(parts)
    } satisfies VerifierContract
  })

/** Verifies the rows after the checkpoint, or everything if there is none. Returns the number of findings. */
const runVerification = Effect.fnUntraced(function* (
  { load, state }: Parts,
  checkpoint: Verifications.Verification["checkpoint"] | undefined
) {
  const verifySince = yield* load
  const whole = checkpoint === undefined
  const began_at = yield* Clock.currentTimeMillis
  state.current = { began_at, whole, rows: 0, of: 0 }
  const progress = ({ of, rows }: Progress) =>
    Effect.sync(() => {
      state.current = { began_at, whole, rows, of }
    })
  const { findings, kept } = yield* Verifications.runAndSave(
    whole,
    verifySince(checkpoint, { pace: backgroundPace, progress })
  ).pipe(Effect.ensuring(Effect.sync(() => (state.current = undefined))))
  state.found = findings.slice(0, keptFindings)
  if (findings.length > 0) {
    yield* Effect.logError(`the books are wrong: verify reports ${findings.length} findings`).pipe(
      Effect.annotateLogs(
        "findings",
        findings.slice(0, loggedMax).map(({ check, message }) => `${check}: ${message}`)
      )
    )
  }
  if (!kept) yield* Effect.logWarning("the result of verify could not be stored")
  return findings.length
})

const verify = (parts: Parts): VerifierContract["verify"] =>
  Effect.gen(function* () {
    const { sql } = parts
    const last = yield* Verifications.last(sql)
    const held = yield* Verifications.lastClean(sql)
    if (held === undefined && last?.whole === true) return last.findings
    if (held === undefined || last?.findings !== 0 || !(yield* Verifications.isNewest(sql, held.checkpoint)))
      return yield* runVerification(parts, held?.checkpoint ?? beginning)
    yield* Verifications.runAndSave(false, Effect.succeed({ findings: [], checkpoint: held.checkpoint }))
    return 0
  }).pipe(Effect.provide(parts.context), parts.alone.withPermits(1))

const start = (parts: Parts): VerifierContract["start"] =>
  Effect.fnUntraced(function* (whole) {
    const { alone, context, scope, sql } = parts
    const checkpoint = whole ? undefined : (yield* Verifications.lastClean(sql))?.checkpoint
    const began = yield* Deferred.make<boolean>()
    const run = Effect.zipRight(
      Deferred.succeed(began, true),
      Effect.provide(runVerification(parts, checkpoint), context)
    )
    const attempt = alone.withPermitsIfAvailable(1)(run)
    yield* Effect.forkIn(
      Effect.catchAllCause(Effect.zipRight(attempt, Deferred.succeed(began, false)), (cause) =>
        Effect.zipRight(Effect.logError("a verification failed", cause), Deferred.succeed(began, false))
      ),
      scope
    )
    return yield* Deferred.await(began)
  })

const jobOf = (parts: Parts): Loop.Job => {
  const { interval, scope, sql } = parts
  let due: number | undefined
  let running: Fiber.Fiber<number> | undefined
  const turnOfJob = Effect.gen(function* () {
    if (interval === undefined) return undefined
    const now = yield* Clock.currentTimeMillis
    if (due === undefined) {
      const last = yield* Verifications.last(sql)
      // A clock that was ahead must not delay the next verification.
      const next = last === undefined ? now : Math.min(last.at, now) + interval
      due = Math.max(next, now + pauseFirst)
    }
    if (now < due) return due - now
    running ??= yield* Effect.forkIn(verify(parts), scope)
    const exit = yield* Effect.timeoutOption(Fiber.await(running), turnMax)
    if (Option.isNone(exit)) return 0
    running = undefined
    due = (yield* Clock.currentTimeMillis) + interval
    yield* exit.value
    return interval
  })
  return { name: "verifier", turn: turnOfJob, takeOver: Effect.sync(() => (due = undefined)) }
}
