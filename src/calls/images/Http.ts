import { HttpApiBuilder } from "@effect/platform"
import { Clock, Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { Gate } from "../../books/gate/Gate.ts"
import { json } from "../../http/transport/Body.ts"
import { CurrentCaller } from "../../http/lanes/Caller.ts"
import type { Inbound } from "../../http/transport/Inbound.ts"
import { openAiRefusal } from "../../http/contract/OpenAiRefusal.ts"
import { raw } from "../../http/lanes/Raw.ts"
import * as Reply from "../../http/transport/Reply.ts"
import { affordable } from "../../http/idempotency/BeforeBody.ts"
import { Idempotency, refusalIn } from "../../http/idempotency/Idempotency.ts"
import { Busy, busyFor } from "../../kernel/Busy.ts"
import type { Caller } from "../../kernel/Caller.ts"
import type { Nano } from "../../kernel/Money.ts"
import { charge } from "../../kernel/Price.ts"
import { usualResponseBytes } from "../../kernel/Room.ts"
import type { Room } from "../../kernel/Room.ts"
import { UpstreamFailed, UpstreamRejected } from "../../upstream/wire/Problems.ts"
import { namesOf } from "../../upstream/models/Provider.ts"
import { Unreachable } from "../../upstream/wire/Wire.ts"
import { forEndUser } from "../metered/EndUser.ts"
import { labelled, meteredRoutes } from "../metered/Routes.ts"
import { chargeHeader, rateHeadersOf } from "../metered/ReceiptHeaders.ts"
import { ImagesApi } from "./Api.ts"
import { encoded } from "./Encoded.ts"
import type { ImageAnswer } from "./Image.ts"
import * as LongRequests from "./LongRequests.ts"
import { OpenAiImageRequest } from "./OpenAi.ts"
import type { Creation, OpenAiImages } from "./OpenAi.ts"
import { listOf, priceOf, sizesOf } from "./Prices.ts"
import { ImagesNotFetched, ImagesPending, ImagesTooLarge } from "./Problems.ts"
import { ImageProviders } from "./Settings.ts"
import type { ImageProvider } from "./Settings.ts"
import { Images } from "./Images.ts"
import type { ImageJob, ImagesContract } from "./Images.ts"

/** The maximum request body size, in bytes. A body can contain a source image. */
const bodyBytesMax = 32 * 1024 * 1024

const read = (caller: Caller, inbound: Inbound) =>
  Effect.flatMap(inbound.read(bodyBytesMax), (bytes) => LongRequests.generation(bytes, caller.account_id))

const answerOf = ({ error, images, provider, request_id, status }: ImageJob): ImageAnswer => ({
  request_id,
  status,
  provider,
  ...(images !== undefined && { images }),
  ...(error !== undefined && { error })
})

const headersFor = ({ charge, rates }: ImageJob) =>
  charge === undefined ? rateHeadersOf(rates) : chargeHeader({ charged: charge.charged, rates })

const replyOf = (job: ImageJob): Reply.Reply => Reply.json(200, answerOf(job), headersFor(job))

// ---- OpenAI's routes -------------------------------------------------------------------------------------------------------------

/** The maximum size of a generation request, in bytes. */
const creationBytesMax = 1024 * 1024
/** The maximum size of an edit's form, in bytes. */
const formBytesMax = 20 * 1024 * 1024
/** The maximum total size of a response's images, in bytes. */
const imagesBytesMax = 64 * 1024 * 1024

const decodeCreation = json(OpenAiImageRequest)
const readCreation = (inbound: Inbound) => Effect.flatMap(inbound.read(creationBytesMax), decodeCreation)

const readEdit = (caller: Caller, inbound: Inbound) =>
  inbound.read(formBytesMax).pipe(
    Effect.catchTag("PayloadTooLarge", () => new ImagesTooLarge()),
    Effect.flatMap((bytes) => {
      const type = inbound.header("content-type") ?? ""
      return LongRequests.edit(type, bytes, inbound.header("idempotency-key") !== undefined, caller.account_id)
    })
  )

/** Builds the job's response in OpenAI's format, or fails with the job's problem. */
const openAiReplyOf = Effect.fnUntraced(function* (
  images: Pick<ImagesContract, "download">,
  job: ImageJob,
  format: Creation["response_format"],
  room: Room
) {
  const { charge, error = "", error_type, rates, request_id, status } = job
  if (status === "PROCESSING") return yield* new ImagesPending({ request_id })
  if (status === "FAILED") {
    if (error_type === "media_rejected") return yield* new UpstreamRejected({ message: error, field: "", rule: error })
    return yield* new UpstreamFailed({ message: error })
  }
  const created = Math.floor((yield* Clock.currentTimeMillis) / 1_000)
  const headers = chargeHeader({ charged: charge?.charged ?? 0n, rates })
  if (format === "b64_json") {
    const body = yield* fetched(images, job, created, room)
    return { status: 200, headers: { "content-type": "application/json", ...headers }, body } satisfies Reply.Reply
  }
  const data = (job.images ?? []).map(({ url }) => ({ url }))
  return Reply.json(200, { created, data } satisfies OpenAiImages, headers)
})

/** Builds a response that contains the images as base64. */
const fetched = (
  { download }: Pick<ImagesContract, "download">,
  { images = [], provider, request_id }: ImageJob,
  created: number,
  room: Room
): Effect.Effect<Buffer, ImagesNotFetched> => {
  const limit = Math.floor(imagesBytesMax / images.length)
  const urls = images.map(({ url }) => url)
  return encoded(created, urls, (url) => download({ provider, url, limit }), limit, room).pipe(
    Effect.flatMap((body) =>
      body === undefined ? new Unreachable({ reason: "the images do not fit in memory" }) : Effect.succeed(body)
    ),
    Effect.catchAll(({ reason }) =>
      Effect.zipRight(
        Effect.annotateLogs(Effect.logWarning("generated images could not be fetched"), { request_id, reason }),
        new ImagesNotFetched({ request_id })
      )
    )
  )
}

/** Reserves memory for a response with base64 images. If none is free, fails with `Busy` and calls no provider. */
const withRoom = <A, E>(
  inbound: Inbound,
  { response_format }: Pick<Creation, "response_format">,
  use: (room: Room) => Effect.Effect<A, E>
): Effect.Effect<A, E | Busy> =>
  inbound.withRoom((room): Effect.Effect<A, E | Busy> =>
    response_format === "b64_json" && !room.reserve(usualResponseBytes) ? new Busy({ retry_after: busyFor }) : use(room)
  )

/** Returns the price of one edited image at each provider and size. */
const costsOf = (providers: ReadonlyArray<ImageProvider>): ReadonlyArray<Nano> =>
  providers.flatMap((provider) =>
    sizesOf(provider).map((size) => charge([{ units: 1, price: priceOf(provider, size, true).price }]))
  )

const generation = Effect.gen(function* () {
  const images = yield* Images
  const meteredRoute = yield* meteredRoutes()
  return meteredRoute({
    name: "images/generate",
    body_bytes_max: bodyBytesMax,
    answer: (caller, inbound, beside) =>
      Effect.map(
        Effect.flatMap(read(caller, inbound), ({ request, texts }) =>
          Effect.flatMap(forEndUser(caller, request), (caller) => images.generate({ caller, request, texts, beside }))
        ),
        replyOf
      ),
    // The first response was not saved, but its job may exist.
    resume: (caller, inbound, call) =>
      Effect.map(
        Effect.flatMap(read(caller, inbound), ({ request }) => images.ofCall({ caller, request, call })),
        (job) => (job === undefined ? job : replyOf(job))
      )
  })
})

/** Responds to a retry if the first response was not saved. The retry gets the same job, or `undefined` if there is none. */
const made = (images: ImagesContract, caller: Caller, inbound: Inbound, call: string, creation: Creation) =>
  withRoom(inbound, creation, (room) =>
    Effect.flatMap(images.ofCall({ caller, call }), (job) =>
      job === undefined ? Effect.succeed(undefined) : openAiReplyOf(images, job, creation.response_format, room)
    )
  )

const creations = Effect.gen(function* () {
  const images = yield* Images
  const meteredRoute = yield* meteredRoutes()
  return meteredRoute({
    name: "images/generations",
    body_bytes_max: creationBytesMax,
    answer: (caller, inbound, beside) =>
      Effect.flatMap(readCreation(inbound), (creation) =>
        withRoom(inbound, creation, (room) =>
          forEndUser(caller, creation).pipe(
            Effect.flatMap((caller) => images.create({ caller, creation, beside })),
            Effect.flatMap((job) => openAiReplyOf(images, job, creation.response_format, room))
          )
        )
      ),
    resume: (caller, inbound, call) =>
      Effect.flatMap(readCreation(inbound), (creation) => made(images, caller, inbound, call, creation)),
    shape: openAiRefusal
  })
})

/** OpenAI's image edit route. The form is read before the idempotency key is looked up, because its boundary changes on each retry. */
const edits = Effect.gen(function* () {
  const images = yield* Images
  const idempotency = yield* Idempotency
  const ifAffordable = affordable(yield* Gate, idempotency, costsOf(yield* ImageProviders))
  return labelled((caller, inbound) =>
    ifAffordable(
      caller,
      inbound,
      Effect.flatMap(readEdit(caller, inbound), ({ creation, fingerprint, texts }) =>
        idempotency.once(
          caller,
          inbound.header("idempotency-key"),
          () => `images/edits ${fingerprint()}`,
          (beside) =>
            withRoom(inbound, creation, (room) =>
              forEndUser(caller, creation).pipe(
                Effect.flatMap((caller) =>
                  images.create({ caller, creation, texts, endpoint: "images/edits", beside })
                ),
                Effect.flatMap((job) => openAiReplyOf(images, job, creation.response_format, room))
              )
            ),
          (call) => made(images, caller, inbound, call, creation),
          refusalIn(openAiRefusal, inbound.request_id ?? "")
        )
      )
    )
  )
})

export const ImagesHttp = HttpApiBuilder.group(
  contract.add(ImagesApi),
  "images",
  Effect.fnUntraced(function* (handlers) {
    const images = yield* Images
    const providers = yield* ImageProviders
    const generate = raw(yield* generation)
    const status = (request_id: string) =>
      Effect.flatMap(CurrentCaller, (caller) => Effect.map(images.status({ caller, request_id }), answerOf))
    return handlers
      .handleRaw("generate", generate)
      .handleRaw("toolGenerate", generate)
      .handleRaw("createImage", raw(yield* creations))
      .handleRaw("editImage", raw(yield* edits))
      .handle("status", ({ urlParams }) => status(urlParams.request_id))
      .handle("toolStatus", ({ urlParams }) => status(urlParams.request_id))
      .handle("providers", () => Effect.succeed(namesOf(providers)))
      .handle("toolProviders", () => Effect.succeed(listOf(providers)))
  })
)
