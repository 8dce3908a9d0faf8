/**
 * Transcribes audio over OpenAI's audio route and charges per second.
 *
 * Where the specification is silent:
 * - A transcription reserves one second per 1,000 bytes, or more if the frames show a longer duration or cannot be counted (`Length`).
 */
import { Context, Effect, Either, Layer } from "effect"
import { randomBytes } from "node:crypto"
import { Gate } from "../../books/gate/Gate.ts"
import type { Admission, Claim, Receipt } from "../../books/gate/Gate.ts"
import type { GateRefusal } from "../../books/gate/Problems.ts"
import { Busy, busyFor, noRoomForAnswer } from "../../kernel/Busy.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { Nano } from "../../kernel/Money.ts"
import { charge } from "../../kernel/Price.ts"
import { usualResponseBytes } from "../../kernel/Room.ts"
import type { Room } from "../../kernel/Room.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { PriceVersions } from "../../books/prices/PriceVersions.ts"
import { tooLong } from "../../upstream/models/Failover.ts"
import { failed, isObject, isRefusal, readJson, refused } from "../../upstream/wire/Failures.ts"
import type { UpstreamProblem } from "../../upstream/wire/Failures.ts"
import { reportsIn } from "../../upstream/wire/Intake.ts"
import { pick, pickModel } from "../../upstream/models/Provider.ts"
import type { UnknownModel, UnknownProvider } from "../../upstream/models/Provider.ts"
import { upstreamLookup } from "../../upstream/models/Upstreams.ts"
import type { Upstream } from "../../upstream/models/Upstreams.ts"
import * as Wire from "../../upstream/wire/Wire.ts"
import { measuredOf } from "../metered/Measured.ts"
import { movable, parsedMax, readOnThread } from "../threads/BodyThreads.ts"
import { bufferOf } from "../threads/Task.ts"
import { formOf, lengthInBytes, release, secondsIn } from "./Audio.ts"
import type { Audio } from "./Audio.ts"
import type { ReadTranscriptTask, TranscriptDone } from "./BodyTask.ts"
import { faultIn } from "./Formats.ts"
import type { Subtitles } from "./Formats.ts"
import { extentOf, fileBytesMax, lengthOf } from "./Length.ts"
import type { Extent } from "./Length.ts"
import { AudioTooLarge } from "./Problems.ts"
import { TranscriptionProviders } from "./Settings.ts"
import type { TranscriptionModel, TranscriptionProvider } from "./Settings.ts"

/** The provider and model to use. The default is the first provider and its first model. */
export interface TranscriptionChoice {
  readonly provider?: string | undefined
  readonly model?: string | undefined
  /** The task; `transcribe` by default. Models that can translate also accept `translate`, for English text. */
  readonly task?: "transcribe" | "translate" | undefined
  /**
   * The detail to return in addition to the text, if the model supports it: the provider's `verbose` response, or a response with timed `segments`.
   */
  readonly detail?: "verbose" | "segments" | undefined
}

export interface TranscriptionCall extends TranscriptionChoice {
  readonly caller: Caller
  /** The audio, up to 25 MiB. */
  readonly audio: Audio
  /** The language, as an ISO 639-1 code. */
  readonly language?: string | undefined
  readonly prompt?: string | undefined
  /** The temperature, from 0 to 2. */
  readonly temperature?: number | undefined
  /** The units to time in a verbose response. */
  readonly granularities?: ReadonlyArray<"word" | "segment"> | undefined
  /** The route's name in usage records; `transcriptions` by default. */
  readonly endpoint?: string | undefined
  /** Statements committed together with the call's admission. */
  readonly beside?: Claim["beside"]
  /**
   * Memory for the response. If none is free, the call fails with `Busy` before a provider is called. If the response does not fit, the call is
   * charged and fails with `Busy`.
   */
  readonly room?: Room | undefined
}

export interface Transcript {
  readonly text: string
  /** The duration in seconds, if the provider reports it. */
  readonly duration?: number
  /** The provider's id. */
  readonly provider: string
  readonly receipt: Receipt
  /** The provider's complete response, in the requested wire format. */
  readonly upstream: ProviderAnswer
}

export interface ProviderAnswer {
  readonly format: TranscriptionModel["wire_format"]
  readonly bytes: Buffer
  readonly body: Readonly<Record<string, unknown>>
  /** A long response's parts that the formats need. Reading `body` parses all of it. */
  readonly long?: LongParts | undefined
}

export interface LongParts {
  /** The usage that the response reports. */
  readonly usage: unknown
  /** The subtitles, if segments were requested. */
  readonly subtitles: Subtitles | undefined
}

export interface TranscriptionQuote {
  /** The provider's and the model's ids. */
  readonly provider: string
  readonly model: string
  /** The amount to reserve for audio that cannot be counted, in nano-USD. Counted audio can reserve less. */
  readonly most: Nano
}

export type TranscriptionProblem =
  | InvalidRequest
  | Busy
  | AudioTooLarge
  | UnknownProvider
  | UnknownModel
  | GateRefusal
  | BooksUnavailable
  | UpstreamProblem

