import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { json } from "../http/Body.ts"
import { CurrentCaller } from "../http/Caller.ts"
import type { Inbound } from "../http/Inbound.ts"
import { raw } from "../http/Raw.ts"
import * as Reply from "../http/Reply.ts"
import { Idempotency } from "../idempotency/Idempotency.ts"
import type { Caller } from "../kernel/Caller.ts"
import { toDecimal } from "../kernel/Money.ts"
import { listOf, namesOf } from "../upstream/Provider.ts"
import { ImageRequest } from "./Image.ts"
import type { ImageAnswer } from "./Image.ts"
import { ImageProviders } from "./Settings.ts"
import { Images } from "./Images.ts"
import type { ImageJob } from "./Images.ts"

/** The longest body: a source image may be in it. */
const bodyBytesMax = 32 * 1024 * 1024

const decode = json(ImageRequest)
const read = (inbound: Inbound) => Effect.flatMap(inbound.read(bodyBytesMax), decode)

const answerOf = ({ error, images, provider, request_id, status }: ImageJob): ImageAnswer => ({
  request_id,
  status,
  provider,
  ...(images !== undefined && { images }),
  ...(error !== undefined && { error })
})

const replyOf = (job: ImageJob): Reply.Reply =>
  Reply.json(200, answerOf(job), job.charge === undefined ? {} : { "x-charge-usd": toDecimal(job.charge.charged) })

export const ImagesHttp = HttpApiBuilder.group(
  Api,
  "images",
  Effect.fnUntraced(function* (handlers) {
    const images = yield* Images
    const providers = yield* ImageProviders
    const idempotency = yield* Idempotency

    const generate = raw((caller: Caller, inbound: Inbound) =>
      idempotency.onceOf(
        caller,
        inbound,
        "images/generate",
        bodyBytesMax,
        (inbound, beside) =>
          Effect.map(
            Effect.flatMap(read(inbound), (request) => images.generate({ caller, request, beside })),
            replyOf
          ),
        // Its first answer was not kept; its job is the same.
        (inbound, call) =>
          Effect.map(
            Effect.flatMap(read(inbound), (request) => images.ofCall({ caller, request, call })),
            (job) => (job === undefined ? job : replyOf(job))
          )
      )
    )
    const status = (request_id: string) =>
      Effect.flatMap(CurrentCaller, (caller) => Effect.map(images.status({ caller, request_id }), answerOf))

    return handlers
      .handleRaw("generate", generate)
      .handleRaw("toolGenerate", generate)
      .handle("status", ({ urlParams }) => status(urlParams.request_id))
      .handle("toolStatus", ({ urlParams }) => status(urlParams.request_id))
      .handle("providers", () => Effect.succeed(namesOf(providers)))
      .handle("toolProviders", () => Effect.succeed(listOf(providers)))
  })
)
