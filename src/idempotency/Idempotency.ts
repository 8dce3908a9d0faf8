/**
 * Metered calls that happen once for a key: the same request again is answered with the stored answer and costs nothing. The key
 * is taken before the call, is tied to the call in the transaction that admits it, and is given back when the call came to no
 * provider; so a retry after a refusal is a new try, and a retry after a charge is none.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Exit, Layer, Runtime, Schedule } from "effect"
import { createHash } from "node:crypto"
import { Transform } from "node:stream"
import type { CallerFacts } from "../http/Caller.ts"
import type { Inbound } from "../http/Inbound.ts"
import * as Reply from "../http/Reply.ts"
import { problemOf } from "../http/Express.ts"
import * as Ids from "../kernel/Ids.ts"
import type { ProblemInstance } from "../kernel/Problem.ts"
import type { BooksUnavailable } from "../ledger/Problems.ts"
import { statement } from "../ledger/Transaction.ts"
import type { Statement } from "../ledger/Transaction.ts"
import { Writer } from "../ledger/Writer.ts"
import {
  IdempotencyAnswerLost,
  IdempotencyInFlight,
  IdempotencyKeyInvalid,
  IdempotencyKeyReused,
  keyDetails
} from "./Problems.ts"

export type IdempotencyProblem = IdempotencyKeyInvalid | IdempotencyKeyReused | IdempotencyInFlight | BooksUnavailable

/** For the claim of the call: ties the key to it. */
export type Beside = (call: string) => ReadonlyArray<Statement>

interface Contract {
  /**
   * Runs the call unless one with this key was made. `fingerprint` says what the request is; it is asked for only where there is a
   * key. Without a key the call just runs.
   */
  readonly once: <E extends ProblemInstance<string>, R>(
    caller: CallerFacts,
    key: string | undefined,
    fingerprint: () => string,
    call: (beside: Beside | undefined) => Effect.Effect<Reply.Reply, E, R>
  ) => Effect.Effect<Reply.Reply, E | IdempotencyProblem, R>
  /** The same for a request with a body of up to `limit` bytes, which is read ahead where there is a key. */
  readonly onceOf: <E extends ProblemInstance<string>, R>(
    caller: CallerFacts,
    inbound: Inbound,
    route: string,
    limit: number,
    call: (inbound: Inbound, beside: Beside | undefined) => Effect.Effect<Reply.Reply, E, R>
  ) => Effect.Effect<Reply.Reply, E | IdempotencyProblem | Effect.Effect.Error<ReturnType<Inbound["read"]>>, R>
  /** Settles what an earlier run left in flight; to be run once that run's calls have been ended. */
  readonly recover: Effect.Effect<void>
}

/** How long a key is remembered. */
export const lifetime = Duration.days(7)
/** Answers longer than this are not kept. */
export const answerBytesMax = 8 * 1024 * 1024

export const isKey = (key: string): boolean => /^[A-Za-z0-9_-]{16,128}$/.test(key)

export class Idempotency extends Context.Tag("tollgate/idempotency/Idempotency")<Idempotency, Contract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(Idempotency, make))
}

interface Row {
  readonly request_hash: string
  /** The call that it was used for, once that was admitted. */
  readonly call: string | null
  readonly status: number | null
  readonly headers: string | null
  readonly body: Uint8Array | null
}

