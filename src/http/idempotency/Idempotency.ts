/**
 * Idempotency-Keys for metered routes. A repeated request gets the saved response and costs nothing. Only the HTTP layer knows about
 * keys.
 *
 * A request claims its key before the call, and the transaction that admits the call ties the key to the call. If the call reached no provider, the
 * key is released. A retry after a refusal is therefore a new attempt. A retry after a call is not, even if the call cost nothing.
 *
 * A key without a response is in use by a request, or it is abandoned: its process was killed, or the response could not be stored. An abandoned key
 * that is not tied to a call can be used like a new one. If it is tied to a call, `resume` responds from the job that the call created. If there is
 * no job, the response is `idempotency_in_flight` while the call is open and `idempotency_answer_lost` afterwards.
 *
 * Where the specification is silent:
 * - A key belongs to a tenant, an account and a holder. The holder is the application of an API key, the OAuth client of a token, or the user's own
 *   sign-ins. An application can neither read another application's response nor block its keys. The holder does not change when a token is refreshed
 *   or the user signs in again, so a later retry is not charged again. A retry with another application's key is a different call. Keys from earlier
 *   versions have no holder, and every credential of their account can use them until they are deleted.
 * - Keys are stored for seven days, and longer while their call is open. Responses are stored exactly as sent, and streams as their bytes. A response
 *   that is longer than 8 MiB or ended early is not stored. The key then gets 409 `idempotency_answer_lost`, and the usage record identified by
 *   `details.usage_id` states the charge. A refusal before any provider was reached releases the key. A later failure is replayed.
 * - Up to 10,000 responses are stored per account, with a total of 32 MiB after compression (`idempotency` in the configuration). Beyond either
 *   limit, the oldest responses are deleted, but not their keys. A replay then gets its response from the job that the call created, or 409
 *   `idempotency_answer_lost` if there is no job. No replay makes a second call.
 * - If a response was not stored because the process was killed or the books could not be written, the key gets the response from the job that its
 *   call created. If there is no job, the key gets 409 `idempotency_in_flight` while the call is open and `idempotency_answer_lost` afterwards. This
 *   applies even if the call was interrupted and cost nothing. No provider is called a second time.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Cause, Clock, Context, Deferred, Duration, Effect, Exit, Fiber, FiberId, Layer } from "effect"
import { createHash } from "node:crypto"
import type { Readable } from "node:stream"
import { drainLimit, OnLateSettlement } from "../../books/gate/Gate.ts"
import type { Claim } from "../../books/gate/Gate.ts"
import type { Shape } from "../contract/Annotations.ts"
import { problemOf } from "../lanes/Fault.ts"
import { withBody } from "../transport/Inbound.ts"
import type { Inbound } from "../transport/Inbound.ts"
import * as Reply from "../transport/Reply.ts"
import type { Caller } from "../../kernel/Caller.ts"
import * as FiberPool from "../../kernel/hot/FiberPool.ts"
import { usageOf } from "../../kernel/Ids.ts"
import * as Loop from "../../kernel/Loop.ts"
import { turn } from "../../kernel/Pieces.ts"
import type { ProblemInstance } from "../../kernel/Problem.ts"
import { isNotStarted } from "../../kernel/ReadOn.ts"
import * as Calls from "../../books/ledger/Calls.ts"
import { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { untilWritten, Writer } from "../../books/ledger/write/Writer.ts"
import { Runs } from "../../storage/engine/Runs.ts"
import { closeIfUnclaimed } from "../../upstream/wire/ByteStream.ts"
import * as Answers from "./Answers.ts"
import * as StoredAnswers from "./StoredAnswers.ts"
import * as Keys from "./Keys.ts"
import type { Key, PackedAnswer, StoredAnswer } from "./Keys.ts"
import { IdempotencyInFlight, IdempotencyKeyInvalid, IdempotencyKeyReused } from "./Problems.ts"

export type IdempotencyProblem = IdempotencyKeyInvalid | IdempotencyKeyReused | IdempotencyInFlight | BooksUnavailable

/** The statements that tie the key to the call. They are added to the call's claim. */
export type Beside = NonNullable<Claim["beside"]>

