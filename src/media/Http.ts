import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { CurrentCaller } from "../http/Caller.ts"
import { raw } from "../http/Raw.ts"
import { MediaModels } from "./Media.ts"
import { listed, Medias } from "./Medias.ts"

export const MediaHttp = HttpApiBuilder.group(
  Api,
  "media",
  Effect.fnUntraced(function* (handlers) {
    const medias = yield* Medias
    return handlers
      .handleRaw("submit", raw(medias.submit))
      .handle("status", ({ urlParams }) =>
        Effect.flatMap(CurrentCaller, (caller) => medias.status(caller, urlParams.request_id))
      )
      .handle("result", ({ urlParams }) =>
        Effect.flatMap(CurrentCaller, (caller) => medias.result(caller, urlParams.request_id))
      )
      .handle("cancel", ({ payload }) =>
        Effect.flatMap(CurrentCaller, (caller) => medias.cancel(caller, payload.request_id))
      )
  })
)

export const MediaModelsHttp = HttpApiBuilder.group(Api, "mediaModels", (handlers) =>
  handlers.handle("list", () => Effect.map(MediaModels, (models) => ({ models: models.map(listed) })))
)
