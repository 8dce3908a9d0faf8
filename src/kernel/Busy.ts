/** The refusal of a request because other requests' bodies and responses have exhausted the process's byte budget. */
import { Problem } from "./Problem.ts"

export class Busy extends Problem<Busy>()("Busy", {
  status: 503,
  error: "too many large requests at once; try again shortly",
  code: "busy"
}) {}

/** The error text for a call whose response did not fit into the byte budget. The call is still charged. */
export const noRoomForAnswer =
  "the response did not fit in memory next to other large responses; the call was charged anyway"

/** The value of `Retry-After`, in seconds. */
export const busyFor = 5
