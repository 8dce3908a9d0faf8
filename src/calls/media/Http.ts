import { HttpApiBuilder } from "@effect/platform"
import { Effect, Either, Schema } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { storable } from "../../http/lanes/Answer.ts"
import { CurrentCaller } from "../../http/lanes/Caller.ts"
import type { Inbound } from "../../http/transport/Inbound.ts"
import { parse } from "../../http/transport/Json.ts"
import { raw } from "../../http/lanes/Raw.ts"
import * as Reply from "../../http/transport/Reply.ts"
import { rateHeadersOf } from "../metered/ReceiptHeaders.ts"
import { meteredRoutes } from "../metered/Routes.ts"
import { MediaApi, MediaModelsApi } from "./Api.ts"
import { entryOf, jobEntryOf, MediaSubmitted, resultOf, statusOf, submittedOf } from "./Answer.ts"
import type { MediaContent } from "./Content.ts"
import type { Job } from "./Job.ts"
import { Media } from "./Media.ts"
import { requestOf } from "./Model.ts"
import { MediaModels } from "./Settings.ts"

/** The maximum request body size, in bytes. A body can contain a start image. */
const bodyBytesMax = 1024 * 1024

const encodeSubmitted = Schema.encodeSync(MediaSubmitted)

/** Serves a third party's file. Browsers can display or download it but must not run its code. */
const contentOf = ({ body, content_type, file_name, length }: MediaContent): Reply.Reply => ({
  status: 200,
  headers: {
    "content-type": content_type,
    "content-disposition": `${content_type === "application/octet-stream" ? "attachment" : "inline"}; filename="${file_name}"`,
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; sandbox",
    "cache-control": "private, max-age=3600",
    ...(length !== undefined && { "content-length": String(length) })
  },
  body
})

const submitted = (job: Job): Reply.Reply =>
  Reply.json(200, encodeSubmitted(submittedOf(job)), rateHeadersOf(job.rates))

export const MediaHttp = HttpApiBuilder.group(
  contract.add(MediaApi),
  "media",
  Effect.fnUntraced(function* (handlers) {
    const media = yield* Media
    const models = yield* MediaModels
    const meteredRoute = yield* meteredRoutes()

    const read = (inbound: Inbound) =>
      Effect.flatMap(inbound.read(bodyBytesMax), (bytes) =>
        Either.flatMap(parse(bytes), (body) => requestOf(models, body))
      )

    return handlers
      .handleRaw(
        "submit",
        raw(
          meteredRoute({
            name: "media/generate",
            body_bytes_max: bodyBytesMax,
            answer: (caller, inbound, beside) =>
              Effect.map(
                Effect.flatMap(read(inbound), (job) => media.submit({ caller, job, beside })),
                submitted
              ),
            // If the first response was not saved, responds with the job that the call created.
            resume: (caller, _, call) =>
              Effect.map(media.ofCall({ caller, call }), (job) => (job === undefined ? job : submitted(job)))
          })
        )
      )
      .handle("status", ({ urlParams: { request_id } }) =>
        Effect.flatMap(CurrentCaller, (caller) => Effect.map(media.status({ caller, request_id }), statusOf))
      )
      .handle("jobs", ({ urlParams }) =>
        Effect.flatMap(CurrentCaller, (caller) =>
          Effect.map(media.list({ caller, ...urlParams }), (page) => ({
            ...page,
            records: page.records.map(jobEntryOf)
          }))
        )
      )
      .handle("result", ({ urlParams: { request_id } }) =>
        Effect.flatMap(CurrentCaller, (caller) => Effect.map(media.result({ caller, request_id }), resultOf))
      )
      .handleRaw("content", ({ urlParams: { index, request_id } }) =>
        Effect.flatMap(CurrentCaller, (caller) =>
          Effect.map(media.content({ caller, request_id, index }), (file) => Reply.toResponse(contentOf(file)))
        )
      )
      .handle("cancel", ({ payload: { request_id } }) =>
        Effect.flatMap(CurrentCaller, (caller) => Effect.map(storable(media.cancel({ caller, request_id })), statusOf))
      )
  })
)

export const MediaModelsHttp = HttpApiBuilder.group(contract.add(MediaModelsApi), "mediaModels", (handlers) =>
  handlers.handle("list", () => Effect.map(MediaModels, (models) => ({ models: models.map(entryOf) })))
)
