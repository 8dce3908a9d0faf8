import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { routes } from "../engine/Face.ts"
import { group, raw } from "../../http/lanes/Raw.ts"
import { openAiRefusal } from "../../http/contract/OpenAiRefusal.ts"
import { ResponsesApi } from "./Api.ts"
import { Responses } from "./Responses.ts"

export const ResponsesHttp = group(
  contract.add(ResponsesApi),
  "responses",
  Effect.fnUntraced(function* (handlers) {
    const { create, least, stream } = yield* Responses
    const route = yield* routes(least)
    return handlers.handleRaw(
      "create",
      raw(route("responses", { protocol: "responses", complete: create, stream }, { shape: openAiRefusal }))
    )
  })
)