export interface IdempotencyContract {
  /**
   * Runs the call unless the request's key was already used. A request without a key always runs. For a request with a key, the body of up to `limit`
   * bytes is read first. Two requests count as the same request if they send the same bytes to the same route. `resume` can respond for an earlier
   * call that has no stored response. `shape` is the format of the route's refusals, which are stored too.
   */
  readonly onceOf: <E extends ProblemInstance<string>, R>(
    caller: Caller,
    inbound: Inbound,
    route: string,
    limit: number,
    call: (inbound: Inbound, beside: Beside | undefined) => Effect.Effect<Reply.Reply, E, R>,
    resume?: (inbound: Inbound, call: string) => Effect.Effect<Reply.Reply | undefined, E, R>,
    shape?: Shape
  ) => Effect.Effect<Reply.Reply, E | IdempotencyProblem | Effect.Effect.Error<ReturnType<Inbound["read"]>>, R>
  /** Works like `onceOf`, for a body that is not in memory. `fingerprint` identifies the request and is called only if there is a key. */
  readonly once: <E extends ProblemInstance<string>, R>(
    caller: Caller,
    key: string | undefined,
    fingerprint: () => string,
    call: (beside: Beside | undefined) => Effect.Effect<Reply.Reply, E, R>,
    resume?: (call: string) => Effect.Effect<Reply.Reply | undefined, E, R>,
    refusal?: Answers.Refusal
  ) => Effect.Effect<Reply.Reply, E | IdempotencyProblem, R>
  /** Returns whether the request has no valid key or an unused key. */
  readonly isNew: (caller: Caller, key: string | undefined) => Effect.Effect<boolean>
  /** The jobs that delete keys older than `lifetime`, except those of open calls. `layerJobs` runs them. */
  readonly jobs: ReadonlyArray<Loop.Job>
}

/** How long a key is retained. A key whose call is open is retained longer. */
export const lifetime = Duration.days(7)

export const isKey = (key: string): boolean => /^[A-Za-z0-9_-]{16,128}$/.test(key)

export class Idempotency extends Context.Tag("tollgate/idempotency/Idempotency")<Idempotency, IdempotencyContract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(Idempotency, make).pipe(Layer.provide(Runs.layer)))
  static readonly layerJobs = Loop.layer(Idempotency, ({ jobs }) => jobs)
}

const hashOf = (...parts: ReadonlyArray<string | Buffer>): string => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part).update("\0")
  return hash.digest("hex")
}

/** The maximum number of bytes to hash before yielding to the event loop. */
const hashChunkMax = 1024 * 1024

/** Hashes a long body in chunks and yields to the event loop before each one. */
const hashInChunks = Effect.fnUntraced(function* (route: string, bytes: Buffer) {
  const hash = createHash("sha256").update(route).update("\0")
  for (let at = 0; at < bytes.length; at += hashChunkMax) {
    yield* turn
    hash.update(bytes.subarray(at, at + hashChunkMax))
  }
  return hash.update("\0").digest("hex")
})

type Call<E, R> = (beside: Beside) => Effect.Effect<Reply.Reply, E, R>
type Resume<E, R> = ((call: string) => Effect.Effect<Reply.Reply | undefined, E, R>) | undefined

interface Parts {
  readonly sql: SqlClient
  readonly fibers: FiberPool.FiberPool
  readonly runs: Runs["Type"]
  readonly keys: Keys.Keys
  readonly kept: ReturnType<typeof StoredAnswers.make>
  /** The keys in use by this run's open requests. */
  readonly inUse: Set<string>
}

/** The keys in use, by run. They are shared because two deployments of one run serve requests during a reload. */
const inUseOf = new WeakMap<Runs["Type"], Set<string>>()

const keysInUse = (runs: Runs["Type"]): Set<string> => {
  const known = inUseOf.get(runs)
  if (known !== undefined) return known
  const keys = new Set<string>()
  inUseOf.set(runs, keys)
  return keys
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const runs = yield* Runs
  const fibers = yield* FiberPool.make
  yield* Effect.addFinalizer(() => fibers.quiet(drainLimit))
  const keys = Keys.make(sql, writer, runs.run)
  const responseStore = StoredAnswers.make(sql, writer, yield* StoredAnswers.StoredAnswersConfig)
  const parts: Parts = { sql, fibers, runs, keys, kept: responseStore, inUse: keysInUse(runs) }
  const once = makeOnce(parts)
  return {
    once,
    onceOf: onceOf(once),
    isNew: isNew(parts),
    jobs: [{ name: "idempotency keys", turn: deleteExpired(parts) }]
  } satisfies IdempotencyContract
})

const freeKey = ({ inUse }: Parts, key: Key): Effect.Effect<void> =>
  Effect.sync(() => {
    inUse.delete(key.id)
  })

/** Stores the response, then frees the key. If the books cannot be written, this continues in the background without delaying the request. */
const store = (parts: Parts, key: Key, answer: StoredAnswer): Effect.Effect<void> =>
  Effect.flatMap(Answers.packed(answer), (packed) => storePacked(parts, key, packed))

