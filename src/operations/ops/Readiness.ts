/**
 * Readiness: the database can be read and durably written, every loop is healthy, and the node holds its lease. The probe writes a row, because on a
 * full disk a transaction without writes still succeeds.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Fiber, Layer } from "effect"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import { Loops } from "./Loops.ts"
import type { LoopFigures } from "./Loops.ts"
import { Runs } from "../../storage/engine/Runs.ts"
import { figuresOf } from "./Node.ts"
import type { NodeFigures } from "./Node.ts"
import { NotReady } from "./Problems.ts"
import { Siblings } from "./Siblings.ts"

export interface ReadinessContract {
  /** Checks the service. Probes at most once a second, because anyone can call the route. Concurrent checks share one result. */
  readonly check: Effect.Effect<void, NotReady>
  /** Returns this node's figures; `undefined` on SQLite. */
  readonly node: Effect.Effect<NodeFigures | undefined>
  /** This process's name among those that serve the database; `undefined` if it serves a SQLite file alone. */
  readonly name: string | undefined
  /** The loops of this process and of the others on this machine (`Siblings`). */
  readonly loops: Effect.Effect<ReadonlyArray<LoopFigures>>
}

const probeTimeout = Duration.seconds(2)
const resultLifetime = Duration.seconds(1)

export class Readiness extends Context.Tag("tollgate/ops/Readiness")<Readiness, ReadinessContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Readiness, make).pipe(Layer.provide(Runs.layer)))
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const loops = yield* Loops
  const { node } = yield* Runs

  const written = Effect.flatMap(Clock.currentTimeMillis, (now) =>
    writer.submit({
      postings: [],
      statements: [
        statement(sql`INSERT INTO tollgate_ops_readiness (id, checked_at) VALUES (1, ${now})
          ON CONFLICT (id) DO UPDATE SET checked_at = excluded.checked_at`)
      ]
    })
  )
  // Forks the probe, because the first caller can disconnect.
  const probe = Effect.all([sql`SELECT 1`, written], { discard: true }).pipe(
    Effect.timeoutFail({ duration: probeTimeout, onTimeout: () => "the database did not respond in time" }),
    Effect.as(undefined),
    Effect.catchTag("BooksUnavailable", () => Effect.succeed("the database is not writable")),
    Effect.catchAllCause((cause) =>
      Effect.as(Effect.logError("the readiness probe of the database failed", cause), "the database did not respond")
    ),
    Effect.interruptible,
    Effect.forkDaemon,
    Effect.flatMap(Fiber.join)
  )
  const database = yield* Effect.cachedWithTTL(probe, resultLifetime)

  const siblings = yield* Siblings
  /** The loops of the other processes, because the owner, which runs most loops, serves no requests. */
  const elsewhere =
    siblings === undefined
      ? Effect.succeed([])
      : yield* Effect.cachedWithTTL(
          Effect.map(siblings.others, (others) => others.flatMap((one) => one.loops)),
          resultLifetime
        )

  const allLoops = Effect.map(elsewhere, (others) => [...loops.figures(), ...others])

  const check = Effect.gen(function* () {
    const troubled = (yield* allLoops).filter(({ trouble }) => trouble !== undefined)
    const found = yield* database
    const lapsed =
      node?.lease !== undefined && node.lease.left() <= 0 ? `the lease of ${node.name} has lapsed` : undefined
    if (found === undefined && troubled.length === 0 && lapsed === undefined) return
    return yield* new NotReady({
      database: found,
      node: lapsed,
      loops:
        troubled.length === 0
          ? undefined
          : Object.fromEntries(troubled.map(({ loop, trouble }) => [loop, trouble ?? ""]))
    })
  })

  return {
    check,
    name: node?.name,
    loops: allLoops,
    node: Effect.sync(() => (node?.lease === undefined ? undefined : figuresOf(node, node.lease)))
  } satisfies ReadinessContract
})
