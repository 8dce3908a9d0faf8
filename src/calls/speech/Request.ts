/** Speech requests and audio formats. */
import { Schema } from "effect"
import { endUserFields } from "../metered/EndUser.ts"

/** Content types, by format. */
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
  // The formatter's default message would list only the first value.
  Schema.Literal(...values).annotations({
    message: () => ({ message: `must be one of ${values.join(", ")}`, override: true })
  })

export const inputMax = 4_096
export const charactersOf = (text: string): number => [...text].length

const manner = {
  response_format: Schema.optionalWith(oneOf(formatNames), { default: () => "mp3" as const }),
  speed: Schema.optional(
    Schema.JsonNumber.pipe(Schema.between(0.25, 4, { message: () => "must be a number from 0.25 to 4.0" }))
  ),
  /** Instructions for the voice, for models that accept them. They are free, so their length is limited. */
  instructions: Schema.optional(
    Schema.String.pipe(
      Schema.filter((text) => charactersOf(text) <= inputMax, {
        message: () => `must be at most ${inputMax} characters long`
      })
    )
  ),
  ...endUserFields
} as const
const rest = { ...manner, provider: Schema.optional(Schema.String) } as const

const Input = Schema.String.pipe(
  Schema.filter((text) => text !== "" && charactersOf(text) <= inputMax, {
    message: () => `must be 1 to ${inputMax} characters long`
  })
)

// An empty id would select the provider's first model. Only the routes below `/v1/tools` allow that.
const ModelId = Schema.NonEmptyString.annotations({
  message: () => ({ message: "must be a model's id", override: true })
})

export const SpeechRequest = Schema.Struct({
  input: Input,
  model: ModelId,
  voice: oneOf(voices),
  ...rest
}).annotations({ identifier: "SpeechRequest" })

/** A request to a route below `/v1/tools`, where only the text is required. */
export const ToolSpeechRequest = Schema.Struct({
  input: Input,
  model: Schema.optional(Schema.String),
  voice: Schema.optionalWith(oneOf(voices), { default: () => "alloy" as const }),
  ...rest
}).annotations({ identifier: "ToolSpeechRequest" })

const voiceNameMax = 100

/** A request to OpenAI's path. Unknown fields are rejected, because they could change the audio. */
export const OpenAiSpeechRequest = Schema.Struct({
  input: Input,
  model: ModelId,
  /** Each provider offers different voices and rejects all others. */
  voice: Schema.String.pipe(Schema.filter((name) => name !== "" && name.length <= voiceNameMax)).annotations({
    message: () => ({ message: `must be the name of a voice, at most ${voiceNameMax} characters long`, override: true })
  }),
  ...manner,
  /** `sse` requests events with audio chunks. Not all models support it. */
  stream_format: Schema.optionalWith(oneOf(["audio", "sse"]), { default: () => "audio" as const })
}).annotations({ identifier: "OpenAiSpeechRequest", parseOptions: { onExcessProperty: "error" } })

/** A request to any speech route. The default is the first provider and its first model. */
export interface SpeechRequest extends Omit<Schema.Schema.Type<typeof ToolSpeechRequest>, "voice"> {
  readonly voice: string
  /** Whether the response is audio bytes (the default) or events that contain them. */
  readonly stream_format?: "audio" | "sse" | undefined
}
