/** Requests for speech, and the audio formats. */
import { Schema } from "effect"
import { endUserFields } from "../metered/EndUser.ts"

/** The content type of each format. */
export const formats = {
  mp3: "audio/mpeg",
  opus: "audio/opus",
  aac: "audio/aac",
  flac: "audio/flac",
  wav: "audio/wav",
  pcm: "audio/pcm"
} as const
export type SpeechFormat = keyof typeof formats
const formatNames = Object.keys(formats) as ReadonlyArray<SpeechFormat>

export const voices = [
  "alloy",
  "ash",
  "ballad",
  "coral",
  "echo",
  "fable",
  "onyx",
  "nova",
  "sage",
  "shimmer",
  "verse"
] as const

const oneOf = <const T extends string>(values: ReadonlyArray<T>) =>
  // The formatter's own message would mention only the first value.
  Schema.Literal(...values).annotations({
    message: () => ({ message: `one of ${values.join(", ")}`, override: true })
  })

export const inputMax = 4_096
export const charactersOf = (text: string): number => [...text].length

const manner = {
  response_format: Schema.optionalWith(oneOf(formatNames), { default: () => "mp3" as const }),
  speed: Schema.optional(
    Schema.JsonNumber.pipe(Schema.between(0.25, 4, { message: () => "a number from 0.25 to 4.0" }))
  ),
  /** Instructions for the voice, for models that accept them. They are free, so their length is limited. */
  instructions: Schema.optional(
    Schema.String.pipe(
      Schema.filter((text) => charactersOf(text) <= inputMax, {
        message: () => `a text of up to ${inputMax} characters`
      })
    )
  ),
  ...endUserFields
} as const
const rest = { ...manner, provider: Schema.optional(Schema.String) } as const

const Input = Schema.String.pipe(
  Schema.filter((text) => text !== "" && charactersOf(text) <= inputMax, {
    message: () => `a text of 1 to ${inputMax} characters`
  })
)

// An empty id would select the provider's first model. Only routes below `/v1/tools` have this default.
const ModelId = Schema.NonEmptyString.annotations({
  message: () => ({ message: "required: a model's id", override: true })
})

export const SpeechRequest = Schema.Struct({
  input: Input,
  model: ModelId,
  voice: oneOf(voices),
  ...rest
}).annotations({ identifier: "SpeechRequest" })

/** A request below `/v1/tools`. Only the text is required. */
export const ToolSpeechRequest = Schema.Struct({
  input: Input,
  model: Schema.optional(Schema.String),
  voice: Schema.optionalWith(oneOf(voices), { default: () => "alloy" as const }),
  ...rest
}).annotations({ identifier: "ToolSpeechRequest" })

const voiceNameMax = 100

/** A request on OpenAI's path, with OpenAI's fields. Unknown fields are rejected, because they could change the audio. */
export const OpenAiSpeechRequest = Schema.Struct({
  input: Input,
  model: ModelId,
  /** Each provider has its own voices and rejects unknown ones. */
  voice: Schema.String.pipe(Schema.filter((name) => name !== "" && name.length <= voiceNameMax)).annotations({
    message: () => ({ message: `required: the name of a voice, up to ${voiceNameMax} characters`, override: true })
  }),
  ...manner,
  /** `sse` means events with audio chunks, for models that support them. */
  stream_format: Schema.optionalWith(oneOf(["audio", "sse"]), { default: () => "audio" as const })
}).annotations({ identifier: "OpenAiSpeechRequest", parseOptions: { onExcessProperty: "error" } })

/** A speech request of any route. The default is the first provider and the provider's first model. */
export interface SpeechRequest extends Omit<Schema.Schema.Type<typeof ToolSpeechRequest>, "voice"> {
  readonly voice: string
  /** The form of the response: audio bytes (the default), or events that contain them. */
  readonly stream_format?: "audio" | "sse" | undefined
}
