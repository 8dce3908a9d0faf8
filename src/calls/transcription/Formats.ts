/** Formats transcripts like OpenAI's route. Subtitles are built from the provider's timed segments. */
import { isObject } from "../../upstream/wire/Failures.ts"
import type { TranscriptFormat } from "./Fields.ts"
import type { Transcript, TranscriptionChoice } from "./Transcription.ts"

/** A text segment with its times, in seconds. */
interface Segment {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** Returns the segments of a verbose response, or `undefined` if there are none or a segment lacks its text or times. */
const segmentsIn = ({ segments }: Readonly<Record<string, unknown>>): ReadonlyArray<Segment> | undefined =>
  Array.isArray(segments) && segments.every(isSegment) ? segments : undefined

const isSegment = (value: unknown): value is Segment =>
  isObject(value) && isTime(value.start) && isTime(value.end) && typeof value.text === "string"

const isTime = (value: unknown): boolean => typeof value === "number" && value >= 0 && Number.isFinite(value)

/** Returns a response's defect, for the log. */
export const faultIn = (
  answer: Readonly<Record<string, unknown>>,
  detail: TranscriptionChoice["detail"]
): string | undefined => {
  if (typeof answer.text !== "string") return "the response contains no text"
  return detail === "segments" && segmentsIn(answer) === undefined ? "the response contains no segments" : undefined
}

/** A response's segments in both subtitle formats. */
export interface Subtitles {
  readonly srt: string
  readonly vtt: string
}

export const subtitlesOf = (answer: Readonly<Record<string, unknown>>): Subtitles => {
  const segments = segmentsIn(answer) ?? []
  return { srt: srt(segments), vtt: vtt(segments) }
}

/** A transcript in the client's format. */
export interface Formatted {
  readonly content_type: string
  readonly body: string | Buffer
}

const json = "application/json"
const plain = "text/plain; charset=utf-8"

export const formatted = (transcript: Transcript, format: TranscriptFormat): Formatted => {
  const { text, upstream } = transcript
  switch (format) {
    case "text":
      return { content_type: plain, body: `${text}\n` }
    case "srt":
    case "vtt":
      return { content_type: plain, body: (upstream.long?.subtitles ?? subtitlesOf(upstream.body))[format] }
    default:
      // A response that already has the requested format is passed on unchanged.
      return {
        content_type: json,
        body: upstream.format === format ? upstream.bytes : JSON.stringify(short(transcript))
      }
  }
}

const short = ({ duration, text }: Transcript) => ({
  text,
  ...(duration !== undefined && { usage: { type: "duration", seconds: Math.ceil(duration) } })
})

/** Writes the transcript as server-sent events. A single event contains the complete text, because the text and the charge arrive together. */
export const events = (transcript: Transcript): Formatted => {
  const { upstream } = transcript
  // Reading a long body would parse it.
  const reported = upstream.long === undefined ? upstream.body.usage : upstream.long.usage
  const { text, usage } = { usage: reported, ...short(transcript) }
  const lines = [
    { type: "transcript.text.delta", delta: text },
    { type: "transcript.text.done", text, ...(usage !== undefined && { usage }) }
  ].map((event) => `data: ${JSON.stringify(event)}\n\n`)
  return { content_type: "text/event-stream", body: lines.join("") }
}

const srt = (segments: ReadonlyArray<Segment>): string =>
  segments
    .map(({ end, start, text }, i) => `${i + 1}\n${clock(start, ",")} --> ${clock(end, ",")}\n${line(text)}\n\n`)
    .join("")

const vtt = (segments: ReadonlyArray<Segment>): string =>
  `WEBVTT\n\n${segments.map(({ end, start, text }) => `${clock(start, ".")} --> ${clock(end, ".")}\n${line(text)}\n\n`).join("")}`

/** Removes empty lines, because an empty line would end the subtitle. */
const line = (text: string): string => text.trim().replace(/\s*\n\s*/g, "\n")

/** Formats a subtitle time, such as `00:01:02,345`. */
const clock = (seconds: number, mark: "," | "."): string => {
  const millis = Math.round(seconds * 1_000)
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0")
  const [hours, minutes] = [two(millis / 3_600_000), two((millis / 60_000) % 60)]
  return `${hours}:${minutes}:${two((millis / 1_000) % 60)}${mark}${String(millis % 1_000).padStart(3, "0")}`
}
