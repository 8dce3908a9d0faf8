import { HttpApiBuilder } from "@effect/platform"
import { Clock, Effect, Either, Schema } from "effect"
import { createHash } from "node:crypto"
import { contract } from "../../http/contract/Contract.ts"
import { Gate } from "../../books/gate/Gate.ts"
import { json } from "../../http/transport/Body.ts"
import { CurrentCaller } from "../../http/lanes/Caller.ts"
import type { Inbound } from "../../http/transport/Inbound.ts"
import { formOf } from "../../http/transport/Multipart.ts"
import { openAiRefusal } from "../../http/contract/OpenAiRefusal.ts"
import { raw } from "../../http/lanes/Raw.ts"
import * as Reply from "../../http/transport/Reply.ts"
import { affordable } from "../../http/idempotency/BeforeBody.ts"
import { Idempotency, refusalIn } from "../../http/idempotency/Idempotency.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { toDecimal } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { charge } from "../../kernel/Price.ts"
import { UpstreamFailed, UpstreamRejected } from "../../upstream/wire/Problems.ts"
import { namesOf } from "../../upstream/models/Provider.ts"
import type { Unreachable } from "../../upstream/wire/Wire.ts"
import { ImagesApi } from "./Api.ts"
import { ImageRequest } from "./Image.ts"
import type { ImageAnswer } from "./Image.ts"
import { imageTypeOf, OpenAiEditFields, OpenAiImageRequest } from "./OpenAi.ts"
import type { Creation, OpenAiImages } from "./OpenAi.ts"
import { listOf, priceOf, sizesOf } from "./Prices.ts"
import { ImagesNotFetched, ImagesPending, ImagesTooLarge } from "./Problems.ts"
import { ImageProviders } from "./Settings.ts"
import type { ImageProvider } from "./Settings.ts"
import { Images } from "./Images.ts"
import type { ImageJob, ImagesContract } from "./Images.ts"

/** The longest body: a source image may be in it. */
const bodyBytesMax = 32 * 1024 * 1024

const decode = json(ImageRequest)
const read = (inbound: Inbound) => Effect.flatMap(inbound.read(bodyBytesMax), decode)

const answerOf = ({ error, images, provider, request_id, status }: ImageJob): ImageAnswer => ({
  request_id,
  status,
  provider,
  ...(images !== undefined && { images }),
  ...(error !== undefined && { error })
})

const replyOf = (job: ImageJob): Reply.Reply =>
  Reply.json(200, answerOf(job), job.charge === undefined ? {} : { "x-charge-usd": toDecimal(job.charge.charged) })

// ---- OpenAI's routes -------------------------------------------------------------------------------------------------------------

/** The longest body without images. */
const creationBytesMax = 1024 * 1024
/** The longest form of an edit. */
const formBytesMax = 20 * 1024 * 1024
/** How much the images may have together that are fetched to be put into an answer. */
const imagesBytesMax = 64 * 1024 * 1024
/** How many images of an answer are fetched at once. */
const fetchesAtOnce = 4

const decodeCreation = json(OpenAiImageRequest)
const readCreation = (inbound: Inbound) => Effect.flatMap(inbound.read(creationBytesMax), decodeCreation)
const decodeEdit = Schema.decodeUnknownEither(OpenAiEditFields)

const readEdit = (inbound: Inbound) =>
  inbound.read(formBytesMax).pipe(
    Effect.catchTag("PayloadTooLarge", () => new ImagesTooLarge()),
    Effect.flatMap((bytes) => editOf(inbound.header("content-type") ?? "", bytes))
  )

/** An edit with the hash of what it asks for. (Clients put another boundary into the form each time.) */
interface Edit {
  readonly creation: Creation
  readonly fingerprint: string
}

const editOf = Effect.fnUntraced(function* (type: string, bytes: Buffer): Effect.fn.Return<Edit, InvalidRequest> {
  const { files, texts } = yield* formOf(type, bytes)
  const fields = yield* Either.mapLeft(decodeEdit({ ...texts }), InvalidRequest.ofDecoding)
  const images: Array<string> = []
  const masks: Array<string> = []
  for (const { bytes, field } of files) {
    const of = field === "image" || field === "image[]" ? images : field === "mask" ? masks : undefined
    if (of === undefined) return yield* InvalidRequest.of(field, "not a file of this form")
    const media = imageTypeOf(bytes)
    if (media === undefined) return yield* InvalidRequest.of(field, "a PNG, JPEG or WebP image")
    of.push(`data:${media};base64,${bytes.toString("base64")}`)
  }
  if (images.length === 0) return yield* InvalidRequest.of("image", "required: the image to edit")
  if (masks.length > 1) return yield* InvalidRequest.of("mask", "one image")
  const creation: Creation = { ...fields, images, mask: masks[0] }
  return { creation, fingerprint: createHash("sha256").update(JSON.stringify(creation)).digest("hex") }
})

