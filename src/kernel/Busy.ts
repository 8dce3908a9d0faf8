/** The refusal of a request when the process's byte budget is exhausted. */
import { Problem } from "./Problem.ts"

/** Other requests' bodies and responses fill the byte budget. */
export class Busy extends Problem<Busy>()("Busy", {
  status: 503,
  error: "too many large requests at once, try again shortly",
  code: "busy"
}) {}

/** The message for a charged call with a response that exceeded the byte budget. */
export const noRoomForAnswer = "the answer found no room among other large answers; it was charged all the same"

/** The value of `Retry-After`, in seconds. */
export const busyFor = 5
