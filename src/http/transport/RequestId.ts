/** A request's id in `X-Request-Id` and in the log. */
import * as IdText from "../../kernel/IdText.ts"

/** Log lines are sorted by their own time, so a request's id need not follow a sandbox's clock. */
export const next = (): string => IdText.at("req", Math.floor(performance.timeOrigin + performance.now()))
