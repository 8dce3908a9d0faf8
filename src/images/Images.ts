/** Images by the direct route: jobs of the same kind as the generic route's, waited for unless the caller would rather poll. */
import { Clock, Context, Effect, Layer } from "effect"
import type { InsufficientCredits } from "../gate/Problems.ts"
import { json } from "../http/Body.ts"
import type { Caller } from "../kernel/Caller.ts"
import type { Inbound } from "../http/Inbound.ts"
import type { BodyProblem } from "../http/Incoming.ts"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"
import * as Reply from "../http/Reply.ts"
import { Idempotency } from "../idempotency/Idempotency.ts"
import type { Beside, IdempotencyProblem } from "../idempotency/Idempotency.ts"
import { toDecimal } from "../kernel/Money.ts"
import { Jobs } from "../media/Jobs.ts"
import type { Job } from "../media/Jobs.ts"
import { isObject } from "../upstream/Failures.ts"
import type { UpstreamProblem } from "../upstream/Failures.ts"
import { retryAfter } from "../upstream/GenerationQueue.ts"
import type { NotTaken } from "../upstream/GenerationQueue.ts"
import { UpstreamBusy, UpstreamFailed, UpstreamRejected } from "../upstream/Problems.ts"
import { pick } from "../upstream/Provider.ts"
import { ImageProviders, ImageRequest } from "./Image.ts"
import type { ImageAnswer, ImageProvider } from "./Image.ts"
import { ImageNotFound } from "./Problems.ts"

type ImageProblem = BodyProblem | InsufficientCredits | IdempotencyProblem | UpstreamProblem

export interface Contract {
  /** `POST /v1/images/generate`. */
  readonly generate: (caller: Caller, inbound: Inbound) => Effect.Effect<Reply.Reply, ImageProblem>
  readonly status: (caller: Caller, request_id: string) => Effect.Effect<ImageAnswer, ImageNotFound>
}

/** The longest body: a source image may be in it. */
const bodyBytesMax = 32 * 1024 * 1024
/** How long a caller is kept waiting, and how often the job is looked at meanwhile. */
const patience = 30_000
const pause = 250

export class Images extends Context.Tag("tollgate/images/Images")<Images, Contract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Images, make))
}

const read = json(ImageRequest)

const make = Effect.gen(function* () {
  const jobs = yield* Jobs
  const providers = yield* ImageProviders
  const idempotency = yield* Idempotency

  const call = Effect.fnUntraced(function* (caller: Caller, inbound: Inbound, beside: Beside | undefined) {
    const asked = yield* read(yield* inbound.read(bodyBytesMax))
    const provider = yield* pick(providers, asked.provider)
    const endpoint = yield* endpointOf(provider, asked)
    const job = yield* jobs.submit(
      caller,
      {
        route: "images",
        type: "image",
        model: endpoint,
        provider: provider.id,
        upstream: provider.upstream,
        endpoint,
        input: inputOf(asked),
        units: asked.num_images,
        unit: "image",
        price: provider.price_by_size[asked.image_size] ?? provider.price
      },
      beside,
      refusedBy
    )
    return yield* answered(caller, asked, job)
  })

  /** The answer of a call whose first one was not kept: its job is the same. */
  const resume = Effect.fnUntraced(function* (caller: Caller, inbound: Inbound, made: string) {
    const asked = yield* read(yield* inbound.read(bodyBytesMax))
    const job = yield* jobs.ofCall(caller.account_id, "images", made)
    return job === undefined ? undefined : yield* answered(caller, asked, job)
  })

  const answered = Effect.fnUntraced(function* (caller: Caller, asked: ImageRequest, job: Job) {
    const begun = yield* Clock.currentTimeMillis
    const shown = asked.sync_mode ? yield* waited(caller, job, begun) : job
    return Reply.json(200, answerOf(shown), shown.settled ? { "x-charge-usd": toDecimal(shown.cost) } : {})
  })

  const waited = (caller: Caller, job: Job, begun: number): Effect.Effect<Job> =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      if (job.settled || now - begun > patience) return job
      yield* Effect.sleep(pause)
      const looked = yield* jobs.look(caller.account_id, "images", job.id)
      return looked === undefined ? job : yield* waited(caller, looked, begun)
    })

  const generate: Contract["generate"] = (caller, inbound) =>
    idempotency.onceOf(
      caller,
      inbound,
      "images/generate",
      bodyBytesMax,
      (inbound, beside) => call(caller, inbound, beside),
      (inbound, made) => resume(caller, inbound, made)
    )

  const status: Contract["status"] = Effect.fn("Images.status")(function* ({ account_id }, request_id) {
    const job = yield* jobs.look(account_id, "images", request_id)
    return job === undefined ? yield* new ImageNotFound() : answerOf(job)
  })

  return { generate, status } satisfies Contract
})

/** The provider's model for the request, which it must be able to make. */
const endpointOf = (
  { endpoint, image_to_image_endpoint, images_max }: ImageProvider,
  { num_images, source_url }: ImageRequest
): Effect.Effect<string, InvalidRequest> => {
  const refuse = (field: string, rule: string) => InvalidRequest.of(field, rule)
  if (num_images > images_max) return refuse("num_images", `a whole number from 1 to ${images_max}`)
  if (source_url === undefined) return Effect.succeed(endpoint)
  return image_to_image_endpoint === undefined
    ? refuse("source_url", "this provider makes no images from images")
    : Effect.succeed(image_to_image_endpoint)
}

const inputOf = ({ source_url, strength, ...asked }: ImageRequest) => ({
  prompt: asked.prompt,
  num_images: asked.num_images,
  image_size: asked.image_size,
  seed: asked.seed,
  guidance_scale: asked.guidance_scale,
  num_inference_steps: asked.num_inference_steps,
  ...(source_url !== undefined && { image_url: source_url, ...(strength !== undefined && { strength }) })
})

const refusedBy = (no: NotTaken): UpstreamProblem => {
  if (no.how === "rejected") return new UpstreamRejected(no.words)
  return no.how === "busy" ? new UpstreamBusy(retryAfter(no)) : new UpstreamFailed()
}

const answerOf = ({ error, id, output, provider, settled }: Job): ImageAnswer => {
  if (!settled) return { request_id: id, status: "PROCESSING", provider }
  if (output === null) {
    return { request_id: id, status: "FAILED", provider, error: error ?? "the generation failed" }
  }
  const images = Array.isArray(output.images) ? output.images : []
  return {
    request_id: id,
    status: "COMPLETED",
    provider,
    images: images.filter(isObject).map(({ height, url, width }) => ({
      url: String(url),
      ...(typeof width === "number" && { width }),
      ...(typeof height === "number" && { height })
    }))
  }
}
