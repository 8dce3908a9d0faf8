/**
 * Metered calls that happen once for a key: the same request again is answered with the stored answer and costs nothing. The key
 * is taken before the call, is tied to the call in the transaction that admits it, and is given back when the call came to no
 * provider; so a retry after a refusal is a new try, and a retry after a call is none, whether that was charged or not.
 *
 * A key without an answer is either in somebody's hand in this process, or left over: the process was killed, or the answer could
 * not be kept. One that was left over before it was tied to a call is as good as new. One that is tied to a call is answered with
 * what the call can still say (the job that it made), else it is in flight for as long as the call is open, and lost when it is over.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Cause, Clock, Context, Deferred, Duration, Effect, Exit, Layer, Runtime } from "effect"
import { createHash } from "node:crypto"
import { Transform } from "node:stream"
import { OnLateSettlement, refusedLate } from "../gate/Gate.ts"
import type { Caller } from "../kernel/Caller.ts"
import type { Inbound } from "../http/Inbound.ts"
import * as Reply from "../http/Reply.ts"
import { problemOf } from "../http/Fault.ts"
import * as FiberPool from "../kernel/FiberPool.ts"
import * as Loop from "../kernel/Loop.ts"
import type { ProblemInstance } from "../kernel/Problem.ts"
import { BooksUnavailable } from "../ledger/Problems.ts"
import { statement } from "../ledger/Transaction.ts"
import type { Statement } from "../ledger/Transaction.ts"
import { untilWritten, Writer } from "../ledger/Writer.ts"
import { Runs } from "../sql/Runs.ts"
import { IdempotencyAnswerLost, IdempotencyInFlight, IdempotencyKeyInvalid, IdempotencyKeyReused } from "./Problems.ts"

export type IdempotencyProblem = IdempotencyKeyInvalid | IdempotencyKeyReused | IdempotencyInFlight | BooksUnavailable

/** For the claim of the call: ties the key to it. */
export type Beside = (call: string) => ReadonlyArray<Statement>

export interface IdempotencyContract {
  /**
   * Runs the call unless one with this key was made. `fingerprint` says what the request is; it is asked for only where there is a
   * key. Without a key the call just runs. `resume` answers for a call that was made and whose answer was not kept, where it can.
   */
  readonly once: <E extends ProblemInstance<string>, R>(
    caller: Caller,
    key: string | undefined,
    fingerprint: () => string,
    call: (beside: Beside | undefined) => Effect.Effect<Reply.Reply, E, R>,
    resume?: (call: string) => Effect.Effect<Reply.Reply | undefined, E, R>
  ) => Effect.Effect<Reply.Reply, E | IdempotencyProblem, R>
  /** The same for a request with a body of up to `limit` bytes, which is read ahead where there is a key. */
  readonly onceOf: <E extends ProblemInstance<string>, R>(
    caller: Caller,
    inbound: Inbound,
    route: string,
    limit: number,
    call: (inbound: Inbound, beside: Beside | undefined) => Effect.Effect<Reply.Reply, E, R>,
    resume?: (inbound: Inbound, call: string) => Effect.Effect<Reply.Reply | undefined, E, R>
  ) => Effect.Effect<Reply.Reply, E | IdempotencyProblem | Effect.Effect.Error<ReturnType<Inbound["read"]>>, R>
  /** Whether no request with this key was made; without a key none was. */
  readonly isNew: (caller: Caller, key: string | undefined) => Effect.Effect<boolean>
}

/** How long a key is remembered, and longer while its call is open. */
export const lifetime = Duration.days(7)
/** Answers longer than this are not kept. */
export const answerBytesMax = 8 * 1024 * 1024

export const isKey = (key: string): boolean => /^[A-Za-z0-9_-]{16,128}$/.test(key)

export class Idempotency extends Context.Tag("tollgate/idempotency/Idempotency")<Idempotency, IdempotencyContract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(Idempotency, make).pipe(Layer.provide(Runs.layer)))
}

interface Row {
  readonly request_hash: string
  /** The run of the process that took it, or took it over. */
  readonly run: string
  /** The call that it was used for, once that was admitted. */
  readonly call: string | null
  readonly status: number | null
  readonly headers: string | null
  readonly body: Uint8Array | null
}

/** An answer that can be kept. */
interface Whole extends Reply.Reply {
  readonly body: string | Buffer
}

const hashOf = (...parts: ReadonlyArray<string | Buffer>): string => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part).update("\0")
  return hash.digest("hex")
}

