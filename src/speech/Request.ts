/** Text to be spoken: what may be asked, and in which formats it comes. */
import { Schema } from "effect"

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
  // Overriding, since otherwise the formatter speaks of the first value alone.
  Schema.Literal(...values).annotations({
    message: () => ({ message: `one of ${values.join(", ")}`, override: true })
  })

export const inputMax = 4_096
export const charactersOf = (text: string): number => [...text].length

const rest = {
  response_format: Schema.optionalWith(oneOf(formatNames), { default: () => "mp3" as const }),
  speed: Schema.optional(
    Schema.JsonNumber.pipe(Schema.between(0.25, 4, { message: () => "a number from 0.25 to 4.0" }))
  ),
  provider: Schema.optional(Schema.String),
  /** How it is to be said, where the model can be told. Only the input is charged, so that this is no longer than that may be. */
  instructions: Schema.optional(
    Schema.String.pipe(
      Schema.filter((text) => charactersOf(text) <= inputMax, {
        message: () => `a text of up to ${inputMax} characters`
      })
    )
  )
} as const

const Input = Schema.String.pipe(
  Schema.filter((text) => text !== "" && charactersOf(text) <= inputMax, {
    message: () => `a text of 1 to ${inputMax} characters`
  })
)

export const SpeechRequest = Schema.Struct({
  input: Input,
  // Empty would mean the provider's first model, which only the route below has as its default.
  model: Schema.NonEmptyString.annotations({ message: () => ({ message: "required: a model's id", override: true }) }),
  voice: oneOf(voices),
  ...rest
}).annotations({ identifier: "SpeechRequest" })

/** The same below `/v1/tools`, where only the text must be given. */
export const ToolSpeechRequest = Schema.Struct({
  input: Input,
  model: Schema.optional(Schema.String),
  voice: Schema.optionalWith(oneOf(voices), { default: () => "alloy" as const }),
  ...rest
}).annotations({ identifier: "ToolSpeechRequest" })

/** A text that is to be spoken, as either route reads it. Without a model it is the provider's first, without a provider the first. */
export interface SpeechRequest extends Schema.Schema.Type<typeof ToolSpeechRequest> {}
