/** Reports every finished request to the metrics. */
import { Context } from "effect"

/** The contract's method and path, the status, and the duration in seconds. */
export type Observe = (route: string, status: number, seconds: number) => void

export class Observer extends Context.Reference<Observer>()("tollgate/http/Observer", {
  defaultValue: (): Observe => () => {}
}) {}
