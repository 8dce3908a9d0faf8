/** The response bodies of the media routes. */
import { Schema } from "effect"
import { Moment } from "../../kernel/Moment.ts"
import { Usd } from "../../kernel/Money.ts"
import { Paginated } from "../../kernel/Page.ts"
import * as Price from "../../kernel/Price.ts"
import { FailureType, JobStatus } from "./Job.ts"
import type { Job } from "./Job.ts"
import type { MediaModel } from "./Model.ts"

export const MediaModelEntry = Schema.Struct({
  id: Schema.String,
  display_name: Schema.String,
  type: Schema.Literal("video", "image"),
  unit: Schema.Literal("second", "image"),
  unit_price_usd: Schema.Number,
  pricing_note: Schema.String,
  default: Schema.Boolean
}).annotations({ identifier: "MediaModelEntry" })

/** Builds a model's entry in the list, with its price at the default settings. */
export const entryOf = (model: MediaModel): typeof MediaModelEntry.Type => {
  const price =
    model.type === "image"
      ? model.price
      : model.audio === "on"
        ? model.resolutions[0].price_with_audio
        : model.resolutions[0].price
  return {
    id: model.id,
    display_name: model.display_name,
    type: model.type,
    unit: model.type === "video" ? "second" : "image",
    unit_price_usd: Number(Price.toDecimal(price)),
    pricing_note: model.pricing_note,
    default: model.type === "image" && model.default
  }
}

export const MediaSubmitted = Schema.Struct({
  request_id: Schema.String,
  model: Schema.String,
  provider: Schema.String,
  status: JobStatus,
  queue_position: Schema.Int,
  /** The quote, which never changes. */
  cost_usd: Usd,
  units: Schema.Number,
  unit: Schema.String
}).annotations({ identifier: "MediaSubmitted" })
export type MediaSubmitted = typeof MediaSubmitted.Type

export const submittedOf = (job: Job): MediaSubmitted => ({
  request_id: job.request_id,
  model: job.model,
  provider: job.provider,
  status: job.status,
  queue_position: job.queue_position ?? 0,
  cost_usd: job.quote,
  units: job.units,
  unit: job.unit
})

const failure = {
  /** Present only if the generation failed. */
  error: Schema.optionalWith(Schema.String, { exact: true }),
  error_type: Schema.optionalWith(FailureType, { exact: true })
} as const

const failureOf = ({ error, error_type }: Job) => ({
  ...(error !== null && { error }),
  ...(error_type !== null && { error_type })
})

export const MediaStatus = Schema.Struct({
  request_id: Schema.String,
  model: Schema.String,
  status: JobStatus,
  metrics: Schema.Struct({ inference_time: Schema.Number }),
  /** Whether the charge is final. */
  settled: Schema.Boolean,
  /** The quote, or the charge once the job is settled. */
  cost_usd: Usd,
  units: Schema.Number,
  unit: Schema.String,
  ...failure
}).annotations({ identifier: "MediaStatus" })
export type MediaStatus = typeof MediaStatus.Type

export const statusOf = (job: Job): MediaStatus => ({
  request_id: job.request_id,
  model: job.model,
  status: job.status,
  // Clients expect a number, but some vendors report the time late or never.
  metrics: { inference_time: job.inference_time ?? 0 },
  settled: job.charge !== undefined,
  cost_usd: job.charge === undefined ? job.quote : job.charge.charged,
  units: job.units,
  unit: job.unit,
  ...failureOf(job)
})

/** A job in a list, as of its last poll and without its output. */
export const MediaJobEntry = Schema.Struct({
  ...MediaStatus.fields,
  type: Schema.Literal("video", "image"),
  provider: Schema.String,
  created_at: Moment
}).annotations({ identifier: "MediaJobEntry" })

export const jobEntryOf = (job: Job): typeof MediaJobEntry.Type => ({
  ...statusOf(job),
  type: job.type,
  provider: job.provider,
  created_at: job.created_at
})

export const MediaJobPage = Paginated(MediaJobEntry).annotations({ identifier: "MediaJobPage" })

export const MediaResult = Schema.Struct({
  request_id: Schema.String,
  model: Schema.String,
  status: JobStatus,
  output: Schema.Record({ key: Schema.String, value: Schema.Unknown }),
  ...failure
}).annotations({ identifier: "MediaResult" })
export type MediaResult = typeof MediaResult.Type

export const resultOf = (job: Job): MediaResult => ({
  request_id: job.request_id,
  model: job.model,
  status: job.status,
  output: job.output ?? {},
  ...failureOf(job)
})
