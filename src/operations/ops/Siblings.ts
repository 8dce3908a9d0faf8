/**
 * The other processes that serve together with this process on one machine (`app/workers`). A request can reach any of them, so each process shows
 * the figures of all.
 */
import { Context } from "effect"
import type { Effect, Scope } from "effect"
import type { LoopFigures } from "./Loops.ts"

export interface Figures {
  /** Its own metrics in the Prometheus text format, labelled with its name. */
  readonly metrics: string
  readonly loops: ReadonlyArray<LoopFigures>
}

export interface SiblingsContract {
  /** The value of the `process` label in this process's metrics. */
  readonly name: string
  /** Sends these figures to other processes on request until the scope closes. */
  readonly answer: (figures: Effect.Effect<Figures>) => Effect.Effect<void, never, Scope.Scope>
  /** The figures of the other processes. A process that does not respond within two seconds is left out. */
  readonly others: Effect.Effect<ReadonlyArray<Figures>>
}

/** Absent if this process serves alone. */
export class Siblings extends Context.Reference<Siblings>()("tollgate/ops/Siblings", {
  defaultValue: (): SiblingsContract | undefined => undefined
}) {}
