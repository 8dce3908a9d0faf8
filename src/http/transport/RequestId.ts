import * as IdText from "../../kernel/IdText.ts"

/** Generates a request id. It contains the real time even in a sandbox, because log lines are sorted by real time. */
export const next = (): string => IdText.at("req", Math.floor(performance.timeOrigin + performance.now()))
