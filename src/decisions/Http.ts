import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { raw } from "../http/Raw.ts"
import { Decisions } from "./Decisions.ts"

export const DecisionsHttp = HttpApiBuilder.group(
  Api,
  "decisions",
  Effect.fnUntraced(function* (handlers) {
    const decisions = yield* Decisions
    return handlers.handleRaw("decide", raw(decisions.decide))
  })
)
