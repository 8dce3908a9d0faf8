/** Generates the id that identifies a request in `X-Request-Id` and in the log. */
import * as IdText from "../../kernel/IdText.ts"

/** Contains the real time even in a sandbox, because log lines are sorted by real time. */
export const next = (): string => IdText.at("req", Math.floor(performance.timeOrigin + performance.now()))
