/** The report about every finished request, for the metrics. */
import { Context } from "effect"

/** The method and path as the contract writes them, the status, and how long it took in seconds. */
export type Observe = (route: string, status: number, seconds: number) => void

export class Observer extends Context.Reference<Observer>()("tollgate/http/Observer", {
  defaultValue: (): Observe => () => {}
}) {}
