import { Schema } from "effect"
import { BrokenRule } from "../../kernel/InvalidRequest.ts"
import { Problem } from "../../kernel/Problem.ts"
import { JobStatus } from "./Job.ts"

/** The requested job's id. The HTTP body does not repeat it. */
const requestId = { request_id: Schema.optional(Schema.String) } as const

/** The job could not be priced or was not accepted. Nothing is charged. `field` violates `rule`. */
export class MediaRejected extends Problem<MediaRejected>()("MediaRejected", {
  status: 400,
  error: "the media request was rejected",
  code: "media_rejected",
  fields: BrokenRule
}) {}

/** The job is unknown or belongs to another account. */
export class MediaNotFound extends Problem<MediaNotFound>()("MediaNotFound", {
  status: 404,
  error: "no such media request",
  code: "media_not_found",
  fields: requestId,
  details: {}
}) {}

export class MediaAlreadyCompleted extends Problem<MediaAlreadyCompleted>()("MediaAlreadyCompleted", {
  status: 409,
  error: "the media request is already completed",
  code: "media_already_completed",
  fields: requestId,
  details: {}
}) {}

/** The job has no result, or none yet. `state` is the job's state. */
export class MediaNotCompleted extends Problem<MediaNotCompleted>()("MediaNotCompleted", {
  status: 409,
  error: "the media request is not completed",
  code: "media_not_completed",
  fields: { ...requestId, state: Schema.optional(JobStatus) },
  details: {}
}) {}

/** The vendor currently accepts no jobs. `retry_after` is in seconds and is absent if the vendor sends none. */
export class MediaRateLimited extends Problem<MediaRateLimited>()("MediaRateLimited", {
  status: 429,
  error: "the generation service is busy; retry shortly",
  code: "media_rate_limited"
}) {}

/** The vendor could not be reached or failed. */
export class MediaUnavailable extends Problem<MediaUnavailable>()("MediaUnavailable", {
  status: 503,
  error: "the generation service is temporarily unavailable; retry later",
  code: "media_unavailable"
}) {}