const storePacked = (parts: Parts, key: Key, answer: PackedAnswer): Effect.Effect<void> => {
  const { fibers, kept } = parts
  const write = Effect.zipRight(key.store(answer), kept.stored(key.account_id, answer.body.length))
  const finish = <E>(written: Effect.Effect<unknown, E>) =>
    Effect.catchAllCause(written, (cause) =>
      Effect.logError("a response could not be stored for its Idempotency-Key", cause)
    ).pipe(Effect.zipRight(freeKey(parts, key)))
  return Effect.matchCauseEffect(write, {
    onSuccess: () => freeKey(parts, key),
    onFailure: (cause) =>
      isUnavailable(cause)
        ? Effect.sync(() => fibers.run(finish(untilWritten(write))))
        : finish(Effect.failCause(cause))
  })
}

/** Responds for a key that another request in this process is using. */
const concurrentReply = Effect.fnUntraced(function* (key: Key, request_hash: string) {
  const row = yield* key.find
  if (row !== undefined && row.request_hash !== request_hash) return yield* new IdempotencyKeyReused()
  if (row === undefined || row.status === null) return yield* inFlight
  return yield* Answers.replay(row, row.status)
})

/** Claims the key. If it was already used, finds the response and whether it must still be saved. */
const decide = Effect.fnUntraced(function* <E extends ProblemInstance<string>, R>(
  { runs: { hasEnded, run }, sql }: Parts,
  key: Key,
  request_hash: string,
  call: Call<E, R>,
  resume: Resume<E, R>,
  refusal: Answers.Refusal
) {
  const fresh = { reply: Effect.suspend(() => call(key.beside)), toStore: true }
  if (yield* key.take(request_hash)) return fresh
  const row = yield* key.find
  if (row === undefined) return yield* inFlight
  const wasAnswered = row.answered_at !== null
  // Another process is using the key, unless that process has ended and abandoned the key.
  const elsewhere = !wasAnswered && row.run !== run && !((yield* hasEnded(row.run)) && (yield* key.takeOver(row.run)))
  const state = row.status !== null || row.call === null ? undefined : yield* Calls.stateOf(sql, row.call)
  if (!wasAnswered && !elsewhere && (state === undefined || Keys.reachedNoProvider(state))) {
    return (yield* key.takeAgain(row, request_hash)) ? fresh : yield* inFlight
  }
  if (row.request_hash !== request_hash) return yield* new IdempotencyKeyReused()
  if (row.status !== null) return { reply: Answers.replay(row, row.status), toStore: false }
  if (elsewhere) return yield* inFlight
  const reply = resume === undefined || row.call === null ? undefined : yield* resume(row.call)
  if (reply !== undefined) return { reply: Effect.succeed(reply), toStore: true }
  if (state?._tag === "open") return yield* inFlight
  const usage_id = state?._tag === "ended" ? usageOf(row.call!) : undefined
  return { reply: Effect.succeed<Reply.Reply>(Answers.lost(refusal, usage_id)), toStore: false }
})

/** Serves a request that has a key, up to and including the storage of its response. */
const serve = Effect.fnUntraced(function* <E extends ProblemInstance<string>, R>(
  parts: Parts,
  key: Key,
  request_hash: string,
  call: Call<E, R>,
  resume: Resume<E, R>,
  refusal: Answers.Refusal
) {
  const { reply, toStore } = yield* Effect.tapErrorCause(decide(parts, key, request_hash, call, resume, refusal), () =>
    freeKey(parts, key)
  )
  const exit = yield* Effect.exit(reply)
  if (Exit.isSuccess(exit) && toStore) {
    return yield* Answers.capture(exit.value, refusal, (answer) => store(parts, key, answer), parts.fibers.run)
  }
  if (Exit.isFailure(exit))
    yield* Effect.tapErrorCause(handleFailure(parts, key, exit.cause, refusal), () => freeKey(parts, key))
  else yield* freeKey(parts, key)
  return yield* exit
})

/** Releases the key of a call that reached no provider. Otherwise, stores the failure. */
const handleFailure = Effect.fnUntraced(function* (
  parts: Parts,
  key: Key,
  cause: Cause.Cause<ProblemInstance<string>>,
  refusal: Answers.Refusal
) {
  const row = yield* key.find
  const state = row?.call == null ? undefined : yield* Calls.stateOf(parts.sql, row.call)
  // A key that cannot be released now remains abandoned. Its call reached no provider, so a later request can use it like a new key.
  if (state === undefined || Keys.reachedNoProvider(state) || isNotStarted(cause)) {
    return yield* Effect.zipRight(Effect.ignore(key.release), freeKey(parts, key))
  }
  // The call reached a provider and will be charged, so `BooksUnavailable` must not become its final response.
  if (isUnavailable(cause)) return yield* freeKey(parts, key)
  yield* store(parts, key, refusal(yield* problemOf(cause, true)))
})

