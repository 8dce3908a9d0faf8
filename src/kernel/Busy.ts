/** The refusal of a request for which the process has no room, whatever its domain. */
import { Problem } from "./Problem.ts"

/** The bodies and answers of other requests take all the room that there is. */
export class Busy extends Problem<Busy>()("Busy", {
  status: 503,
  error: "too many large requests at once, try again shortly",
  code: "busy"
}) {}

/** Seconds after which a request that found no room may be sent again. */
export const busyFor = 5