export interface TranscriptionContract {
  /** The price of the cheapest possible call, in nano-USD; 0 if a model is free or none is configured. */
  readonly least: Nano
  /** Returns the provider, the model, and the maximum cost of `bytes` bytes of uncounted audio. */
  readonly quote: (
    choice: TranscriptionChoice,
    bytes: number
  ) => Effect.Effect<TranscriptionQuote, InvalidRequest | UnknownProvider | UnknownModel>
  /** Sends the audio once. The unread part of a stream is discarded. */
  readonly transcribe: (call: TranscriptionCall) => Effect.Effect<Transcript, TranscriptionProblem>
}

/** The maximum size of a provider's response, in bytes. A verbose response to 25 MiB of speech takes 2 MiB. */
const answerBytesMax = 8 * 1024 * 1024
/** Response members that may be long. */
const longMembers = { names: new Set(["text", "segments", "words"]), depth: 1 }

export class Transcription extends Context.Tag("tollgate/transcription/Transcription")<
  Transcription,
  TranscriptionContract
>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Transcription, make))
}

interface Parts {
  readonly gate: Gate["Type"]
  readonly providers: ReadonlyArray<TranscriptionProvider>
  readonly upstreamOf: (name: string) => Upstream
  readonly versions: PriceVersions["Type"]
}

const make = Effect.gen(function* () {
  const gate = yield* Gate
  const providers = yield* TranscriptionProviders
  const upstreamOf = yield* upstreamLookup("transcription provider", providers)
  const parts: Parts = { gate, providers, upstreamOf, versions: yield* PriceVersions }
  return {
    least: leastOf(providers),
    quote: quote(parts),
    transcribe: (call) =>
      Effect.ensuring(
        metered(parts, call),
        Effect.sync(() => release(call.audio))
      )
  } satisfies TranscriptionContract
})

const quote = ({ providers }: Parts): TranscriptionContract["quote"] =>
  Effect.fnUntraced(function* (choice, bytes) {
    const { model, provider } = yield* selectModel(providers, choice)
    return {
      provider: provider.id,
      model: model.id,
      most: most(extentOf(bytes, Number.POSITIVE_INFINITY, model.max_seconds), model)
    }
  })

const metered = Effect.fnUntraced(function* (parts: Parts, call: TranscriptionCall) {
  const { gate, providers, versions } = parts
  const { model, provider } = yield* selectModel(providers, call)
  const bytes = lengthInBytes(call.audio)
  if (bytes === 0) return yield* empty
  if (bytes > fileBytesMax) return yield* new AudioTooLarge()
  const seconds = yield* Effect.promise(() => secondsIn(call.audio))
  const extent = extentOf(bytes, seconds, model.max_seconds)
  if (call.room?.reserve(usualResponseBytes) === false) return yield* new Busy({ retry_after: busyFor })
  const bound = most(extent, model)
  const claim = {
    caller: call.caller,
    usage_type: "tool",
    capability: "transcription",
    endpoint: call.endpoint ?? "transcriptions",
    model: model.id,
    provider: provider.id,
    price: yield* versions.of([{ quantity: "units", unit: "second", price: model.price }]),
    most: bound,
    least: bound,
    beside: call.beside
  } as const
  return yield* gate.meter(claim, (admission) => ask(parts, admission, { provider, model }, call, extent))
})

const ask = Effect.fnUntraced(function* (
  parts: Parts,
  admission: Admission,
  chosen: ModelSelection,
  call: TranscriptionCall,
  extent: Extent
) {
  const upstream = parts.upstreamOf(chosen.provider.upstream)
  const answer = yield* Effect.catchAll(sent(upstream, admission, chosen.model, call), ({ reason }) =>
    failed(upstream.name, reason)
  )
  admission.servedAs(Wire.vendorRequestOf(answer.headers))
  if (isRefusal(answer)) return yield* refused(upstream.name, answer)
  return yield* settled(upstream.name, admission, chosen, call, extent, answer)
})

const sent = (
  upstream: Upstream,
  admission: Admission,
  model: TranscriptionModel,
  { audio, granularities, language, prompt, room, task, temperature }: TranscriptionCall
): Effect.Effect<Wire.Whole, Wire.Unreachable> => {
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
  return upstream.wire(admission).exchange(
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
    { limit: answerBytesMax, read_on: admission.to_its_end, room, long: longMembers }
  )
}

/** The parts of a provider's response that were read. */
interface ReadAnswer {
  /** The defect that makes the response unusable. */
  readonly fault: string | undefined
  readonly text: string
  /** The members that report the usage. */
  readonly reports: Readonly<Record<string, unknown>>
  /** The response, if it has no defect. */
  readonly answer: Omit<ProviderAnswer, "format"> | undefined
}

const unusable = (answer: Wire.Whole, fault: string): ReadAnswer => {
  const reports = reportsIn(answer)
  return { fault, text: textIn(reports), reports, answer: undefined }
}

