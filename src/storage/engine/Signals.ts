/**
 * Signals between the nodes of a database. A signal means that a cached value has changed or that the leader has work. On PostgreSQL, signals use
 * `NOTIFY` and reach all serving nodes, even if a command sends them. A signal is lost if its connection is lost, so correctness must never depend on
 * signals alone. The processes that serve a file together pass signals on to each other (`Peers`). A process that serves a file alone sends none.
 */
import { Context, Effect, Layer, Option } from "effect"
import type { Scope } from "effect"
import { Postgres } from "../postgres/Client.ts"
import * as Notifications from "../postgres/Notifications.ts"
import { Peers } from "./Peers.ts"

/** Receives the published ids, or `undefined` if signals might have been lost and anything might have changed. It must be fast. */
export type SignalListener = (ids: ReadonlyArray<string> | undefined) => void

export interface SignalsContract {
  /** Notifies the other nodes within a few seconds, unless the signal is lost. The publishing node gets no signal. */
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
          ? Effect.map(
              Effect.serviceOption(Peers),
              Option.match({ onNone: () => alone, onSome: ({ signals }) => signals })
            )
          : Effect.provideService(Notifications.make, Postgres, postgres.value)
      )
    )
  )
}
