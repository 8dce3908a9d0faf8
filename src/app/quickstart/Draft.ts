/**
 * Writes the configuration for `tollgate quickstart`: one screen of JSON, with one line for each upstream and each model.
 *
 * Where the specification is silent:
 * - A local server's model costs 0.10 USD per million prompt tokens and 0.40 USD per million completion tokens. Without prices, credit and limits
 *   would have no effect. The operator can change the prices in the file.
 */
import { vendors } from "./Vendors.ts"
import type { Vendor } from "./Vendors.ts"
import type { LocalServer } from "./LocalServer.ts"

export interface Sources {
  /** `key` is the vendor's key if it is not in the environment. */
  readonly vendors: ReadonlyArray<Vendor & { readonly key?: string }>
  readonly local: LocalServer | undefined
}

export const localPrice = { prompt_usd_per_million: "0.10", completion_usd_per_million: "0.40" }

/** The maximum number of local models, so that the file fits on one screen. */
const localMax = 20
const outputMax = 16_384

type Lines = ReadonlyArray<readonly [name: string, entry: object]>

const upstreamsOf = ({ local, vendors }: Sources): Lines => [
  ...vendors.map(
    ({ key, name, upstream: { base_url, ...rest }, variable }) =>
      [name, { base_url, ...(key === undefined ? { api_key_env: variable } : { api_key: key }), ...rest }] as const
  ),
  ...(local === undefined ? [] : [["local", { base_url: local.base_url }] as const])
]

const modelsOf = ({ local, vendors }: Sources): ReadonlyArray<object> => [
  ...vendors.flatMap(({ models, name }) => models.map((model) => ({ catalogue: `${name}/${model}` }))),
  ...(local?.models ?? []).slice(0, localMax).map(({ context_length, id }) => ({
    id,
    context_length,
    max_output_tokens: Math.min(outputMax, context_length),
    // Local servers do not accept `max_completion_tokens`.
    limit_field: "max_tokens",
    price: localPrice,
    upstreams: [{ upstream: "local", model: id }]
  }))
]

/** Formats JSON on one line, with spaces. Relies on JSON strings never containing line breaks. */
const lineOf = (value: unknown): string => JSON.stringify(value, null, 1).replaceAll(/\n */g, " ")

export const textOf = (sources: Sources): string => {
  const upstreams = upstreamsOf(sources).map(([name, entry]) => `    ${JSON.stringify(name)}: ${lineOf(entry)}`)
  const models = modelsOf(sources).map((entry) => `    ${lineOf(entry)}`)
  return `{\n  "upstreams": {\n${upstreams.join(",\n")}\n  },\n  "models": [\n${models.join(",\n")}\n  ]\n}\n`
}

export const noSource =
  "no vendor is configured. Set a vendor's key in the environment " +
  `(${vendors.map(({ variable }) => variable).join(", ")}), or pass a local server's address: ` +
  "tollgate quickstart --upstream http://127.0.0.1:11434/v1"
