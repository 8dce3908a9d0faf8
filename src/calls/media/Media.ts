/** Generates images and videos by quote. Submitting a job reserves its quote. The job is charged once, when there is a valid result. */
import { Context, Effect, Layer } from "effect"
import type { Claim } from "../../books/gate/Gate.ts"
import type { GateRefusal } from "../../books/gate/Problems.ts"
import type { Caller } from "../../kernel/Caller.ts"
import type { Nano } from "../../kernel/Money.ts"
import { paginated } from "../../kernel/Page.ts"
import type { Paged, PageOf } from "../../kernel/Page.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import * as Content from "./Content.ts"
import type { MediaContent } from "./Content.ts"
import { quoteOf } from "./Job.ts"
import type { Job, Order } from "./Job.ts"
import { Jobs } from "./Jobs.ts"
import * as Model from "./Model.ts"
import type { MediaRequest } from "./Model.ts"
import {
  MediaAlreadyCompleted,
  MediaNotCompleted,
  MediaNotFound,
  MediaRateLimited,
  MediaRejected,
  MediaUnavailable
} from "./Problems.ts"
import { upstreamLookup } from "../../upstream/models/Upstreams.ts"
import type { Upstream } from "../../upstream/models/Upstreams.ts"
import { MediaModels } from "./Settings.ts"

export interface MediaQuote {
  readonly model: string
  readonly provider: string
  readonly quote: Nano
  readonly units: number
  readonly unit: "second" | "image"
}

/** A caller's job, identified by the id that its submission returned. */
export interface MediaJob {
  readonly caller: Caller
  readonly request_id: string
}

export interface MediaContract {
  /** Computes a job's cost. Reserves nothing and calls no vendor. */
  readonly quote: (job: MediaRequest) => Effect.Effect<MediaQuote, MediaRejected>
  /** Reserves the quote and submits the job to the vendor. Nothing is charged yet. `beside` is committed together with the reservation. */
  readonly submit: (request: {
    readonly caller: Caller
    readonly job: MediaRequest
    readonly beside?: Claim["beside"]
  }) => Effect.Effect<Job, MediaRejected | MediaRateLimited | MediaUnavailable | GateRefusal>
  /** Polls the vendor, unless polls are too frequent, and returns the job. The job has a `charge` once it has ended. */
  readonly status: (request: MediaJob) => Effect.Effect<Job, MediaNotFound>
  /** Returns the completed job, with its `output` or `error`. */
  readonly result: (request: MediaJob) => Effect.Effect<Job, MediaNotFound | MediaNotCompleted>
  /** Fetches one of the result's files from the vendor, by index (from 0). */
  readonly content: (
    request: MediaJob & { readonly index: number }
  ) => Effect.Effect<MediaContent, MediaNotFound | MediaNotCompleted | MediaRateLimited | MediaUnavailable>
  /** Asks the vendor to cancel the job, without a guarantee. The quote remains reserved until the vendor reports that the job has ended. */
  readonly cancel: (request: MediaJob) => Effect.Effect<Job, MediaNotFound | MediaAlreadyCompleted | BooksUnavailable>
  /** Returns a page of the caller's jobs, newest first, as of their last polls. */
  readonly list: (request: { readonly caller: Caller } & PageOf) => Effect.Effect<Paged<Job>>
  /** Returns a metered call's job, or `undefined` if the call submitted none. */
  readonly ofCall: (request: { readonly caller: Caller; readonly call: string }) => Effect.Effect<Job | undefined>
}

export class Media extends Context.Tag("tollgate/media/Media")<Media, MediaContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Media, make))
}

const error_types: Order["error_types"] = {
  JobRejected: "media_rejected",
  VendorBusy: "media_rate_limited",
  VendorUnavailable: "media_unavailable"
}

interface Parts {
  readonly jobs: Jobs["Type"]
  readonly models: MediaModels["Type"]
  readonly upstreamOf: (name: string) => Upstream | undefined
  readonly files: Effect.Effect.Success<typeof Content.make>
}

const make = Effect.gen(function* () {
  const jobs = yield* Jobs
  const models = yield* MediaModels
  const upstreamOf = yield* upstreamLookup("media model", models)
  const parts: Parts = { jobs, models, upstreamOf, files: yield* Content.make }
  return {
    quote: quote(parts),
    submit: submit(parts),
    status: status(parts),
    result: result(parts),
    content: content(parts),
    cancel: cancel(parts),
    list: list(parts),
    ofCall: ({ call, caller }) => jobs.ofCall({ caller, route: "media", call })
  } satisfies MediaContract
})

const quote =
  ({ models }: Parts): MediaContract["quote"] =>
  (job) =>
    Effect.map(Model.quoteOf(models, job), ({ model, price, unit, units }) => ({
      model: model.id,
      provider: model.upstream,
      quote: quoteOf({ price, units }),
      units,
      unit
    }))

const submit = ({ jobs, models }: Parts): MediaContract["submit"] =>
  Effect.fn("Media.submit")(function* ({ beside, caller, job }) {
    const { input, model, price, unit, units } = yield* Model.quoteOf(models, job)
    const order: Order = {
      route: "media",
      usage_endpoint: "media/generate",
      type: model.type,
      model: model.id,
      provider: model.upstream,
      upstream: model.upstream,
      endpoint: model.endpoint,
      input,
      units,
      unit,
      price,
      error_types
    }
    return yield* Effect.catchTags(jobs.submit({ caller, order, beside }), {
      JobRejected: ({ words }) => new MediaRejected(words),
      VendorBusy: ({ words }) => new MediaRateLimited(words),
      VendorUnavailable: () => new MediaUnavailable()
    })
  })

const keyOf = ({ caller, request_id }: MediaJob) => ({
  caller,
  route: "media" as const,
  request_id
})
const found = (request_id: string) => (job: Job | undefined) =>
  job === undefined ? new MediaNotFound({ request_id }) : Effect.succeed(job)

const status =
  ({ jobs }: Parts): MediaContract["status"] =>
  (request) =>
    Effect.flatMap(jobs.poll(keyOf(request)), found(request.request_id))

const result =
  (parts: Parts): MediaContract["result"] =>
  (request) =>
    Effect.filterOrFail(
      status(parts)(request),
      (job) => job.status === "COMPLETED" && job.charge !== undefined,
      ({ request_id, status }) => new MediaNotCompleted({ request_id, state: status })
    )

const content = (parts: Parts): MediaContract["content"] =>
  Effect.fn("Media.content")(function* ({ index, ...request }) {
    const { files, upstreamOf } = parts
    const job = yield* result(parts)(request)
    const url = Content.addressesOf(job.output ?? {})[index]
    if (url === undefined) return yield* new MediaNotFound({ request_id: job.request_id })
    const name = index === 0 ? job.request_id : `${job.request_id}-${index}`
    return yield* files.open(request.caller.account_id, url, upstreamOf(job.provider)?.host ?? "", name)
  })

const cancel =
  ({ jobs }: Parts): MediaContract["cancel"] =>
  (request) =>
    Effect.filterOrFail(
      Effect.flatMap(jobs.cancel(keyOf(request)), found(request.request_id)),
      (job) => job.status !== "COMPLETED",
      ({ request_id }) => new MediaAlreadyCompleted({ request_id })
    )

const list =
  ({ jobs }: Parts): MediaContract["list"] =>
  ({ caller, page, per_page }) =>
    Effect.map(jobs.page(caller, "media", { page, per_page }), ({ jobs, total }) =>
      paginated({ page, per_page }, total, jobs)
    )
