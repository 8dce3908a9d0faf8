/**
 * Generates images, for the service's route and for OpenAI's routes. Each request is a job of `calls/media/Jobs` and waits for its images unless the
 * caller prefers to poll.
 *
 * Where the specification is silent:
 * - A request for images waits up to 30 seconds. If the images are not ready by then, the response contains `PROCESSING` and the id. A request with
 *   OpenAI's fields waits up to five minutes, because OpenAI's clients do not poll.
 */
import { Clock, Context, Duration, Effect, Layer } from "effect"
import type { Claim } from "../../books/gate/Gate.ts"
import type { GateRefusal } from "../../books/gate/Problems.ts"
import type { RatesAt } from "../../books/gate/RateHeaders.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { FailureType, Job, JobCharge, Order } from "../media/Job.ts"
import { Jobs } from "../media/Jobs.ts"
import * as Download from "../../upstream/wire/Download.ts"
import { isObject } from "../../upstream/wire/Failures.ts"
import type { UpstreamProblem } from "../../upstream/wire/Failures.ts"
import type { LongTexts } from "../../upstream/wire/LongText.ts"
import { UpstreamBusy, UpstreamFailed, UpstreamRejected } from "../../upstream/wire/Problems.ts"
import { pick } from "../../upstream/models/Provider.ts"
import { upstreamLookup } from "../../upstream/models/Upstreams.ts"
import type { Unreachable } from "../../upstream/wire/Wire.ts"
import type { ImageAnswer, ImageRequest } from "./Image.ts"
import { vendorRequestOf, providerFor } from "./OpenAi.ts"
import type { Creation, VendorRequest } from "./OpenAi.ts"
import { priceOf } from "./Prices.ts"
import { ImageProviders } from "./Settings.ts"
import type { ImageProvider } from "./Settings.ts"
import { ImageNotFound } from "./Problems.ts"

/** The state of an image request: the response body and the cost. */
export interface ImageJob extends ImageAnswer {
  readonly provider: string
  /** The amount reserved while the job is `PROCESSING`. */
  readonly quote: Nano
  /** The final charge, or `undefined` while the job is `PROCESSING`. */
  readonly charge: JobCharge | undefined
  /** The call's rate limits, present on submission if a budget applies to the call. */
  readonly rates?: RatesAt | undefined
  /** The reason why the job `FAILED`. `media_rejected` means that the vendor found the request invalid. */
  readonly error_type: FailureType | null
}

export interface ImagesContract {
  /**
   * Reserves the price and submits the job. With `sync_mode`, waits up to `ImagePatience` for the images. Returns the job's state. `beside` is
   * committed together with the reservation.
   */
  readonly generate: (call: {
    readonly caller: Caller
    readonly request: ImageRequest
    /** The request's long strings, if another thread has read them. */
    readonly texts?: LongTexts | undefined
    readonly beside?: Claim["beside"]
  }) => Effect.Effect<ImageJob, InvalidRequest | UpstreamProblem | GateRefusal>
  /** Submits a job with OpenAI's fields and waits up to `CreationPatience` for the images. Returns the job's state. */
  readonly create: (call: {
    readonly caller: Caller
    readonly creation: Creation
    /** The creation's long strings, if another thread has read them. */
    readonly texts?: LongTexts | undefined
    /** The route's name in usage records; `images/generations` by default. */
    readonly endpoint?: string | undefined
    readonly beside?: Claim["beside"]
  }) => Effect.Effect<ImageJob, InvalidRequest | UpstreamProblem | GateRefusal>
  /** Polls the vendor, unless polls are too frequent, and returns the job's state. */
  readonly status: (call: {
    readonly caller: Caller
    readonly request_id: string
  }) => Effect.Effect<ImageJob, ImageNotFound>
  /** Streams a generated image from its URL, whose host must be public or the provider's host. */
  readonly download: (image: {
    readonly provider: string
    readonly url: string
    /** The maximum size, in bytes. */
    readonly limit: number
  }) => Effect.Effect<Download.FileDownload, Unreachable>
  /** Returns the job of an earlier metered call, after the same wait, or `undefined` if that call created no job. */
  readonly ofCall: (call: {
    readonly caller: Caller
    /** The original request, or absent for a creation. */
    readonly request?: Pick<ImageRequest, "sync_mode"> | undefined
    readonly call: string
  }) => Effect.Effect<ImageJob | undefined>
}

