/**
 * Signals between the nodes of a database: a cached value has changed, or the leader has work. On PostgreSQL they use `NOTIFY` and reach all serving
 * nodes, even from a command. A process that serves a file does not send any. A signal is lost if its connection is lost, so no information may
 * depend on signals alone.
 */
import { Context, Effect, Layer, Option } from "effect"
import type { Scope } from "effect"
import { Postgres } from "../postgres/Client.ts"
import * as Notifications from "../postgres/Notifications.ts"

/** Receives published ids, or `undefined` if signals may have been lost and anything may have changed. Must return immediately. */
export type SignalListener = (ids: ReadonlyArray<string> | undefined) => void

export interface SignalsContract {
  /** Notifies the other nodes within a few seconds, if at all. The publishing node gets no signal. */
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