/** The job in OpenAI's words, or the problem that it came to. */
const openAiReplyOf = Effect.fnUntraced(function* (
  { download }: Pick<ImagesContract, "download">,
  job: ImageJob,
  format: Creation["response_format"]
) {
  const { charge, error = "", error_type, images = [], provider, request_id, status } = job
  if (status === "PROCESSING") return yield* new ImagesPending({ request_id })
  if (status === "FAILED") {
    if (error_type === "media_rejected") return yield* new UpstreamRejected({ message: error, field: "", rule: error })
    return yield* new UpstreamFailed({ message: error })
  }
  const limit = Math.floor(imagesBytesMax / images.length)
  const data =
    format === "b64_json"
      ? yield* Effect.forEach(
          images,
          ({ url }) =>
            Effect.map(fetched(request_id, download({ provider, url, limit })), (b64_json) => ({ b64_json })),
          { concurrency: fetchesAtOnce }
        )
      : images.map(({ url }) => ({ url }))
  const created = Math.floor((yield* Clock.currentTimeMillis) / 1_000)
  return Reply.json(200, { created, data } satisfies OpenAiImages, {
    "x-charge-usd": toDecimal(charge?.charged ?? 0n)
  })
})

const fetched = (
  request_id: string,
  image: Effect.Effect<Buffer, Unreachable>
): Effect.Effect<string, ImagesNotFetched> =>
  image.pipe(
    Effect.map((bytes) => bytes.toString("base64")),
    Effect.catchAll(({ reason }) =>
      Effect.zipRight(
        Effect.annotateLogs(Effect.logWarning("an image that was made could not be fetched"), { request_id, reason }),
        new ImagesNotFetched({ request_id })
      )
    )
  )

/** What an edited image costs, of each provider and size. */
const costsOf = (providers: ReadonlyArray<ImageProvider>): ReadonlyArray<Nano> =>
  providers.flatMap((provider) =>
    sizesOf(provider).map((size) => charge([{ units: 1, price: priceOf(provider, size, true).price }]))
  )

export const ImagesHttp = HttpApiBuilder.group(
  contract.add(ImagesApi),
  "images",
  Effect.fnUntraced(function* (handlers) {
    const images = yield* Images
    const providers = yield* ImageProviders
    const idempotency = yield* Idempotency

    const generate = raw((caller: Caller, inbound: Inbound) =>
      idempotency.onceOf(
        caller,
        inbound,
        "images/generate",
        bodyBytesMax,
        (inbound, beside) =>
          Effect.map(
            Effect.flatMap(read(inbound), (request) => images.generate({ caller, request, beside })),
            replyOf
          ),
        // Its first answer was not kept; its job is the same.
        (inbound, call) =>
          Effect.map(
            Effect.flatMap(read(inbound), (request) => images.ofCall({ caller, request, call })),
            (job) => (job === undefined ? job : replyOf(job))
          )
      )
    )
    const generations = raw((caller: Caller, inbound: Inbound) =>
      idempotency.onceOf(
        caller,
        inbound,
        "images/generations",
        creationBytesMax,
        (inbound, beside) =>
          Effect.flatMap(readCreation(inbound), (creation) =>
            Effect.flatMap(images.create({ caller, creation, beside }), (job) =>
              openAiReplyOf(images, job, creation.response_format)
            )
          ),
        (inbound, call) =>
          Effect.flatMap(readCreation(inbound), (creation) => made(caller, call, creation.response_format)),
        openAiRefusal
      )
    )

    const ifAffordable = affordable(yield* Gate, idempotency, costsOf(providers))
    const edits = raw((caller: Caller, inbound: Inbound) =>
      ifAffordable(
        caller,
        inbound,
        Effect.flatMap(readEdit(inbound), ({ creation, fingerprint }) =>
          idempotency.once(
            caller,
            inbound.header("idempotency-key"),
            () => `images/edits ${fingerprint}`,
            (beside) =>
              Effect.flatMap(images.create({ caller, creation, endpoint: "images/edits", beside }), (job) =>
                openAiReplyOf(images, job, creation.response_format)
              ),
            (call) => made(caller, call, creation.response_format),
            refusalIn(openAiRefusal, inbound.request_id ?? "")
          )
        )
      )
    )

    /** The answer for a call whose answer was not kept: its job is the same. */
    const made = (caller: Caller, call: string, format: Creation["response_format"]) =>
      Effect.flatMap(images.ofCall({ caller, call }), (job) =>
        job === undefined ? Effect.succeed(undefined) : openAiReplyOf(images, job, format)
      )

    const status = (request_id: string) =>
      Effect.flatMap(CurrentCaller, (caller) => Effect.map(images.status({ caller, request_id }), answerOf))

    return handlers
      .handleRaw("generate", generate)
      .handleRaw("toolGenerate", generate)
      .handleRaw("createImage", generations)
      .handleRaw("editImage", edits)
      .handle("status", ({ urlParams }) => status(urlParams.request_id))
      .handle("toolStatus", ({ urlParams }) => status(urlParams.request_id))
      .handle("providers", () => Effect.succeed(namesOf(providers)))
      .handle("toolProviders", () => Effect.succeed(listOf(providers)))
  })
)
