/**
 * Signals between the nodes over one database: a cached value has changed, or there is work for the leader. Over PostgreSQL by `NOTIFY`, to
 * all nodes that serve, also from a command; a process that serves a file sends none. What a signal says is never the only way to know it:
 * it is lost where the connection is.
 */
import { Context, Effect, Layer, Option } from "effect"
import type { Scope } from "effect"
import { Postgres } from "../postgres/Client.ts"
import * as Notifications from "../postgres/Notifications.ts"

/** Told what a node published; `undefined`: signals may have been lost, so anything may have changed. It must return at once. */
export type SignalListener = (ids: ReadonlyArray<string> | undefined) => void

export interface SignalsContract {
  /** Tells the other nodes, within a few seconds or not at all. This node is not told what it publishes itself. */
  readonly publish: (topic: string, ids: ReadonlyArray<string>) => Effect.Effect<void>
  readonly subscribe: (topic: string, listener: SignalListener) => Effect.Effect<void, never, Scope.Scope>
}

const alone: SignalsContract = { publish: () => Effect.void, subscribe: () => Effect.void }

export class Signals extends Context.Tag("tollgate/sql/Signals")<Signals, SignalsContract>() {
  static readonly layer = Layer.suspend(() =>
    Layer.scoped(
      Signals,
      Effect.flatMap(Effect.serviceOption(Postgres), (postgres) =>
        Option.isNone(postgres)
          ? Effect.succeed(alone)
          : Effect.provideService(Notifications.make, Postgres, postgres.value)
      )
    )
  )
}
