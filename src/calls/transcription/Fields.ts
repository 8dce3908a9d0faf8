/** The transcription routes' response, and their form fields except the file. */
import { Schema } from "effect"
import { endUserParts } from "../metered/EndUser.ts"

const text = Schema.optional(Schema.String)

const oneOf = <const T extends string>(...values: ReadonlyArray<T>) =>
  Schema.Literal(...values).annotations({
    message: () => ({ message: `must be one of ${values.join(", ")}`, override: true })
  })

export type TranscriptFormat = typeof TranscriptFormat.Type
const TranscriptFormat = oneOf("json", "text", "verbose_json", "srt", "vtt")

const shared = {
  prompt: text,
  response_format: Schema.optional(TranscriptFormat),
  temperature: Schema.optional(
    Schema.String.pipe(
      Schema.filter((text) => /^\d+(\.\d+)?$/.test(text) && Number(text) <= 2, {
        message: () => "must be a number from 0 to 2"
      })
    )
  ),
  ...endUserParts
} as const

const Language = Schema.optional(
  Schema.String.pipe(Schema.pattern(/^[a-z]{2}$/, { message: () => "must be an ISO 639-1 code, such as en" }))
)

/** The fields of the service's route, except the file. */
export const TranscriptionFields = Schema.Struct({ model: text, ...shared, language: Language, provider: text })
export interface TranscriptionFields extends Schema.Schema.Type<typeof TranscriptionFields> {}

const ModelId = Schema.NonEmptyString.annotations({
  message: () => ({ message: "must be a model's id", override: true })
})

const Granularity = oneOf("word", "segment")
const Granularities = Schema.optional(Schema.Union(Granularity, Schema.Array(Granularity)))

/** Rejects unknown fields, because they could change the transcript. */
const strictly = { parseOptions: { onExcessProperty: "error" } } as const

/** The fields of OpenAI's route, except the file. */
export const OpenAiTranscriptionFields = Schema.Struct({
  model: ModelId,
  ...shared,
  language: Language,
  stream: Schema.optional(oneOf("true", "false")),
  timestamp_granularities: Granularities,
  /** Some clients append brackets to the names of arrays. */
  "timestamp_granularities[]": Granularities
}).annotations(strictly)

/** The fields of a translation into English, except the file. */
export const OpenAiTranslationFields = Schema.Struct({ model: ModelId, ...shared }).annotations(strictly)

/** The decoded fields of OpenAI's routes. */
export interface OpenAiFields extends Schema.Schema.Type<typeof OpenAiTranscriptionFields> {}

const answer = {
  text: Schema.String,
  status: Schema.Literal("completed", "failed"),
  provider: Schema.String,
  /** The duration in seconds, if known. */
  duration: Schema.optional(Schema.Number),
  error: Schema.optional(Schema.String)
} as const

export const TranscriptionAnswer = Schema.Struct(answer).annotations({ identifier: "TranscriptionAnswer" })
export interface TranscriptionAnswer extends Schema.Schema.Type<typeof TranscriptionAnswer> {}
