/** The route of responses. */
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { routes } from "../chat/Face.ts"
import { group, raw } from "../http/Raw.ts"
import { openAiRefusal } from "../http/OpenAiRefusal.ts"
import { Responses } from "./Responses.ts"

export const ResponsesHttp = group(
  Api,
  "responses",
  Effect.fnUntraced(function* (handlers) {
    const { create, least, stream } = yield* Responses
    const route = yield* routes(least)
    return handlers.handleRaw("create", raw(route("responses", { complete: create, stream }, { shape: openAiRefusal })))
  })
)
