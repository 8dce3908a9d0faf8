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

/** The longest that audio of so many bytes can last: a second for each 1,000 bytes. It bounds what is set aside and what is charged. */
export const secondsMost = (bytes: number): number => Math.ceil(bytes / 1_000)
/** Where the provider says nothing: 16 kilobytes a second, the usual measure of MP3. */
const secondsGuessed = (bytes: number): number => Math.ceil(bytes / 16_000)

/** How long the audio was, as far as that is known, and the seconds that are charged. */
export interface Length {
  /** What the provider says, where that can be true. */
  readonly duration: number | undefined
  readonly seconds: number
  readonly usage_source: "provider" | "estimated"
}

/**
 * The seconds of an answer about a file of so many bytes. What the provider says is believed as far as the bytes can last; anything
 * else that it says (longer, below zero, no number) is charged as the longest that they can, and estimated.
 */
export const lengthOf = (told: unknown, bytes: number): Length => {
  if (told === undefined || told === null) {
    return { duration: undefined, seconds: secondsGuessed(bytes), usage_source: "estimated" }
  }
  // Some providers write the number as a text.
  const duration = typeof told === "string" && /^\d+(\.\d+)?$/.test(told) ? Number(told) : told
  return typeof duration === "number" && duration >= 0 && Math.ceil(duration) <= secondsMost(bytes)
    ? { duration, seconds: Math.ceil(duration), usage_source: "provider" }
    : { duration: undefined, seconds: secondsMost(bytes), usage_source: "estimated" }
}

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
