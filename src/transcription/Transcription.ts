/** Transcriptions over the OpenAI audio route, at the model's price of a second. */
import type { FileSystem, Path } from "@effect/platform"
import { Context, Effect, Layer, Redacted } from "effect"
import { randomBytes } from "node:crypto"
import { Gate } from "../gate/Gate.ts"
import type { Admission, Measured } from "../gate/Gate.ts"
import type { InsufficientCredits } from "../gate/Problems.ts"
import type { Caller } from "../kernel/Caller.ts"
import type { Inbound } from "../http/Inbound.ts"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"
import { json } from "../http/Reply.ts"
import type { Reply } from "../http/Reply.ts"
import { affordable } from "../idempotency/BeforeBody.ts"
import { Idempotency } from "../idempotency/Idempotency.ts"
import type { Beside, IdempotencyProblem } from "../idempotency/Idempotency.ts"
import { toDecimal } from "../kernel/Money.ts"
import { charge } from "../kernel/Price.ts"
import { PriceVersions } from "../prices/PriceVersions.ts"
import { failed, isObject, parse, refused } from "../upstream/Failures.ts"
import type { UpstreamProblem } from "../upstream/Failures.ts"
import { pick } from "../upstream/Provider.ts"
import { Upstreams } from "../upstream/Upstreams.ts"
import type { TranscriptionAnswer } from "./Fields.ts"
import { lengthOf, secondsMost } from "./Length.ts"
import { TranscriptionProviders } from "./Provider.ts"
import type { TranscriptionModel, TranscriptionProvider } from "./Provider.ts"
import { formOf, receive } from "./Upload.ts"
import type { Upload, UploadProblem } from "./Upload.ts"

type TranscriptionProblem = UploadProblem | InsufficientCredits | IdempotencyProblem | UpstreamProblem

export interface TranscriptionContract {
  /** A form with the audio in it; `shape` makes the body of the answer, which is another on each route. */
  readonly transcribe: (
    caller: Caller,
    inbound: Inbound,
    route: "transcriptions" | "tools/transcriptions",
    shape: (answer: TranscriptionAnswer) => object
  ) => Effect.Effect<Reply, TranscriptionProblem>
}

const answerBytesMax = 32 * 1024 * 1024

export class Transcription extends Context.Tag("tollgate/transcription/Transcription")<
  Transcription,
  TranscriptionContract
>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Transcription, make))
}

const make = Effect.gen(function* () {
  const gate = yield* Gate
  const upstreams = yield* Upstreams
  const providers = yield* TranscriptionProviders
  const idempotency = yield* Idempotency
  const versions = yield* PriceVersions
  const disk = yield* Effect.context<FileSystem.FileSystem | Path.Path>()

  // A file that is not empty lasts a second at least.
  const least = providers.flatMap(({ models }) => models.map(({ price }) => charge([{ units: 1, price }])))
  const paid = affordable(gate, idempotency, least)

  const transcribe: TranscriptionContract["transcribe"] = (caller, inbound, route, shape) =>
    Effect.gen(function* () {
      const upload = yield* receive(inbound)
      const provider = yield* pick(providers, upload.fields.provider)
      const model = yield* modelOf(provider, upload.fields.model)
      const price = yield* versions.of([{ quantity: "units", unit: "second", price: model.price }])
      const most = charge([{ units: secondsMost(upload.bytes), price: model.price }])
      const call = (beside: Beside | undefined) =>
        gate.meter(
          {
            caller,
            usage_type: "tool",
            endpoint: "transcriptions",
            model: model.id,
            provider: provider.id,
            price,
            most,
            least: most,
            beside
          },
          (admission) => ask(admission, provider, model, upload, shape)
        )
      return yield* idempotency.once(
        caller,
        inbound.header("idempotency-key"),
        () => `${route} ${upload.fingerprint}`,
        call
      )
    }).pipe(Effect.scoped, Effect.provide(disk), (served) => paid(caller, inbound, served))

  const ask = Effect.fnUntraced(function* (
    admission: Admission,
    provider: TranscriptionProvider,
    model: TranscriptionModel,
    upload: Upload,
    shape: (answer: TranscriptionAnswer) => object
  ) {
    const upstream = upstreams.get(provider.upstream)!
    const boundary = `tollgate-${randomBytes(16).toString("hex")}`
    const { language, prompt, temperature } = upload.fields
    const form = formOf(
      upload,
      { model: model.upstream_model, response_format: model.wire_format, language, prompt, temperature },
      boundary
    )
    const answer = yield* Effect.catchAll(
      upstream.wire(admission).exchange(
        {
          method: "POST",
          path: "/audio/transcriptions",
          headers: {
            authorization: `Bearer ${Redacted.value(upstream.key)}`,
            "content-type": `multipart/form-data; boundary=${boundary}`,
            "content-length": String(form.length)
          },
          body: form.body
        },
        { limit: answerBytesMax }
      ),
      ({ reason }) => failed(upstream.name, reason)
    )
    if (answer.status < 200 || answer.status > 299) return yield* refused(upstream.name, answer)
    const parsed = parse(answer.body)
    if (typeof parsed?.text !== "string") return yield* failed(upstream.name, "its answer holds no text")
    const told = parsed.duration ?? (isObject(parsed.usage) ? parsed.usage.seconds : undefined)
    const { duration, seconds, usage_source } = lengthOf(told, upload.bytes)
    const measured: Measured = {
      cost: charge([{ units: seconds, price: model.price }]),
      prompt_tokens: 0,
      completion_tokens: 0,
      units: seconds,
      provider: provider.id,
      success: true,
      error_type: null,
      usage_source
    }
    const shown: TranscriptionAnswer = {
      text: parsed.text,
      status: "completed",
      provider: provider.id,
      ...(duration !== undefined && { duration })
    }
    return yield* admission.answer(measured, ({ charged }) =>
      json(200, shape(shown), { "x-charge-usd": toDecimal(charged) })
    )
  })

  return { transcribe } satisfies TranscriptionContract
})

const modelOf = (
  { models }: TranscriptionProvider,
  asked: string | undefined
): Effect.Effect<TranscriptionModel, InvalidRequest> => {
  const found = asked === undefined || asked === "" ? models[0] : models.find(({ id }) => id === asked)
  const rule = `one of ${models.map(({ id }) => id).join(", ")}`
  return found === undefined ? InvalidRequest.of("model", rule) : Effect.succeed(found)
}