/** How many old keys are forgotten in one transaction. */
const forgottenAtOnce = 500

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const { hasEnded, run } = yield* Runs
  const runtime = yield* Effect.runtime<never>()
  const fibers = yield* FiberPool.make
  /** The keys that a request of this process has in hand. */
  const inHand = new Set<string>()

  const submit = (template: Parameters<typeof statement>[0], rows?: number) =>
    writer.submit({ postings: [], statements: [statement(template, rows)] })

  /** Tied to no call, or to one that was refused before the reservation turned out to be written: no provider was reached. */
  const untied = sql`call IS NULL OR EXISTS (SELECT 1 FROM tollgate_usage_records u
    WHERE u.id = 'use_' || substr(call, instr(call, '_') + 1) AND u.error_type = ${refusedLate})`

  /** The key of a request. */
  const keyOf = (caller: Caller, key: string) => {
    const mine = sql`tenant_id = ${caller.tenant_id} AND account_id = ${caller.account_id} AND key = ${key}`
    return {
      id: `${caller.tenant_id} ${caller.account_id} ${key}`,
      find: Effect.map(
        Effect.orDie(
          sql<Row>`SELECT request_hash, run, CASE WHEN ${untied} THEN NULL ELSE call END AS call, status, headers, body
            FROM tollgate_idempotency_keys WHERE ${mine}`
        ),
        ([row]) => row
      ),
      /** Whether it was new. */
      take: (request_hash: string) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) =>
          won(
            submit(
              sql`INSERT INTO tollgate_idempotency_keys (tenant_id, account_id, key, request_hash, run, created_at)
                VALUES (${caller.tenant_id}, ${caller.account_id}, ${key}, ${request_hash}, ${run}, ${now})
                ON CONFLICT DO NOTHING RETURNING key`,
              1
            )
          )
        ),
      /** Takes one that was left over before it was tied to a call. */
      takeAgain: (request_hash: string) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) =>
          won(
            submit(
              sql`UPDATE tollgate_idempotency_keys SET request_hash = ${request_hash}, created_at = ${now}, call = NULL
                WHERE ${mine} AND status IS NULL AND (${untied}) RETURNING key`,
              1
            )
          )
        ),
      /** Takes one that the given run, which has ended, had in hand. */
      takeOver: (ended: string) =>
        won(
          submit(
            sql`UPDATE tollgate_idempotency_keys SET run = ${run}
              WHERE ${mine} AND status IS NULL AND run = ${ended} RETURNING key`,
            1
          )
        ),
      beside: (call: string): ReadonlyArray<Statement> => [
        statement(sql`UPDATE tollgate_idempotency_keys SET call = ${call} WHERE ${mine}`)
      ],
      release: submit(sql`DELETE FROM tollgate_idempotency_keys WHERE ${mine}`),
      keep: ({ body, headers, status }: Whole) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) =>
          submit(sql`UPDATE tollgate_idempotency_keys SET status = ${status}, headers = ${JSON.stringify(headers)},
            body = ${typeof body === "string" ? Buffer.from(body) : body}, answered_at = ${now} WHERE ${mine}`)
        )
    }
  }
  type Key = ReturnType<typeof keyOf>

  // ---- keeping an answer ----------------------------------------------------------------------------------------------------

  /**
   * Keeps the answer, and lets go of the key once it is kept. While the books cannot be written that goes on in the background: the
   * answer itself need not wait for it.
   */
  const keep = (key: Key, answer: Whole): Effect.Effect<void> => {
    const kept = key.keep(answer)
    const over = <E>(write: Effect.Effect<unknown, E>) =>
      Effect.catchAllCause(write, (cause) =>
        Effect.logError("an answer could not be kept for its Idempotency-Key", cause)
      ).pipe(Effect.zipRight(letGo(key)))
    return Effect.matchCauseEffect(kept, {
      onSuccess: () => letGo(key),
      onFailure: (cause) =>
        isUnavailable(cause) ? Effect.sync(() => fibers.run(over(untilWritten(kept)))) : over(Effect.failCause(cause))
    })
  }

  const letGo = (key: Key): Effect.Effect<void> =>
    Effect.sync(() => {
      inHand.delete(key.id)
    })

  /** Keeps the answer: a whole one before it goes out, a stream as it passes. */
  const kept = (key: Key, reply: Reply.Reply): Effect.Effect<Reply.Reply> => {
    const { body } = reply
    if (typeof body === "string" || Buffer.isBuffer(body)) {
      return Effect.as(keep(key, body.length > answerBytesMax ? lost : { ...reply, body }), reply)
    }
    return Effect.sync(() => {
      let chunks: Array<Buffer> | undefined = []
      let size = 0
      let over = false
      const store = (done: () => void) => {
        if (over) return done()
        over = true
        const answer = chunks === undefined ? lost : { ...reply, body: Buffer.concat(chunks) }
        Runtime.runCallback(runtime)(keep(key, answer), { onExit: () => done() })
      }
      const tee = new Transform({
        transform: (chunk: Buffer, _, next) => {
          size += chunk.length
          if (size > answerBytesMax) chunks = undefined
          else chunks?.push(chunk)
          next(null, chunk)
        },
        flush: (next) => store(next)
      })
      body.once("error", (error) => tee.destroy(error))
      tee.once("close", () => {
        body.destroy()
        // Broken, or left by the client: what came is not the answer.
        if (!over) chunks = undefined
        store(() => {})
      })
      return { ...reply, body: body.pipe(tee) }
    })
  }

  // ---- answering ------------------------------------------------------------------------------------------------------------

  /** For a key that somebody else has in hand. */
  const answered = Effect.fnUntraced(function* (key: Key, request_hash: string) {
    const row = yield* key.find
    if (row !== undefined && row.request_hash !== request_hash) return yield* new IdempotencyKeyReused()
    if (row === undefined || row.status === null) return yield* inFlight
    return replayed(row, row.status)
  })

  const isOpen = (call: string): Effect.Effect<boolean> =>
    Effect.map(
      Effect.orDie(sql`SELECT 1 FROM tollgate_ledger_reservations WHERE id = ${call}`),
      (rows) => rows.length > 0
    )

  /** For a key that the request has in hand: the answer, and whether it is one to keep. */
  const made = Effect.fnUntraced(function* <E extends ProblemInstance<string>, R>(
    key: Key,
    request_hash: string,
    call: (beside: Beside) => Effect.Effect<Reply.Reply, E, R>,
    resume: ((call: string) => Effect.Effect<Reply.Reply | undefined, E, R>) | undefined
  ) {
    const fresh = { reply: Effect.suspend(() => call(key.beside)), keep: true }
    if (yield* key.take(request_hash)) return fresh
    const row = yield* key.find
    if (row === undefined) return yield* inFlight
    // In the hand of another process, unless that has ended and left it.
    const elsewhere = row.status === null && row.run !== run && !(hasEnded(row.run) && (yield* key.takeOver(row.run)))
    if (row.status === null && row.call === null && !elsewhere) {
      return (yield* key.takeAgain(request_hash)) ? fresh : yield* inFlight
    }
    if (row.request_hash !== request_hash) return yield* new IdempotencyKeyReused()
    if (row.status !== null) return { reply: Effect.succeed(replayed(row, row.status)), keep: false }
    if (elsewhere) return yield* inFlight
    const reply = resume === undefined ? undefined : yield* resume(row.call!)
    if (reply !== undefined) return { reply: Effect.succeed(reply), keep: true }
    return (yield* isOpen(row.call!)) ? yield* inFlight : { reply: Effect.succeed<Reply.Reply>(lost), keep: true }
  })

  /** The request of a key in hand, to its end. */
  const attempt = Effect.fnUntraced(function* <E extends ProblemInstance<string>, R>(
    key: Key,
    request_hash: string,
    call: (beside: Beside) => Effect.Effect<Reply.Reply, E, R>,
    resume: ((call: string) => Effect.Effect<Reply.Reply | undefined, E, R>) | undefined
  ) {
    const found = yield* Effect.tapErrorCause(made(key, request_hash, call, resume), () => letGo(key))
    const exit = yield* Effect.exit(found.reply)
    if (Exit.isSuccess(exit) && found.keep) return yield* kept(key, exit.value)
    if (Exit.isFailure(exit)) yield* Effect.tapErrorCause(failed(key, exit.cause), () => letGo(key))
    else yield* letGo(key)
    return yield* exit
  })

  /** A call that came to no provider gives its key back, any other keeps what it failed with. */
  const failed = Effect.fnUntraced(function* (key: Key, cause: Cause.Cause<ProblemInstance<string>>) {
    const row = yield* key.find
    // What cannot be given back just now is left over, untied, and as good as new.
    if (row?.call == null) return yield* Effect.zipRight(Effect.ignore(key.release), letGo(key))
    // It was made, and is charged in the end: that the books were unavailable meanwhile is not its answer.
    if (isUnavailable(cause)) return yield* letGo(key)
    const reply = Reply.ofProblem(yield* problemOf(cause, false))
    yield* keep(key, { ...reply, body: reply.body as string })
  })

  /**
   * Answers like the request, but once its settlement is late with `BooksUnavailable`. The request goes on all the same, so that its
   * answer is kept, and is there for whoever asks again.
   */
  const inTime = <E, R>(
    request: Effect.Effect<Reply.Reply, E, R>
  ): Effect.Effect<Reply.Reply, E | BooksUnavailable, R> =>
    Effect.flatMap(Deferred.make<Reply.Reply, E | BooksUnavailable>(), (answer) =>
      request.pipe(
        Effect.provideService(OnLateSettlement, () =>
          Deferred.unsafeDone(answer, new BooksUnavailable({ maybe_written: true }))
        ),
        Effect.intoDeferred(answer),
        Effect.forkDaemon,
        Effect.zipRight(Deferred.await(answer))
      )
    )

  const once: IdempotencyContract["once"] = (caller, key, fingerprint, call, resume) => {
    if (key === undefined || key === "") return call(undefined)
    if (!isKey(key)) return new IdempotencyKeyInvalid()
    const mine = keyOf(caller, key)
    const request_hash = fingerprint()
    return Effect.uninterruptible(
      Effect.suspend(() => {
        if (inHand.has(mine.id)) return answered(mine, request_hash)
        inHand.add(mine.id)
        return inTime(attempt(mine, request_hash, call, resume))
      })
    )
  }

  const isNew: IdempotencyContract["isNew"] = (caller, key) =>
    key === undefined || !isKey(key)
      ? Effect.succeed(true)
      : Effect.map(keyOf(caller, key).find, (row) => row === undefined)

  const onceOf: IdempotencyContract["onceOf"] = (caller, inbound, route, limit, call, resume) => {
    const key = inbound.header("idempotency-key")
    if (key === undefined || key === "") return call(inbound, undefined)
    return Effect.flatMap(inbound.read(limit), (bytes) => {
      const again: Inbound = { ...inbound, read: () => Effect.succeed(bytes) }
      return once(
        caller,
        key,
        () => hashOf(route, bytes),
        (beside) => call(again, beside),
        resume && ((made) => resume(again, made))
      )
    })
  }

  // ---- what earlier runs left, and what is old ------------------------------------------------------------------------------

  const forget = Effect.gen(function* () {
    const before = (yield* Clock.currentTimeMillis) - Duration.toMillis(lifetime)
    const old = sql`SELECT rowid FROM tollgate_idempotency_keys k WHERE created_at < ${before}
      AND NOT EXISTS (SELECT 1 FROM tollgate_ledger_reservations r WHERE r.id = k.call) LIMIT ${forgottenAtOnce}`
    const count = (yield* old).length
    if (count > 0) yield* submit(sql`DELETE FROM tollgate_idempotency_keys WHERE rowid IN (${old})`)
    return count < forgottenAtOnce ? Duration.hours(1) : 0
  })
  yield* Loop.fork({ name: "idempotency keys", turn: forget })

  return { once, onceOf, isNew } satisfies IdempotencyContract
})

const inFlight = new IdempotencyInFlight({ retry_after: 1 })

const lost: Whole = {
  ...Reply.ofProblem(new IdempotencyAnswerLost()),
  body: JSON.stringify(new IdempotencyAnswerLost().body)
}

const replayed = ({ body, headers }: Row, status: number): Reply.Reply => ({
  status,
  headers: { ...(JSON.parse(headers ?? "{}") as Record<string, string>), "idempotency-replayed": "true" },
  body: Buffer.from(body ?? [])
})

/** Whether a statement found its row. */
const won = <E extends { readonly _tag: string }>(write: Effect.Effect<unknown, E>) =>
  write.pipe(
    Effect.as(true),
    Effect.catchAll((refusal) =>
      refusal._tag === "Conflict"
        ? Effect.succeed(false)
        : refusal instanceof BooksUnavailable
          ? refusal
          : Effect.dieMessage(`an Idempotency-Key was refused: ${refusal._tag}`)
    )
  )

const isUnavailable = (cause: Cause.Cause<unknown>): boolean => Cause.squash(cause) instanceof BooksUnavailable