/** The maximum time that `generate` waits for images. */
export class ImagePatience extends Context.Reference<ImagePatience>()("tollgate/images/ImagePatience", {
  defaultValue: (): Duration.Duration => Duration.seconds(30)
}) {}

/** The maximum time that `create` waits for images. */
export class CreationPatience extends Context.Reference<CreationPatience>()("tollgate/images/CreationPatience", {
  defaultValue: (): Duration.Duration => Duration.minutes(5)
}) {}

const pause = Duration.millis(250)

export class Images extends Context.Tag("tollgate/images/Images")<Images, ImagesContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Images, make))
}

const error_types: Order["error_types"] = {
  JobRejected: "upstream_rejected",
  VendorBusy: "upstream_rate_limited",
  VendorUnavailable: "upstream_error"
}

interface Parts {
  readonly jobs: Jobs["Type"]
  readonly providers: ReadonlyArray<ImageProvider>
  /** The upstreams' hosts, by provider id. */
  readonly hosts: ReadonlyMap<string, string>
  /** `ImagePatience` in milliseconds. */
  readonly patience: number
  /** `CreationPatience` in milliseconds. */
  readonly creationPatience: number
}

const make = Effect.gen(function* () {
  const providers = yield* ImageProviders
  const upstreamOf = yield* upstreamLookup("image provider", providers)
  const parts: Parts = {
    jobs: yield* Jobs,
    providers,
    hosts: new Map(providers.map(({ id, upstream }) => [id, upstreamOf(upstream).host])),
    patience: Duration.toMillis(yield* ImagePatience),
    creationPatience: Duration.toMillis(yield* CreationPatience)
  }
  return {
    generate: generate(parts),
    create: create(parts),
    status: status(parts),
    ofCall: ofCall(parts),
    download: download(parts)
  } satisfies ImagesContract
})

const generate = (parts: Parts): ImagesContract["generate"] =>
  Effect.fn("Images.generate")(function* ({ beside, caller, request, texts }) {
    const { patience, providers } = parts
    const provider = yield* pick(providers, request.provider)
    const endpoint = yield* endpointOf(provider, request)
    const made: VendorRequest = {
      endpoint,
      input: inputOf(request),
      units: request.num_images,
      ...priceOf(provider, request.image_size, request.source_url !== undefined)
    }
    const job = yield* submitted(parts, caller, provider, { ...made, texts }, "images/generate", beside)
    return yield* answered(parts, caller, request.sync_mode ? patience : undefined, job)
  })

const create = (parts: Parts): ImagesContract["create"] =>
  Effect.fn("Images.create")(function* ({ beside, caller, creation, endpoint = "images/generations", texts }) {
    const provider = yield* providerFor(parts.providers, creation.model)
    const made = yield* vendorRequestOf(provider, creation)
    const job = yield* submitted(parts, caller, provider, { ...made, texts }, endpoint, beside)
    return yield* answered(parts, caller, parts.creationPatience, job)
  })

const submitted = (
  { jobs }: Parts,
  caller: Caller,
  provider: ImageProvider,
  { endpoint, input, price, texts, unit, units }: VendorRequest & Pick<Order, "texts">,
  usage_endpoint: string,
  beside: Claim["beside"]
): Effect.Effect<Job, UpstreamProblem | GateRefusal> => {
  const order: Order = {
    route: "images",
    usage_endpoint,
    type: "image",
    model: endpoint,
    provider: provider.id,
    upstream: provider.upstream,
    endpoint,
    input,
    texts,
    units,
    unit,
    price,
    error_types
  }
  return Effect.catchTags(jobs.submit({ caller, order, beside }), {
    JobRejected: ({ words }) => new UpstreamRejected(words),
    VendorBusy: ({ words }) => new UpstreamBusy(words),
    VendorUnavailable: () => new UpstreamFailed()
  })
}

