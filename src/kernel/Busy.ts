/** The refusal of a request for which the process has no room, whatever its domain. */
import { Problem } from "./Problem.ts"

/** The bodies and answers of other requests take all the room that there is. */
export class Busy extends Problem<Busy>()("Busy", {
  status: 503,
  error: "too many large requests at once, try again shortly",
  code: "busy"
}) {}

/** The message of a call that was charged, but whose answer found no room. */
export const noRoomForAnswer = "the answer found no room among other large answers; it was charged all the same"

/** Seconds after which a request that found no room may be sent again. */
export const busyFor = 5
