/** Speech made into text: what comes with the audio, and what a second of it costs. */
import { Context, Schema } from "effect"
import type { UnitPrice } from "../kernel/Price.ts"
import type { Provider } from "../upstream/Provider.ts"

export interface TranscriptionModel {
  readonly id: string
  /** What the upstream calls it. */
  readonly upstream_model: string
  /** The response format in which the upstream says how long the audio is: `verbose_json`, where the model knows it. */
  readonly wire_format: "verbose_json" | "json"
  /** USD a second; every second that has begun counts. */
  readonly price: UnitPrice
}

/** A provider that speaks the OpenAI audio routes. */
export interface TranscriptionProvider extends Provider {
  readonly models: ReadonlyArray<TranscriptionModel>
}

export class TranscriptionProviders extends Context.Reference<TranscriptionProviders>()(
  "tollgate/transcription/TranscriptionProviders",
  { defaultValue: (): ReadonlyArray<TranscriptionProvider> => [] }
) {}

/** The longest audio file. */
export const fileBytesMax = 25 * 1024 * 1024

/**
 * How long audio of so many bytes may be. Speech is not coded below a kilobyte a second, nor above what a compact disc takes; the
 * first bounds what is set aside, the second what must be there at least.
 */
export const secondsMost = (bytes: number): number => Math.ceil(bytes / 1_000)
export const secondsLeast = (bytes: number): number => Math.max(1, Math.floor(bytes / 176_400))
/** Where nobody says: 16 kilobytes a second, the usual measure of MP3. */
export const secondsGuessed = (bytes: number): number => Math.max(1, Math.ceil(bytes / 16_000))

const text = Schema.optional(Schema.String)

/** The fields beside the file. */
export const TranscriptionFields = Schema.Struct({
  model: text,
  prompt: text,
  response_format: Schema.optional(
    Schema.Literal("json", "text", "verbose_json", "srt", "vtt").annotations({
      message: () => ({ message: "one of json, text, verbose_json, srt, vtt", override: true })
    })
  ),
  temperature: Schema.optional(
    Schema.String.pipe(
      Schema.filter((text) => /^\d+(\.\d+)?$/.test(text) && Number(text) <= 2, {
        message: () => "a number from 0 to 2"
      })
    )
  ),
  language: Schema.optional(
    Schema.String.pipe(Schema.pattern(/^[a-z]{2}$/, { message: () => "an ISO-639-1 code, like en" }))
  ),
  provider: text
})
export interface TranscriptionFields extends Schema.Schema.Type<typeof TranscriptionFields> {}

const answer = {
  text: Schema.String,
  status: Schema.Literal("completed", "failed"),
  provider: Schema.String,
  /** Seconds, where they are known. */
  duration: Schema.optional(Schema.Number),
  error: Schema.optional(Schema.String)
} as const

export const TranscriptionAnswer = Schema.Struct(answer).annotations({ identifier: "TranscriptionAnswer" })
export interface TranscriptionAnswer extends Schema.Schema.Type<typeof TranscriptionAnswer> {}
