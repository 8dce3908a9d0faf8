/**
 * A transcription vendor with OpenAI's wire format: a form with a file. Any bytes count as audio, at 16,000 bytes per second. The transcript
 * contains the audio's length.
 */
import { Effect } from "effect"
import { json, Refusal } from "./Outside.ts"
import type { Answer, Make, Received } from "./Outside.ts"

export const make: Make = ({ origin }) =>
  Effect.succeed({
    routes: [
      {
        method: "POST",
        path: "/audio-text/v1/audio/transcriptions",
        answer: (received) => hear(received, "transcribe")
      },
      { method: "POST", path: "/audio-text/v1/audio/translations", answer: (received) => hear(received, "translate") }
    ],
    configuration: {
      upstreams: { "sandbox-transcription": { base_url: `${origin}/audio-text/v1`, api_key: "sandbox" } },
      tools: {
        transcription: [provider("vendor", "Vendor", "vendor-4o"), provider("openai", "OpenAI", "gpt-4o")]
      }
    }
  })

/** Builds a provider's entry. One provider is named `openai`, because OpenAI's clients send that name and its models. */
const provider = (id: string, name: string, family: string) => ({
  id,
  name,
  description: "Transcribes the length of the audio",
  upstream: "sandbox-transcription",
  // The sandbox's audio is never sparse, so one second per 1,000 bytes is an upper bound for every format.
  models: [
    { id: "whisper-1", wire_format: "verbose_json", translates: true, max_seconds: 1, usd_per_minute: "0.006" },
    { id: `${family}-transcribe`, max_seconds: 1, usd_per_minute: "0.006" },
    { id: `${family}-mini-transcribe`, max_seconds: 1, usd_per_minute: "0.006" }
  ]
})

const refuse = (message: string, param: string): Refusal =>
  new Refusal(json(400, { error: { message, type: "invalid_request_error", param, code: null } }))

const hear = async ({ body, headers }: Received, task: "transcribe" | "translate"): Promise<Answer> => {
  if (!/^bearer +\S/i.test(headers.authorization ?? "")) {
    return json(401, { error: { message: "no API key", type: "invalid_request_error", param: null, code: null } })
  }
  const form = await new Response(new Uint8Array(body), { headers: { "content-type": headers["content-type"] ?? "" } })
    .formData()
    .catch(() => undefined)
  if (form === undefined) throw refuse("Could not parse multipart form.", "file")
  const file = form.get("file")
  const model = form.get("model")
  if (file === null || typeof file === "string") throw refuse("Invalid 'file': expected a file.", "file")
  if (typeof model !== "string" || model === "") throw refuse("you must provide a model parameter", "model")
  const seconds = file.size / 16_000
  const text = `${seconds} seconds of ${file.name}`
  return form.get("response_format") === "verbose_json"
    ? json(200, { task, language: "english", duration: seconds, text, ...timesOf(text, seconds, form) })
    : json(200, { text, usage: { type: "duration", seconds: Math.ceil(seconds) } })
}

/** Returns segments of three words, all equally long, and word timestamps if requested. */
const timesOf = (text: string, seconds: number, form: FormData) => {
  const asked = form.getAll("timestamp_granularities[]")
  const words = text.split(" ").map((word, i, { length }) => ({
    word,
    start: (seconds * i) / length,
    end: (seconds * (i + 1)) / length
  }))
  const segments = []
  for (let i = 0; i < words.length; i += 3) {
    const some = words.slice(i, i + 3)
    const { start } = some[0]!
    segments.push({ id: i / 3, start, end: some.at(-1)!.end, text: ` ${some.map(({ word }) => word).join(" ")}` })
  }
  return {
    ...((asked.length === 0 || asked.includes("segment")) && { segments }),
    ...(asked.includes("word") && { words })
  }
}
