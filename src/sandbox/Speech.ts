/**
 * A text-to-speech vendor with OpenAI's wire format. Its audio is silence, one kilobyte per character, streamed in chunks. `wav` is a playable file;
 * other formats are all zeros.
 */
import { Effect } from "effect"
import { json, parse, Refusal } from "./Outside.ts"
import type { Answer, Make, Received } from "./Outside.ts"

const types: Readonly<Record<string, string>> = {
  mp3: "audio/mpeg",
  opus: "audio/opus",
  aac: "audio/aac",
  flac: "audio/flac",
  wav: "audio/wav",
  pcm: "audio/pcm"
}

export const make: Make = ({ origin }) =>
  Effect.succeed({
    routes: [{ method: "POST", path: "/audio-speech/v1/audio/speech", answer: speak }],
    configuration: {
      upstreams: { "sandbox-speech": { base_url: `${origin}/audio-speech/v1`, api_key: "sandbox" } },
      tools: {
        speech: [provider("vendor", "Vendor", "vendor-4o-mini-tts"), provider("openai", "OpenAI", "gpt-4o-mini-tts")]
      }
    }
  })

/** Builds a provider's entry. One provider is named `openai`, because OpenAI's clients send that name and its newest model. */
const provider = (id: string, name: string, newest: string) => ({
  id,
  name,
  description: "Reads out silence",
  upstream: "sandbox-speech",
  models: [
    { id: "tts-1", usd_per_million_characters: "15" },
    { id: "tts-1-hd", usd_per_million_characters: "30" },
    { id: newest, events: true, usd_per_million_characters: "30" }
  ]
})

const refuse = (message: string, param: string): Refusal =>
  new Refusal(json(400, { error: { message, type: "invalid_request_error", param, code: null } }))

const speak = ({ body, headers }: Received): Answer => {
  if (!/^bearer +\S/i.test(headers.authorization ?? "")) {
    return json(401, { error: { message: "no API key", type: "invalid_request_error", param: null, code: null } })
  }
  const request = parse(body) as Readonly<Record<string, unknown>>
  const { input, model, response_format = "mp3", stream_format = "audio", voice } = request
  if (typeof input !== "string" || input === "") throw refuse("Invalid 'input': expected a text.", "input")
  if (typeof model !== "string") throw refuse("you must provide a model parameter", "model")
  if (typeof voice !== "string") throw refuse("you must provide a voice parameter", "voice")
  const type = types[String(response_format)]
  if (type === undefined) throw refuse("Invalid 'response_format'.", "response_format")
  const characters = [...input].length
  return stream_format === "sse"
    ? { status: 200, headers: { "content-type": "text/event-stream" }, pieces: events(characters), first: 2 }
    : {
        status: 200,
        headers: { "content-type": type },
        pieces: response_format === "wav" ? wav(characters) : silence(characters),
        first: 2
      }
}

/** The number of 16-bit samples per second, so that a character lasts 1/16 second. */
const sampleRate = 8_192

function* wav(count: number): Generator<Uint8Array> {
  const bytes = count * kilobyte.length
  const head = Buffer.alloc(kilobyte.length)
  head.write("RIFF", 0)
  head.writeUInt32LE(bytes - 8, 4)
  head.write("WAVEfmt ", 8)
  // The format chunk: 16 bytes, PCM, one channel.
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(sampleRate, 24)
  head.writeUInt32LE(sampleRate * 2, 28)
  head.writeUInt16LE(2, 32)
  head.writeUInt16LE(16, 34)
  head.write("data", 36)
  head.writeUInt32LE(bytes - 44, 40)
  yield head
  yield* silence(count - 1)
}

const kilobyte = new Uint8Array(1_024)

function* silence(count: number): Generator<Uint8Array> {
  for (let i = 0; i < count; i++) yield kilobyte
}

function* events(count: number): Generator<string> {
  const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`
  for (const piece of silence(count)) {
    yield event({ type: "speech.audio.delta", audio: Buffer.from(piece).toString("base64") })
  }
  const usage = { input_tokens: count, output_tokens: count, total_tokens: 2 * count }
  yield event({ type: "speech.audio.done", usage })
}