/**
 * Returns the request's response, or `BooksUnavailable` once its settlement is late. A request with a late settlement continues, and its response is
 * stored for the retry. A client that disconnects interrupts the request, and the interruption's result is saved for the retry too.
 */
const untilLateSettlement = <E, R>(
  { fibers }: Parts,
  request: Effect.Effect<Reply.Reply, E, R>
): Effect.Effect<Reply.Reply, E | BooksUnavailable, R> =>
  Effect.suspend(() => {
    const answer = Deferred.unsafeMake<Reply.Reply, E | BooksUnavailable>(FiberId.none)
    let isAbandoned = false
    const served = Effect.map(request, (reply) => {
      if (isAbandoned) bodyOf(reply)?.destroy()
      return reply
    }).pipe(
      Effect.provideService(OnLateSettlement, () =>
        Deferred.unsafeDone(answer, new BooksUnavailable({ maybe_written: true }))
      ),
      Effect.intoDeferred(answer)
    )
    return Effect.flatMap(Effect.forkDaemon(served), (fiber) =>
      Effect.onInterrupt(Effect.interruptible(Deferred.await(answer)), () => {
        isAbandoned = true
        fiber.unsafeInterruptAsFork(FiberId.none)
        // A shutdown waits for the result.
        fibers.run(Effect.asVoid(Fiber.await(fiber)))
        // The response was ready but did not reach the client.
        return Effect.ignore(
          Effect.whenEffect(
            Effect.map(Deferred.await(answer), (reply) => bodyOf(reply)?.destroy()),
            Deferred.isDone(answer)
          )
        )
      })
    )
  })

const makeOnce =
  (parts: Parts): IdempotencyContract["once"] =>
  (caller, key, fingerprint, call, resume, refusal = plainRefusal) => {
    if (key === undefined || key === "") return call(undefined)
    if (!isKey(key)) return new IdempotencyKeyInvalid()
    const ownedKey = parts.keys.of(caller, key)
    const request_hash = fingerprint()
    const served = Effect.suspend(() => {
      if (parts.inUse.has(ownedKey.id)) return concurrentReply(ownedKey, request_hash)
      parts.inUse.add(ownedKey.id)
      return untilLateSettlement(parts, serve(parts, ownedKey, request_hash, call, resume, refusal))
    })
    return closeIfUnclaimed(served, bodyOf)
  }

const isNew =
  ({ keys }: Parts): IdempotencyContract["isNew"] =>
  (caller, key) =>
    key === undefined || !isKey(key)
      ? Effect.succeed(true)
      : Effect.map(keys.of(caller, key).find, (row) => row === undefined)

const onceOf =
  (once: IdempotencyContract["once"]): IdempotencyContract["onceOf"] =>
  (caller, inbound, route, limit, call, resume, shape) => {
    const key = inbound.header("idempotency-key")
    if (key === undefined || key === "") return call(inbound, undefined)
    return Effect.flatMap(inbound.read(limit), (bytes) => {
      const bufferedInbound = withBody(inbound, bytes)
      const served = (hash: string) =>
        once(
          caller,
          key,
          () => hash,
          (beside) => call(bufferedInbound, beside),
          resume && ((made) => resume(bufferedInbound, made)),
          shape && refusalIn(shape, inbound.request_id ?? "")
        )
      return bytes.length <= hashChunkMax
        ? served(hashOf(route, bytes))
        : Effect.flatMap(hashInChunks(route, bytes), served)
    })
  }

const deleteExpired = Effect.fnUntraced(function* ({ keys }: Parts) {
  const before = (yield* Clock.currentTimeMillis) - Duration.toMillis(lifetime)
  return (yield* keys.forget(before)) ? 0 : Duration.hours(1)
})

/** Converts a problem to the stored refusal, in this route's format. */
export const refusalIn =
  (shape: Shape | undefined, request_id: string): Answers.Refusal =>
  (problem) => {
    const reply = Reply.ofProblem(problem, request_id, shape)
    return { ...reply, body: reply.body as string }
  }
const plainRefusal = refusalIn(undefined, "")

/** Returns a streaming response's body, or `undefined` for a complete response. */
const bodyOf = ({ body }: Reply.Reply): Readable | undefined =>
  typeof body === "string" || Buffer.isBuffer(body) ? undefined : body

const inFlight = new IdempotencyInFlight({ retry_after: 1 })

const isUnavailable = (cause: Cause.Cause<unknown>): boolean => Cause.squash(cause) instanceof BooksUnavailable
