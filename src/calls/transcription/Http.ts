/** The transcription routes. They write a form's audio to disk. */
import { HttpApiBuilder } from "@effect/platform"
import type { FileSystem, Path } from "@effect/platform"
import { Effect, Either } from "effect"
import type { Context, Schema } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import type { Shape } from "../../http/contract/Annotations.ts"
import { callable } from "../../http/lanes/Caller.ts"
import type { Inbound } from "../../http/transport/Inbound.ts"
import { openAiRefusal } from "../../http/contract/OpenAiRefusal.ts"
import { raw } from "../../http/lanes/Raw.ts"
import { json } from "../../http/transport/Reply.ts"
import type { Reply } from "../../http/transport/Reply.ts"
import { Gate } from "../../books/gate/Gate.ts"
import { affordable } from "../../http/idempotency/BeforeBody.ts"
import { Idempotency, refusalIn } from "../../http/idempotency/Idempotency.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { envelope } from "../../kernel/Envelope.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { modelsOf, withModel } from "../../upstream/models/Provider.ts"
import { forEndUser } from "../metered/EndUser.ts"
import { headersOf } from "../metered/ReceiptHeaders.ts"
import { labelled } from "../metered/Routes.ts"
import { TranscriptionApi, TranscriptionModelsApi } from "./Api.ts"
import { OpenAiTranscriptionFields, OpenAiTranslationFields, TranscriptionFields } from "./Fields.ts"
import type { OpenAiFields, TranscriptionAnswer } from "./Fields.ts"
import { events, formatted } from "./Formats.ts"
import { TranscriptionProviders } from "./Settings.ts"
import { Transcription } from "./Transcription.ts"
import type { Transcript, TranscriptionCall } from "./Transcription.ts"
import { receive } from "./Upload.ts"

interface Parts {
  readonly transcription: Transcription["Type"]
  readonly providers: TranscriptionProviders["Type"]
  readonly idempotency: Idempotency["Type"]
  readonly disk: Context.Context<FileSystem.FileSystem | Path.Path>
  readonly ifAffordable: ReturnType<typeof affordable>
}

export const TranscriptionHttp = HttpApiBuilder.group(
  contract.add(TranscriptionApi),
  "transcription",
  Effect.fnUntraced(function* (handlers) {
    const transcription = yield* Transcription
    const idempotency = yield* Idempotency
    const parts: Parts = {
      transcription,
      providers: yield* TranscriptionProviders,
      idempotency,
      disk: yield* Effect.context<FileSystem.FileSystem | Path.Path>(),
      ifAffordable: affordable(yield* Gate, idempotency, [transcription.least])
    }
    return handlers
      .handleRaw(
        "transcribe",
        documented(parts, "transcriptions", (answer) => answer)
      )
      .handleRaw("toolTranscribe", documented(parts, "tools/transcriptions", envelope))
      .handleRaw("createTranscription", openAi(parts, "audio/transcriptions", OpenAiTranscriptionFields, "transcribe"))
      .handleRaw("createTranslation", openAi(parts, "audio/translations", OpenAiTranslationFields, "translate"))
  })
)

export const TranscriptionModelsHttp = HttpApiBuilder.group(
  contract.add(TranscriptionModelsApi),
  "transcriptionModels",
  (handlers) =>
    handlers.handle("list", () =>
      Effect.flatMap(TranscriptionProviders, (providers) =>
        Effect.map(callable(modelsOf(providers, "second")), (models) => ({ models }))
      )
    )
)

type EndUser = Parameters<typeof forEndUser>[1]

/** Creates a route. `name` scopes its idempotency keys, and `shape` formats its errors. */
const route = <Fields extends EndUser, I>(
  { disk, idempotency, ifAffordable, transcription }: Parts,
  name: string,
  schema: Schema.Schema<Fields, I>,
  asked: (fields: Fields) => Either.Either<CallFields, InvalidRequest>,
  replied: (transcript: Transcript, fields: Fields) => Reply,
  shape?: Shape
) => {
  const received = receive(schema)
  const served = Effect.fnUntraced(function* (caller: Caller, inbound: Inbound) {
    const { bytes, content_type, fields, fingerprint, name: file, path } = yield* received(inbound)
    const call = yield* asked(fields)
    const named = yield* forEndUser(caller, fields)
    // A request for an unknown model is rejected first, even if its key was used before.
    yield* transcription.quote(call, bytes)
    const audio = { name: file, content_type, path, length: bytes }
    return yield* idempotency.once(
      caller,
      inbound.header("idempotency-key"),
      () => `${name} ${fingerprint}`,
      (beside) =>
        inbound.withRoom((room) =>
          Effect.map(transcription.transcribe({ ...call, caller: named, audio, beside, room }), (transcript) =>
            replied(transcript, fields)
          )
        ),
      undefined,
      refusalIn(shape, inbound.request_id ?? "")
    )
  })
  return raw(
    labelled((caller, inbound) =>
      ifAffordable(caller, inbound, Effect.provide(Effect.scoped(served(caller, inbound)), disk))
    )
  )
}

const documented = (parts: Parts, name: string, shape: (answer: TranscriptionAnswer) => object) =>
  route(
    parts,
    name,
    TranscriptionFields,
    (fields) => Either.right(askedOf(fields)),
    (transcript) => replyOf(transcript, shape)
  )

const openAi = <I>(parts: Parts, name: string, schema: Schema.Schema<OpenAiFields, I>, task: CallFields["task"]) =>
  route(
    parts,
    name,
    schema,
    (fields) =>
      Either.flatMap(openAiAskedOf(fields), (asked) =>
        Either.map(withModel(parts.providers, fields.model), ({ id }) => ({
          ...asked,
          task,
          endpoint: name,
          provider: id
        }))
      ),
    openAiReplyOf,
    openAiRefusal
  )

/** The call's properties that the form fields define. */
type CallFields = Omit<TranscriptionCall, "caller" | "audio" | "beside" | "room">

const askedOf = ({ language, model, prompt, provider, temperature }: TranscriptionFields): CallFields => ({
  provider,
  model,
  language,
  prompt,
  temperature: temperature === undefined ? undefined : Number(temperature)
})

const openAiAskedOf = (fields: OpenAiFields): Either.Either<CallFields, InvalidRequest> => {
  const { response_format: format = "json" } = fields
  const granularities = [fields.timestamp_granularities ?? fields["timestamp_granularities[]"] ?? []].flat()
  if (granularities.length > 0 && format !== "verbose_json") return noGranularities
  if (fields.stream === "true" && format !== "json" && format !== "text") return notStreamed
  const detail = format === "verbose_json" ? "verbose" : format === "srt" || format === "vtt" ? "segments" : undefined
  return Either.right({ ...askedOf({ ...fields, provider: undefined }), detail, granularities })
}

const noGranularities = Either.left(
  InvalidRequest.of("timestamp_granularities", "must be omitted unless response_format is verbose_json")
)
const notStreamed = Either.left(InvalidRequest.of("stream", "must be omitted unless response_format is json or text"))

const openAiReplyOf = (transcript: Transcript, { response_format = "json", stream }: OpenAiFields): Reply => {
  const { body, content_type } = stream === "true" ? events(transcript) : formatted(transcript, response_format)
  return { status: 200, headers: { "content-type": content_type, ...headersOf(transcript.receipt) }, body }
}

const replyOf = (transcript: Transcript, shape: (answer: TranscriptionAnswer) => object): Reply => {
  const { duration, provider, text } = transcript
  const answer = { text, status: "completed", provider, ...(duration !== undefined && { duration }) } as const
  return json(200, shape(answer), headersOf(transcript.receipt))
}
