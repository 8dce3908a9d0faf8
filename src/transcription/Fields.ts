/** The fields of a transcription's form beside its file, and what is answered. */
import { Schema } from "effect"

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
