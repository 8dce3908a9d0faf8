/** Two vendors of web search, each with its own wire format. Their results repeat the query. */
import { Effect } from "effect"
import { json, parse, Refusal } from "./Outside.ts"
import type { Answer, Make, Received } from "./Outside.ts"

export const make: Make = ({ origin }) =>
  Effect.succeed({
    routes: [
      { method: "POST", path: "/search-tavily/search", answer: tavily },
      { method: "GET", path: "/search-brave/res/v1/web/search", answer: brave }
    ],
    configuration: {
      upstreams: {
        "sandbox-tavily": { base_url: `${origin}/search-tavily`, api_key: "sandbox" },
        "sandbox-brave": { base_url: `${origin}/search-brave`, api_key: "sandbox" }
      },
      tools: {
        search: [
          {
            id: "tavily",
            name: "Tavily",
            description: "Searches for models, with raw pages",
            vendor: "tavily",
            upstream: "sandbox-tavily",
            usd_per_query: "0.005",
            usd_per_query_by_depth: { advanced: "0.005" }
          },
          {
            id: "brave",
            name: "Brave",
            description: "Searches its own index",
            vendor: "brave",
            upstream: "sandbox-brave",
            usd_per_query: "0.005"
          }
        ]
      }
    }
  })

const pages = (query: string, count: number, hosts: ReadonlyArray<string>) =>
  Array.from({ length: count }, (_, i) => ({
    title: `${query} (${i + 1})`,
    url: `https://${hosts[i % Math.max(1, hosts.length)] ?? "example.com"}/${encodeURIComponent(query)}/${i + 1}`,
    text: `Page ${i + 1} about ${query}.`
  }))

const tavily = (received: Received): Answer => {
  if (!/^bearer +\S/i.test(received.headers.authorization ?? "")) {
    return json(401, { detail: { error: "Unauthorized: missing or invalid API key." } })
  }
  const body = parse(received.body) as Readonly<Record<string, unknown>>
  const { include_domains, include_raw_content, max_results = 5, query, search_depth = "basic" } = body
  if (typeof query !== "string" || query === "")
    throw new Refusal(json(400, { detail: { error: "Query is missing." } }))
  if (typeof max_results !== "number" || max_results < 0 || max_results > 20) {
    throw new Refusal(json(400, { detail: { error: "Max results must be between 0 and 20." } }))
  }
  // Vendors add depths over time, so any depth is accepted.
  if (typeof search_depth !== "string" || search_depth === "") {
    throw new Refusal(json(400, { detail: { error: "Invalid search depth." } }))
  }
  const hosts = Array.isArray(include_domains) ? include_domains.map(String) : []
  const results = pages(query, max_results, hosts).map(({ text, title, url }, i) => ({
    title,
    url,
    content: text,
    score: 1 - i / 100,
    raw_content: include_raw_content === true ? `${text} All of it.` : null
  }))
  return json(200, { query, follow_up_questions: null, answer: null, images: [], results, response_time: 0.1 })
}

const brave = ({ headers, query }: Received): Answer => {
  if ((headers["x-subscription-token"] ?? "") === "") {
    return json(401, { type: "ErrorResponse", error: { code: "SUBSCRIPTION_TOKEN_INVALID", status: 401 } })
  }
  const searchText = query.get("q") ?? ""
  const count = Number(query.get("count") ?? 20)
  if (searchText === "" || !Number.isInteger(count) || count < 1 || count > 20) {
    return json(422, { type: "ErrorResponse", error: { code: "VALIDATION", status: 422 } })
  }
  const hosts = [...searchText.matchAll(/site:([^\s)]+)/g)].map(([, host]) => host!)
  const words = searchText.replace(/ \(site:.*\)$/, "")
  const results = pages(words, count, hosts).map(({ text, title, url }) => ({
    type: "search_result",
    title,
    url,
    description: text
  }))
  return json(200, { type: "search", query: { original: searchText }, web: { type: "search", results } })
}
