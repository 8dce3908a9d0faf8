import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { CurrentCaller } from "../http/Caller.ts"
import { raw } from "../http/Raw.ts"
import { listOf, namesOf } from "../upstream/Provider.ts"
import { ImageProviders } from "./Image.ts"
import { Images } from "./Images.ts"

export const ImagesHttp = HttpApiBuilder.group(
  Api,
  "images",
  Effect.fnUntraced(function* (handlers) {
    const images = yield* Images
    const providers = yield* ImageProviders
    const status = (request_id: string) => Effect.flatMap(CurrentCaller, (caller) => images.status(caller, request_id))
    return handlers
      .handleRaw("generate", raw(images.generate))
      .handleRaw("toolGenerate", raw(images.generate))
      .handle("status", ({ urlParams }) => status(urlParams.request_id))
      .handle("toolStatus", ({ urlParams }) => status(urlParams.request_id))
      .handle("providers", () => Effect.succeed(namesOf(providers)))
      .handle("toolProviders", () => Effect.succeed(listOf(providers)))
  })
)
