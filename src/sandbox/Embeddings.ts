/**
 * An embeddings vendor with OpenAI's wire format, at two addresses. A text's vector is the sum of its words' vectors, so texts that share words are
 * similar. A token is a whitespace-separated word.
 */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { json, parse, Refusal } from "./Outside.ts"
import type { Answer, Make, Received, Route } from "./Outside.ts"

const upstreams = { "sandbox-embeddings-a": "/embeddings-a/v1", "sandbox-embeddings-b": "/embeddings-b/v1" } as const

const models = [
  { id: "sandbox-embedding", description: "Counts words", usd: "0.02", from: ["a"] },
  { id: "sandbox-embedding-large", description: "Counts words, at a higher price", usd: "0.13", from: ["a"] },
  { id: "sandbox-embedding-failover", description: "Counts words, with two upstreams", usd: "0.02", from: ["a", "b"] }
]
const dimensionsMax = 256
const tokensMax = 8_192

export const make: Make = ({ origin }) =>
  Effect.succeed({
    routes: Object.values(upstreams).map((mount): Route => ({
      method: "POST",
      path: `${mount}/embeddings`,
      answer: embed
    })),
    configuration: {
      upstreams: Object.fromEntries(
        Object.entries(upstreams).map(([name, mount]) => [name, { base_url: origin + mount, api_key: "sandbox" }])
      ),
      embeddings: models.map(({ description, from, id, usd }) => ({
        id,
        description,
        owned_by: "sandbox",
        max_input_tokens: tokensMax,
        dimensions: dimensionsMax,
        shortens: true,
        price: { input_usd_per_million: usd },
        upstreams: from.map((one) => ({ upstream: `sandbox-embeddings-${one}` }))
      }))
    }
  })

const refuse = (message: string, param: string): Refusal =>
  new Refusal(json(400, { error: { message, type: "invalid_request_error", param, code: null } }))

type Input = ReadonlyArray<string>

const inputsOf = (input: unknown): ReadonlyArray<Input> => {
  if (typeof input === "string") return [input.split(/\s+/).filter((word) => word !== "")]
  if (!Array.isArray(input)) throw refuse("Invalid 'input'.", "input")
  if (typeof input[0] === "number") return [input.map(String)]
  return input.flatMap((one: unknown) => (Array.isArray(one) ? [one.map(String)] : inputsOf(one)))
}

const embed = ({ body, headers }: Received): Answer => {
  if (!/^bearer +\S/i.test(headers.authorization ?? "")) {
    return json(401, { error: { message: "no API key", type: "invalid_request_error", param: null, code: null } })
  }
  const request = parse(body) as Readonly<Record<string, unknown>>
  const { dimensions, encoding_format, input, model } = request
  if (typeof model !== "string") throw refuse("you must provide a model parameter", "model")
  const inputs = inputsOf(input)
  const long = inputs.findIndex((words) => words.length > tokensMax)
  if (long !== -1) throw refuse(`Invalid 'input[${long}]': maximum input length is ${tokensMax} tokens.`, "input")
  const length = typeof dimensions === "number" ? dimensions : dimensionsMax
  const tokens = inputs.reduce((sum, words) => sum + words.length, 0)
  return json(200, {
    object: "list",
    data: inputs.map((words, index) => {
      const vector = vectorOf(words, length)
      const embedding = encoding_format === "base64" ? Buffer.from(vector.buffer).toString("base64") : [...vector]
      return { object: "embedding", index, embedding }
    }),
    model,
    usage: { prompt_tokens: tokens, total_tokens: tokens }
  })
}

/** Returns a unit vector, or the zero vector for a text without words. */
const vectorOf = (words: Input, length: number): Float32Array => {
  const vector = new Float32Array(length)
  for (const word of words) {
    const hash = createHash("sha256").update(word.toLowerCase()).digest()
    // Eight dimensions per word keep different words apart.
    for (let i = 0; i < 8; i++) vector[hash.readUInt16LE(2 * i) % length]! += 1
  }
  const norm = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0))
  return vector.map((value) => (norm === 0 ? 0 : value / norm))
}
