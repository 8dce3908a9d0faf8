/** What a service that is not ready says of itself. */
import { Problem } from "../kernel/Problem.ts"

/** `details`: `database`, where it cannot be read or written; `loops`, each that does not turn and why. */
export class NotReady extends Problem<NotReady>()("NotReady", {
  status: 503,
  error: "the service is not ready",
  code: "not_ready"
}) {}
