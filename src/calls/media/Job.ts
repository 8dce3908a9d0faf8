/** A generation job: its order and its state. */
import { Duration, Schema } from "effect"
import type { RatesAt } from "../../books/gate/RateHeaders.ts"
import type { Caller } from "../../kernel/Caller.ts"
import type { Nano } from "../../kernel/Money.ts"
import { charge } from "../../kernel/Price.ts"
import type { UnitPrice } from "../../kernel/Price.ts"
import type { NotTaken } from "../../upstream/generation/GenerationQueue.ts"
import type { LongTexts } from "../../upstream/wire/LongText.ts"

/** The route that accepted the job. Clients of the other route cannot see the job. */
export type JobRoute = "media" | "images"

export interface Order {
  readonly route: JobRoute
  /** The route's name in usage records. */
  readonly usage_endpoint: string
  readonly type: "video" | "image"
  readonly model: string
  readonly provider: string
  readonly upstream: string
  readonly endpoint: string
  /** The vendor's request body. */
  readonly input: Record<string, unknown>
  /** This body's long strings, if another thread has read them. */
  readonly texts?: LongTexts | undefined
  readonly units: number
  readonly unit: string
  /** USD per unit. */
  readonly price: UnitPrice
  /** The usage record's `error_type` if the vendor does not accept the job. It equals the route's error code. */
  readonly error_types: Readonly<Record<NotTaken["_tag"], string>>
}

/** Computes the quote: a successful job's cost, in nano-USD. */
export const quoteOf = ({ price, units }: Pick<Order, "price" | "units">): Nano => charge([{ units, price }])

export type JobStatus = typeof JobStatus.Type
export const JobStatus = Schema.Literal("IN_QUEUE", "IN_PROGRESS", "COMPLETED", "CANCELLED")

export type FailureType = typeof FailureType.Type
export const FailureType = Schema.Literal("media_rejected", "media_failed", "media_rate_limited", "media_unavailable")

/** A job's final price: its quote, a share of the quote if images are missing, or 0 for a failure. */
export interface JobCharge {
  readonly usage_id: string
  readonly charged: Nano
}

export interface Job {
  readonly request_id: string
  readonly model: string
  readonly provider: string
  /** A failed job is `COMPLETED` with an `error`. */
  readonly status: JobStatus
  readonly queue_position: number | null
  readonly units: number
  readonly unit: string
  /** The amount reserved while the job runs, in nano-USD. It never changes. */
  readonly quote: Nano
  /** The final charge, or `undefined` until the job has ended. */
  readonly charge: JobCharge | undefined
  /** The generation time that the vendor reports, in seconds. */
  readonly inference_time: number | null
  /** The result, or `null` in lists and if there is no valid result. */
  readonly output: Record<string, unknown> | null
  readonly type: Order["type"]
  /** The submission time, as Unix time in milliseconds. */
  readonly created_at: number
  /** The call's rate limits, present on submission if a budget applies to the call. */
  readonly rates?: RatesAt | undefined
  readonly error: string | null
  readonly error_type: FailureType | null
}

/** An API key or an application's token can access only the jobs that it submitted. A signed-in user can access all of their jobs in the tenant. */
export type JobCaller = Pick<Caller, "account_id" | "tenant_id" | "application_id" | "oauth_client">

/** The key of a caller's job on a route. */
export interface JobKey {
  readonly caller: JobCaller
  readonly route: JobRoute
  readonly request_id: string
}

/** The age at which an unfinished job counts as failed. */
export const lifetime = Duration.hours(24)