const hashOf = (...parts: ReadonlyArray<string | Buffer>): string => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part).update("\0")
  return hash.digest("hex")
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const run = yield* Ids.make("req")
  const runtime = yield* Effect.runtime<never>()

  const write = (template: Parameters<typeof statement>[0]) =>
    Effect.orDie(writer.submit({ postings: [], statements: [statement(template)] }))

  /** A key in hand. */
  const taken = (caller: CallerFacts, key: string) => {
    const mine = sql`tenant_id = ${caller.tenant_id} AND account_id = ${caller.account_id} AND key = ${key}`
    return {
      find: Effect.map(
        Effect.orDie(
          sql<Row>`SELECT request_hash, call, status, headers, body FROM tollgate_idempotency_keys WHERE ${mine}`
        ),
        ([row]) => row
      ),
      take: (request_hash: string) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) =>
          writer.submit({
            postings: [],
            statements: [
              statement(
                sql`INSERT INTO tollgate_idempotency_keys (tenant_id, account_id, key, request_hash, run, created_at)
                  VALUES (${caller.tenant_id}, ${caller.account_id}, ${key}, ${request_hash}, ${run}, ${now})
                  ON CONFLICT DO NOTHING RETURNING key`,
                1
              )
            ]
          })
        ),
      beside: (call: string): ReadonlyArray<Statement> => [
        statement(sql`UPDATE tollgate_idempotency_keys SET call = ${call} WHERE ${mine}`)
      ],
      release: write(sql`DELETE FROM tollgate_idempotency_keys WHERE ${mine}`),
      keep: ({ body, headers, status }: Reply.Reply & { readonly body: string | Buffer }) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) =>
          write(sql`UPDATE tollgate_idempotency_keys SET status = ${status}, headers = ${JSON.stringify(headers)},
            body = ${typeof body === "string" ? Buffer.from(body) : body}, answered_at = ${now} WHERE ${mine}`)
        )
    }
  }
  type Taken = ReturnType<typeof taken>

  const replay = ({ body, headers, status }: Row): Effect.Effect<Reply.Reply, IdempotencyInFlight> =>
    status === null
      ? new IdempotencyInFlight({ retry_after: 1 })
      : Effect.succeed({
          status,
          headers: { ...(JSON.parse(headers ?? "{}") as Record<string, string>), "idempotency-replayed": "true" },
          body: Buffer.from(body ?? [])
        })

  const lost = {
    ...Reply.ofProblem(new IdempotencyAnswerLost()),
    body: JSON.stringify(new IdempotencyAnswerLost().body)
  }

  /** Keeps the answer: a whole one before it goes out, a stream as it passes. */
  const kept = (key: Taken, reply: Reply.Reply): Effect.Effect<Reply.Reply> => {
    const { body } = reply
    if (typeof body === "string" || Buffer.isBuffer(body)) {
      const whole = body.length > answerBytesMax ? lost : { ...reply, body }
      return Effect.as(key.keep(whole), reply)
    }
    return Effect.sync(() => {
      let chunks: Array<Buffer> | undefined = []
      let size = 0
      let over = false
      const store = (done: () => void) => {
        if (over) return done()
        over = true
        const answer = chunks === undefined ? lost : { ...reply, body: Buffer.concat(chunks) }
        Runtime.runCallback(runtime)(key.keep(answer), { onExit: () => done() })
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

  /** What was answered when the key was used before. */
  const answered = Effect.fnUntraced(function* (mine: Taken, request_hash: string) {
    const row = yield* mine.find
    // It was given back a moment ago.
    if (row === undefined) return yield* new IdempotencyInFlight({ retry_after: 1 })
    if (row.request_hash !== request_hash) return yield* new IdempotencyKeyReused()
    return yield* replay(row)
  })

  const attempt = Effect.fnUntraced(function* <E extends ProblemInstance<string>, R>(
    mine: Taken,
    request_hash: string,
    call: (beside: Beside) => Effect.Effect<Reply.Reply, E, R>
  ) {
    const took = yield* mine.take(request_hash).pipe(
      Effect.as(true),
      Effect.catchTag("Conflict", () => Effect.succeed(false)),
      Effect.orDie
    )
    if (!took) return yield* answered(mine, request_hash)
    const exit = yield* Effect.exit(call(mine.beside))
    if (Exit.isSuccess(exit)) return yield* kept(mine, exit.value)
    if ((yield* mine.find)?.call == null) yield* mine.release
    else {
      const reply = Reply.ofProblem(yield* problemOf(exit.cause))
      yield* mine.keep({ ...reply, body: reply.body as string })
    }
    return yield* Effect.failCause(exit.cause)
  })

  const once: Contract["once"] = (caller, key, fingerprint, call) => {
    if (key === undefined || key === "") return call(undefined)
    if (!isKey(key)) return new IdempotencyKeyInvalid(keyDetails)
    return Effect.uninterruptible(attempt(taken(caller, key), fingerprint(), call))
  }

  const onceOf: Contract["onceOf"] = (caller, inbound, route, limit, call) => {
    const key = inbound.header("idempotency-key")
    if (key === undefined || key === "") return call(inbound, undefined)
    return Effect.flatMap(inbound.read(limit), (bytes) =>
      once(
        caller,
        key,
        () => hashOf(route, bytes),
        (beside) => call({ ...inbound, read: () => Effect.succeed(bytes) }, beside)
      )
    )
  }

  const recover = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const orphan = sql`status IS NULL AND run <> ${run}`
    const charged = sql`call IS NOT NULL AND EXISTS (SELECT 1 FROM tollgate_usage_records u
      WHERE u.id = 'use_' || substr(call, instr(call, '_') + 1) AND u.success = 1)`
    yield* write(sql`UPDATE tollgate_idempotency_keys SET status = ${lost.status}, headers = ${JSON.stringify(lost.headers)},
      body = ${Buffer.from(lost.body)}, answered_at = ${now} WHERE ${orphan} AND ${charged}`)
    // The others came to nothing, and cost nothing.
    yield* write(sql`DELETE FROM tollgate_idempotency_keys WHERE ${orphan}`)
  })

  const forget = Effect.flatMap(Clock.currentTimeMillis, (now) =>
    write(
      sql`DELETE FROM tollgate_idempotency_keys WHERE created_at < ${now - Duration.toMillis(lifetime)} AND status IS NOT NULL`
    )
  )
  yield* forget.pipe(
    Effect.tapErrorCause((cause) => Effect.logError("old Idempotency-Keys could not be forgotten", cause)),
    Effect.ignore,
    Effect.repeat(Schedule.spaced(Duration.hours(1))),
    Effect.withTracerEnabled(false),
    Effect.forkScoped
  )

  return { once, onceOf, recover } satisfies Contract
})
