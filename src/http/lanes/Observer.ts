/** Reports every finished request to the metrics. */
import { Context } from "effect"

/** Receives the method and path from the contract, the status, and the duration in seconds. */
export type Observe = (route: string, status: number, seconds: number) => void

export class Observer extends Context.Reference<Observer>()("tollgate/http/Observer", {
  defaultValue: (): Observe => () => {}
}) {}
