/** What a contract says of how an endpoint is served. */
import { Context } from "effect"

/** The handler reads the body itself, with a limit of its own. */
export class ReadsOwnBody extends Context.Reference<ReadsOwnBody>()("tollgate/http/ReadsOwnBody", {
  defaultValue: () => false
}) {}

/** Of a GET endpoint: each call costs, so HEAD, whose answer would be thrown away, is refused. */
export class NoHead extends Context.Reference<NoHead>()("tollgate/http/NoHead", {
  defaultValue: () => false
}) {}