/** Waits up to `patience` milliseconds for the job's images and returns the job's state. Without `patience`, does not wait. */
const answered = (parts: Parts, caller: Caller, patience: number | undefined, job: Job): Effect.Effect<ImageJob> =>
  Effect.map(
    patience === undefined
      ? Effect.succeed(job)
      : Effect.flatMap(Clock.currentTimeMillis, (now) => waited(parts, caller, job, now + patience)),
    (current) => ({ ...imageJobOf(current), rates: job.rates })
  )

/** Returns the job once it has ended, or after the first poll past `until` (Unix time in milliseconds). */
const waited = (parts: Parts, caller: Caller, job: Job, until: number): Effect.Effect<Job> =>
  Effect.gen(function* () {
    if (job.charge !== undefined || (yield* Clock.currentTimeMillis) > until) return job
    yield* Effect.sleep(pause)
    const { request_id } = job
    const current = yield* parts.jobs.poll({ caller, route: "images", request_id })
    return current === undefined ? job : yield* waited(parts, caller, current, until)
  })

const ofCall = (parts: Parts): ImagesContract["ofCall"] =>
  Effect.fn("Images.ofCall")(function* ({ call, caller, request }) {
    const { creationPatience, jobs, patience } = parts
    const job = yield* jobs.ofCall({ caller, route: "images", call })
    const wait = request === undefined ? creationPatience : request.sync_mode ? patience : undefined
    return job === undefined ? undefined : yield* answered(parts, caller, wait, job)
  })

const status = ({ jobs }: Parts): ImagesContract["status"] =>
  Effect.fn("Images.status")(function* ({ caller, request_id }) {
    const job = yield* jobs.poll({ caller, route: "images", request_id })
    return job === undefined ? yield* new ImageNotFound({ request_id }) : imageJobOf(job)
  })

const download =
  ({ hosts }: Parts): ImagesContract["download"] =>
  ({ limit, provider, url }) =>
    Download.open(url, hosts.get(provider) ?? "", limit)

/** Returns the provider's endpoint for the request. Fails if the provider cannot serve the request. */
const endpointOf = (
  { endpoint, image_to_image_endpoint, images_max }: ImageProvider,
  { num_images, source_url }: ImageRequest
): Effect.Effect<string, InvalidRequest> => {
  if (num_images > images_max) return InvalidRequest.of("num_images", `must be a whole number from 1 to ${images_max}`)
  if (source_url === undefined) return Effect.succeed(endpoint)
  return image_to_image_endpoint === undefined
    ? InvalidRequest.of("source_url", "this provider cannot edit images")
    : Effect.succeed(image_to_image_endpoint)
}

const inputOf = ({ source_url, strength, ...request }: ImageRequest) => ({
  prompt: request.prompt,
  num_images: request.num_images,
  image_size: request.image_size,
  seed: request.seed,
  guidance_scale: request.guidance_scale,
  num_inference_steps: request.num_inference_steps,
  ...(source_url !== undefined && { image_url: source_url, ...(strength !== undefined && { strength }) })
})

const imageJobOf = ({ charge, error, error_type, output, provider, quote, request_id }: Job): ImageJob => {
  if (charge === undefined) return { request_id, status: "PROCESSING", provider, quote, charge, error_type }
  if (output === null) {
    const why = error ?? "the generation failed"
    return { request_id, status: "FAILED", provider, error: why, quote, charge, error_type }
  }
  const images = Array.isArray(output.images) ? output.images : []
  return {
    request_id,
    status: "COMPLETED",
    provider,
    images: images.filter(isObject).map(({ height, url, width }) => ({
      url: String(url),
      ...(typeof width === "number" && { width }),
      ...(typeof height === "number" && { height })
    })),
    quote,
    charge,
    error_type
  }
}
