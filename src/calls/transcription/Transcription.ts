/**
 * Transcriptions over the OpenAI audio route, at the model's price of a second.
 *
 * Where the specification is silent:
 * - A transcription is bounded by a second for each 1,000 bytes. Audio that lasts longer by its own frames, as silence in FLAC or Opus
 *   does, is refused, and so is audio in Ogg that is neither Opus nor Vorbis.
 */
import { Context, Effect, Either, Layer } from "effect"
import { randomBytes } from "node:crypto"
import { Gate } from "../../books/gate/Gate.ts"
import type { Admission, Claim, Measured, Receipt } from "../../books/gate/Gate.ts"
import type { GateRefusal } from "../../books/gate/Problems.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { Nano } from "../../kernel/Money.ts"
import { charge } from "../../kernel/Price.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import { PriceVersions } from "../../books/prices/PriceVersions.ts"
import { generated } from "../../protocols/conversation/Gist.ts"
import { tooLong } from "../../upstream/models/Failover.ts"
import { failed, isObject, parse, refused } from "../../upstream/wire/Failures.ts"
import type { UpstreamProblem } from "../../upstream/wire/Failures.ts"
import { pick, pickModel } from "../../upstream/models/Provider.ts"
import type { UnknownModel, UnknownProvider } from "../../upstream/models/Provider.ts"
import { upstreamLookup } from "../../upstream/models/Upstreams.ts"
import { formOf, lastsLonger, lengthInBytes, release } from "./Audio.ts"
import type { Audio } from "./Audio.ts"
import { segmentsIn } from "./Formats.ts"
import { fileBytesMax, lengthOf, secondsMost } from "./Length.ts"
import { AudioTooLarge } from "./Problems.ts"
import { TranscriptionProviders } from "./Settings.ts"
import type { TranscriptionModel, TranscriptionProvider } from "./Settings.ts"

/** By whom audio is transcribed: the first provider, and its first model, unless they are named. */
export interface TranscriptionChoice {
  readonly provider?: string | undefined
  readonly model?: string | undefined
  /** `transcribe` unless it is said; `translate`: to English, by models that do so. */
  readonly task?: "transcribe" | "translate" | undefined
  /** What is wanted beyond the text, of models that give it: the provider's `verbose` answer, or one with timed `segments`. */
  readonly detail?: "verbose" | "segments" | undefined
}

/** One audio file that is to be transcribed. */
export interface TranscriptionCall extends TranscriptionChoice {
  readonly caller: Caller
  /** Up to 25 MiB. */
  readonly audio: Audio
  /** An ISO-639-1 code. */
  readonly language?: string | undefined
  readonly prompt?: string | undefined
  /** From 0 to 2. */
  readonly temperature?: number | undefined
  /** What a verbose answer has times of. */
  readonly granularities?: ReadonlyArray<"word" | "segment"> | undefined
  /** The route's name in usage records: `transcriptions` unless it is said. */
  readonly endpoint?: string | undefined
  /** Statements that stand or fall with the admission of the call. */
  readonly beside?: Claim["beside"]
}

export interface Transcript {
  readonly text: string
  /** Seconds, where the provider says how long the audio is. */
  readonly duration?: number
  /** The id of the provider that answered. */
  readonly provider: string
  readonly receipt: Receipt
  /** The provider's whole answer, in the form that the model is asked for. */
  readonly upstream: ProviderAnswer
}

export interface ProviderAnswer {
  readonly format: TranscriptionModel["wire_format"]
  readonly bytes: Buffer
  readonly body: Readonly<Record<string, unknown>>
}

export interface TranscriptionQuote {
  /** Their ids. */
  readonly provider: string
  readonly model: string
  /** The most that it can cost, which is what is set aside. */
  readonly most: Nano
}

export type TranscriptionProblem =
  | InvalidRequest
  | AudioTooLarge
  | UnknownProvider
  | UnknownModel
  | GateRefusal
  | BooksUnavailable
  | UpstreamProblem

export interface TranscriptionContract {
  /** The least that any call costs; 0 where one may be free. */
  readonly least: Nano
  /** Who would transcribe so many bytes of audio, and at what cost at most. */
  readonly quote: (
    choice: TranscriptionChoice,
    bytes: number
  ) => Effect.Effect<TranscriptionQuote, InvalidRequest | UnknownProvider | UnknownModel>
  /** Sends the audio once. Of a stream, whatever is not read is thrown away. */
  readonly transcribe: (call: TranscriptionCall) => Effect.Effect<Transcript, TranscriptionProblem>
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
  const providers = yield* TranscriptionProviders
  const upstreamOf = yield* upstreamLookup("transcription provider", providers)
  const versions = yield* PriceVersions

  const quote: TranscriptionContract["quote"] = Effect.fnUntraced(function* (choice, bytes) {
    const { model, provider } = yield* chosen(providers, choice)
    return { provider: provider.id, model: model.id, most: most(bytes, model) }
  })

