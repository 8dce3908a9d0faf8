/**
 * A vendor that ranks documents by a query, in the wire format of Cohere and Jina. A document's relevance is the fraction of the query's words that
 * it contains. A token is a whitespace-separated word, and the query counts once per document. One search unit covers up to a hundred documents.
 */
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { json, parse, Refusal } from "./Outside.ts"
import type { Answer, Make, Received } from "./Outside.ts"

export const make: Make = ({ origin }) =>
  Effect.succeed({
    routes: [{ method: "POST", path: "/ranking/v1/rerank", answer: rerank }],
    configuration: {
      upstreams: { "sandbox-rerank": { base_url: `${origin}/ranking/v1`, api_key: "sandbox" } },
      rerank: [
        {
          id: "sandbox-rerank",
          description: "Counts shared words, billed per search",
          owned_by: "sandbox",
          price: { usd_per_search: "0.002" },
          upstreams: [{ upstream: "sandbox-rerank" }]
        },
        {
          id: "sandbox-rerank-tokens",
          description: "Counts shared words, billed per token",
          owned_by: "sandbox",
          price: { input_usd_per_million: "0.05" },
          upstreams: [{ upstream: "sandbox-rerank" }]
        }
      ]
    }
  })

const refuse = (message: string): Refusal => new Refusal(json(400, { message }))

const wordsOf = (text: string): ReadonlyArray<string> => text.toLowerCase().match(/\S+/g) ?? []

const rerank = ({ body, headers }: Received): Answer => {
  if (!/^bearer +\S/i.test(headers.authorization ?? "")) return json(401, { message: "no api key supplied" })
  const request = parse(body) as Readonly<Record<string, unknown>>
  const { documents, model, query, return_documents, top_n } = request
  if (typeof model !== "string") throw refuse("model is required")
  if (typeof query !== "string") throw refuse("query is required")
  if (!Array.isArray(documents)) throw refuse("documents are required")
  const texts = documents.map((one: unknown) =>
    typeof one === "string" ? one : (one as { readonly text: string }).text
  )
  const words = new Set(wordsOf(query))
  const results = texts
    .map((text, index) => {
      const found = new Set(wordsOf(text).filter((word) => words.has(word)))
      const relevance_score = words.size === 0 ? 0 : found.size / words.size
      return { index, relevance_score, ...(return_documents === true && { document: { text } }) }
    })
    .toSorted((one, other) => other.relevance_score - one.relevance_score)
  const tokens = texts.reduce((sum, text) => sum + wordsOf(text).length + wordsOf(query).length, 0)
  return json(200, {
    id: randomUUID(),
    model,
    results: typeof top_n === "number" ? results.slice(0, top_n) : results,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
    meta: { billed_units: { search_units: Math.ceil(texts.length / 100) } }
  })
}