const textIn = ({ text }: Readonly<Record<string, unknown>>): string => (typeof text === "string" ? text : "")

/** Reads a response. A separate thread reads a long one. Returns `undefined` if the response was lost. */
const read = (
  answer: Wire.Whole,
  detail: TranscriptionCall["detail"],
  account: string
): Effect.Effect<ReadAnswer | undefined> => {
  if (answer.lost === "no_room") return Effect.succeed(undefined)
  if (answer.lost !== undefined) return Effect.succeed(unusable(answer, tooLong))
  if (answer.body.length > parsedMax) return readLong(answer, detail, account)
  const json = readJson(answer.body)
  if (json === undefined) return Effect.succeed(unusable(answer, "the response is not a JSON object"))
  const { bytes, value } = json
  return Effect.succeed({
    fault: faultIn(value, detail),
    text: textIn(value),
    reports: value,
    answer: { bytes, body: value }
  })
}

const readLong = (
  answer: Wire.Whole,
  detail: TranscriptionCall["detail"],
  account: string
): Effect.Effect<ReadAnswer | undefined> => {
  const reports = reportsIn(answer)
  const task: ReadTranscriptTask = { how: "read_transcript", detail, body: movable(answer.body) }
  return Effect.map(
    readOnThread(task, account),
    (done) =>
      done && {
        fault: done.fault,
        text: done.text,
        reports,
        answer: new LongAnswer(done)
      }
  )
}

/** A long response. Its JSON is parsed whenever `body` is read. */
class LongAnswer implements Omit<ProviderAnswer, "format"> {
  readonly bytes: Buffer
  readonly long: LongParts

  constructor({ body, subtitles, usage }: TranscriptDone) {
    this.bytes = bufferOf(body)
    this.long = { usage, subtitles }
  }

  get body(): Readonly<Record<string, unknown>> {
    return JSON.parse(this.bytes.toString()) as Readonly<Record<string, unknown>>
  }
}

/** Settles the call and returns the transcript. */
const settled = Effect.fnUntraced(function* (
  upstream: string,
  admission: Admission,
  { model, provider }: ModelSelection,
  { caller, detail }: TranscriptionCall,
  extent: Extent,
  answer: Wire.Whole
) {
  const found = yield* read(answer, detail, caller.account_id)
  const reports = found?.reports ?? reportsIn(answer)
  const reported = reports.duration ?? (isObject(reports.usage) ? reports.usage.seconds : undefined)
  const { duration, seconds, usage_source } = lengthOf(reported, extent, found?.text ?? "")
  const cost = charge([{ units: seconds, price: model.price }])
  const measured = measuredOf(cost, seconds, provider.id, { usage_source })
  if (found === undefined) {
    yield* admission.settle({ ...measured, error_type: "busy" })
    return yield* new Busy({ message: noRoomForAnswer, retry_after: busyFor })
  }
  const { fault, text } = found
  if (fault !== undefined) {
    // An unusable response is charged if it reports a duration. A response that is too long is always charged.
    if (answer.lost !== undefined || (reported !== undefined && reported !== null))
      yield* admission.settle({ ...measured, success: false, error_type: "upstream_error" })
    return yield* failed(upstream, fault)
  }
  return yield* admission.answer(measured, (receipt): Transcript => ({
    text,
    provider: provider.id,
    ...(duration !== undefined && { duration }),
    receipt,
    upstream: Object.assign(found.answer!, { format: model.wire_format })
  }))
})

/** Returns the provider and model for a call, if they support the requested task and detail. */
const selectModel = (
  providers: ReadonlyArray<TranscriptionProvider>,
  choice: TranscriptionChoice
): Either.Either<ModelSelection, InvalidRequest> =>
  Either.flatMap(pick(providers, choice.provider), (provider) =>
    Either.flatMap(pickModel(provider.models, choice.model), (model): Either.Either<ModelSelection, InvalidRequest> => {
      if (choice.task === "translate" && !model.translates) return noTranslation
      if (choice.detail !== undefined && model.wire_format !== "verbose_json") return noTimes
      return Either.right({ provider, model })
    })
  )

interface ModelSelection {
  readonly provider: TranscriptionProvider
  readonly model: TranscriptionModel
}

const noTranslation = Either.left(InvalidRequest.of("model", "this model does not translate"))
const noTimes = Either.left(
  InvalidRequest.of("response_format", "must be json or text, because this model returns no timestamps")
)

const most = ({ most }: Extent, { price }: TranscriptionModel): Nano => charge([{ units: most, price }])

/** Returns the price of the cheapest possible call. Audio that is not empty costs at least one second. */
const leastOf = (providers: ReadonlyArray<TranscriptionProvider>): Nano =>
  providers
    .flatMap(({ models }) => models.map(({ price }) => charge([{ units: 1, price }])))
    .reduce<Nano | undefined>((least, cost) => (least === undefined || cost < least ? cost : least), undefined) ?? 0n

const empty = new InvalidRequest({ message: "file: must not be empty", field: "file", rule: "must not be empty" })