  const metered = Effect.fnUntraced(function* (call: TranscriptionCall) {
    const { model, provider } = yield* chosen(providers, call)
    const bytes = lengthInBytes(call.audio)
    if (bytes === 0) return yield* empty
    if (bytes > fileBytesMax) return yield* new AudioTooLarge()
    if (yield* Effect.promise(() => lastsLonger(call.audio, secondsMost(bytes)))) return yield* tooSparse
    const bound = most(bytes, model)
    const claim = {
      caller: call.caller,
      usage_type: "tool",
      endpoint: call.endpoint ?? "transcriptions",
      model: model.id,
      provider: provider.id,
      price: yield* versions.of([{ quantity: "units", unit: "second", price: model.price }]),
      most: bound,
      least: bound,
      beside: call.beside
    } as const
    return yield* gate.meter(claim, (admission) => ask(admission, provider, model, call))
  })

  const ask = Effect.fnUntraced(function* (
    admission: Admission,
    provider: TranscriptionProvider,
    model: TranscriptionModel,
    { audio, detail, granularities, language, prompt, task, temperature }: TranscriptionCall
  ) {
    const upstream = upstreamOf(provider.upstream)
    const boundary = `tollgate-${randomBytes(16).toString("hex")}`
    const form = formOf(
      audio,
      {
        model: model.upstream_model,
        response_format: model.wire_format,
        language,
        prompt,
        temperature: temperature?.toString(),
        "timestamp_granularities[]": granularities
      },
      boundary
    )
    const answer = yield* Effect.catchAll(
      upstream.wire(admission).exchange(
        {
          method: "POST",
          path: task === "translate" ? "/audio/translations" : "/audio/transcriptions",
          headers: {
            ...upstream.headers,
            "content-type": `multipart/form-data; boundary=${boundary}`,
            "content-length": String(form.length)
          },
          body: form.body
        },
        { limit: answerBytesMax, gist: generated, read_on: admission.to_its_end }
      ),
      ({ reason }) => failed(upstream.name, reason)
    )
    if (answer.status < 200 || answer.status > 299) return yield* refused(upstream.name, answer)
    const parsed = answer.gist?.object ?? parse(answer.body)
    if (parsed === undefined) return yield* failed(upstream.name, "its answer is not a JSON object")
    const reported = parsed.duration ?? (isObject(parsed.usage) ? parsed.usage.seconds : undefined)
    const { duration, seconds, usage_source } = lengthOf(reported, lengthInBytes(audio))
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
    const fault = answer.gist === undefined ? faultIn(parsed, detail) : tooLong
    if (fault !== undefined) {
      // What it reports is charged. Of an answer that is too long the length of the audio is charged in any case.
      if (answer.gist !== undefined || (reported !== undefined && reported !== null))
        yield* admission.settle({ ...measured, success: false, error_type: "upstream_error" })
      return yield* failed(upstream.name, fault)
    }
    return yield* admission.answer(measured, (receipt): Transcript => ({
      text: String(parsed.text),
      provider: provider.id,
      ...(duration !== undefined && { duration }),
      receipt,
      upstream: { format: model.wire_format, bytes: answer.body, body: parsed }
    }))
  })

  return {
    least: leastOf(providers),
    quote,
    transcribe: (call) =>
      Effect.ensuring(
        metered(call),
        Effect.sync(() => release(call.audio))
      )
  } satisfies TranscriptionContract
})

/** The fault of an answer, for the log. */
const faultIn = (
  answer: Readonly<Record<string, unknown>>,
  detail: TranscriptionCall["detail"]
): string | undefined => {
  if (typeof answer.text !== "string") return "its answer holds no text"
  return detail === "segments" && segmentsIn(answer) === undefined ? "its answer holds no segments" : undefined
}

/** The provider and the model that are asked, which must give what is wanted. */
const chosen = (
  providers: ReadonlyArray<TranscriptionProvider>,
  choice: TranscriptionChoice
): Either.Either<Chosen, InvalidRequest> =>
  Either.flatMap(pick(providers, choice.provider), (provider) =>
    Either.flatMap(pickModel(provider.models, choice.model), (model): Either.Either<Chosen, InvalidRequest> => {
      if (choice.task === "translate" && !model.translates) return noTranslation
      if (choice.detail !== undefined && model.wire_format !== "verbose_json") return noTimes
      return Either.right({ provider, model })
    })
  )

interface Chosen {
  readonly provider: TranscriptionProvider
  readonly model: TranscriptionModel
}

const noTranslation = Either.left(InvalidRequest.of("model", "this model does not translate"))
const noTimes = Either.left(InvalidRequest.of("response_format", "json or text: this model gives no times"))

const most = (bytes: number, { price }: TranscriptionModel): Nano => charge([{ units: secondsMost(bytes), price }])

/** Audio that is not empty lasts a second at least. */
const leastOf = (providers: ReadonlyArray<TranscriptionProvider>): Nano =>
  providers
    .flatMap(({ models }) => models.map(({ price }) => charge([{ units: 1, price }])))
    .reduce<Nano | undefined>((least, cost) => (least === undefined || cost < least ? cost : least), undefined) ?? 0n

const tooSparse = InvalidRequest.of(
  "file",
  "audio of at most a second for each 1,000 bytes: this may last longer, so send it in another format, such as MP3"
)
const empty = new InvalidRequest({ message: "file: it is empty", field: "file", rule: "not empty" })
