/** Endpoints for generating videos and images at a quoted price: submit, poll, fetch and cancel. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example, Metered, Produces } from "../../http/contract/Documented.ts"
import { GateRefusal } from "../../books/gate/Problems.ts"
import { NoHead, ReadsOwnBody } from "../../http/contract/Annotations.ts"
import { BodyRefusal } from "../../http/contract/Problems.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { PageQuery } from "../../kernel/Page.ts"
import { KeyOrToken } from "../../people/credentials/Security.ts"
import { IdempotencyRefusal } from "../../http/idempotency/Problems.ts"
import { MediaJobPage, MediaModelEntry, MediaResult, MediaStatus, MediaSubmitted } from "./Answer.ts"
import { endings } from "./FileTypes.ts"
import { MediaRequest } from "./Model.ts"
import {
  MediaAlreadyCompleted,
  MediaNotCompleted,
  MediaNotFound,
  MediaRateLimited,
  MediaRejected,
  MediaUnavailable
} from "./Problems.ts"

const byId = Schema.Struct({
  request_id: Schema.String.annotations({ description: "The id from the response to the submission" })
})

export class MediaApi extends HttpApiGroup.make("media")
  .add(
    HttpApiEndpoint.post("submit", "/v1/tools/media/generate")
      .setPayload(MediaRequest)
      .addSuccess(MediaSubmitted)
      .addError(InvalidRequest)
      .addError(BodyRefusal)
      .addError(MediaRejected)
      .addError(MediaRateLimited)
      .addError(MediaUnavailable)
      .addError(GateRefusal)
      .addError(IdempotencyRefusal)
      .annotate(ReadsOwnBody, true)
      .annotate(Example, { body: { model: "{media_model}", prompt: "waves against a lighthouse" } })
      .annotate(Metered, { charge_known: false })
      .annotate(OpenApi.Summary, "Submit a generation; its quote is reserved, but nothing is charged yet")
  )
  .add(
    HttpApiEndpoint.get("status", "/v1/tools/media/status")
      .setUrlParams(byId)
      .addSuccess(MediaStatus)
      .addError(InvalidRequest)
      .addError(MediaNotFound)
      .annotate(Example, { query: { request_id: "{media_request_id}" } })
      .annotate(OpenApi.Summary, "Get the status of a generation; poll until it is settled")
  )
  .add(
    HttpApiEndpoint.get("jobs", "/v1/tools/media/jobs")
      .setUrlParams(Schema.Struct(PageQuery))
      .addSuccess(MediaJobPage)
      .addError(InvalidRequest)
      .annotate(OpenApi.Summary, "List the caller's generations, newest first, with their status at the last poll")
  )
  .add(
    HttpApiEndpoint.get("result", "/v1/tools/media/result")
      .setUrlParams(byId)
      .addSuccess(MediaResult)
      .addError(InvalidRequest)
      .addError(MediaNotFound)
      .addError(MediaNotCompleted)
      .annotate(Example, { query: { request_id: "{media_request_id}" } })
      .annotate(OpenApi.Summary, "Get the result of a generation, with temporary URLs")
  )
  .add(
    HttpApiEndpoint.get("content", "/v1/tools/media/content")
      .setUrlParams(
        Schema.Struct({
          ...byId.fields,
          index: Schema.optionalWith(
            Schema.NumberFromString.pipe(Schema.int(), Schema.between(0, 1000)).annotations({
              description: "Index of the image, from 0"
            }),
            { default: () => 0 }
          )
        })
      )
      .addSuccess(HttpApiSchema.Uint8Array({ contentType: "application/octet-stream" }))
      .annotate(Produces, ["application/octet-stream", ...Object.keys(endings)])
      .addError(InvalidRequest)
      .addError(MediaNotFound)
      .addError(MediaNotCompleted)
      .addError(MediaRateLimited)
      .addError(MediaUnavailable)
      .annotate(NoHead, true)
      .annotate(Example, { query: { request_id: "{media_request_id}" } })
      .annotate(OpenApi.Summary, "Download a generated image, video or audio file")
  )
  .add(
    HttpApiEndpoint.post("cancel", "/v1/tools/media/cancel")
      .setPayload(byId)
      .addSuccess(MediaStatus)
      .addError(InvalidRequest)
      .addError(MediaNotFound)
      .addError(MediaAlreadyCompleted)
      .annotate(Example, { body: { request_id: "{media_request_id}" } })
      .annotate(OpenApi.Summary, "Ask the vendor to cancel a generation, without a guarantee")
  )
  .middleware(KeyOrToken) {}

/** This endpoint requires no credential. */
export class MediaModelsApi extends HttpApiGroup.make("mediaModels").add(
  HttpApiEndpoint.get("list", "/v1/tools/media/models")
    .addSuccess(Schema.Struct({ models: Schema.Array(MediaModelEntry) }))
    .annotate(OpenApi.Summary, "List the media models with their prices")
) {}
