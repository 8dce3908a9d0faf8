/** What the media routes refuse. */
import { BrokenRule } from "../kernel/InvalidRequest.ts"
import { Problem } from "../kernel/Problem.ts"

/** It could not be priced or accepted; nothing is charged. */
export class MediaRejected extends Problem<MediaRejected>()("MediaRejected", {
  status: 400,
  error: "the media request was rejected",
  code: "media_rejected",
  fields: BrokenRule
}) {}

/** Unknown, or another account's. */
export class MediaNotFound extends Problem<MediaNotFound>()("MediaNotFound", {
  status: 404,
  error: "no such media request",
  code: "media_not_found"
}) {}

export class MediaAlreadyCompleted extends Problem<MediaAlreadyCompleted>()("MediaAlreadyCompleted", {
  status: 409,
  error: "the media request is already completed",
  code: "media_already_completed"
}) {}

export class MediaNotCompleted extends Problem<MediaNotCompleted>()("MediaNotCompleted", {
  status: 409,
  error: "the media request is not completed",
  code: "media_not_completed"
}) {}

export class MediaRateLimited extends Problem<MediaRateLimited>()("MediaRateLimited", {
  status: 429,
  error: "the generation service is busy, retry shortly",
  code: "media_rate_limited"
}) {}

export class MediaUnavailable extends Problem<MediaUnavailable>()("MediaUnavailable", {
  status: 503,
  error: "the generation service is temporarily unavailable, retry later",
  code: "media_unavailable"
}) {}
