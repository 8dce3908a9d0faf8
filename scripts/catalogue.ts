/**
 * `npm run catalogue` writes `src/upstream/catalogue/catalogue.json`, the known models and their prices, from two packages in the registry. It
 * verifies the packages with the hashes below. To update the catalogue, change their versions and hashes here.
 *
 * Neither package contains everything that a configuration needs. `pi-ai` lists limits and text prices. `genai-prices` lists few limits, but
 * all price lines, with their source. If both agree on their common lines, the second package's other lines are added. If they
 * differ, the first package's newer price applies, and `tollgate models` also shows the second package's price.
 */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import type { CatalogueDocument, Price, PriceFields, Stored, Vendor } from "../src/upstream/catalogue/Document.ts"
import { root } from "./bundle.ts"

const packages = {
  limits: {
    name: "@earendil-works/pi-ai",
    version: "1.5.2",
    licence: "MIT, Copyright (c) Mario Zechner",
    integrity: "sha512-2tWPSnV3qzfiDIY3aWluBag3vC++Vs+VsXt/UquSU5onPMohPih72FUhIhaqmDdMYubOgB3Byl9uF4Vk40JLvQ=="
  },
  lines: {
    name: "@pydantic/genai-prices",
    version: "0.1.8",
    licence: "MIT, Copyright (c) Pydantic Services Inc. 2025 to present",
    integrity: "sha512-h7CYw6qTyflG2zUndO8tXyL8Xopf+tX9JZu13h0ZFgeyYj+J2gm1edR4+R+mbQ2vPdkFjtTmmmu1cYQPM5/KTA=="
  }
}

/**
 * The vendors to include, each with its name in the second package. Subscription vendors are excluded, because their customers do not pay the
 * listed prices.
 */
const vendors: Readonly<Record<string, string | undefined>> = {
  "amazon-bedrock": "aws",
  anthropic: "anthropic",
  azure: "azure",
  baseten: "baseten",
  cerebras: "cerebras",
  "cloudflare-workers-ai": "cloudflare",
  cohere: "cohere",
  deepseek: "deepseek",
  fireworks: "fireworks",
  google: "google",
  "google-vertex": "google",
  groq: "groq",
  huggingface: undefined,
  meta: undefined,
  minimax: "minimax",
  mistral: "mistral",
  moonshotai: "moonshotai",
  nvidia: undefined,
  openai: "openai",
  openrouter: "openrouter",
  together: "together",
  "vercel-ai-gateway": undefined,
  xai: "x-ai",
  xiaomi: undefined,
  zai: "zai"
}

/** The vendors whose models are included even if only the second package lists them. (For routers, it lists many models that no longer exist.) */
const makers: ReadonlySet<string> = new Set(["anthropic", "cohere", "deepseek", "google", "mistral", "openai", "xai"])

// ---- the packages' data -------------------------------------------------------------------------------------------------

interface Limits {
  readonly id: string
  readonly name: string
  readonly type: string
  readonly provider: string
  readonly baseUrl: string
  readonly input: ReadonlyArray<string>
  readonly contextWindow: number
  readonly maxTokens: number
  readonly compat?: { readonly maxTokensField?: "max_tokens" | "max_completion_tokens" }
  readonly cost: Costs & { readonly tiers?: ReadonlyArray<Costs & { readonly inputTokensAbove: number }> }
}
/** Prices in USD per million. 0 can also mean that the price is unknown. */
interface Costs {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

type Match = {
  readonly equals?: string
  readonly starts_with?: string
  readonly ends_with?: string
  readonly contains?: string
  readonly regex?: string
  readonly or?: ReadonlyArray<Match>
  readonly and?: ReadonlyArray<Match>
}
type Amount =
  | number
  | { readonly base: number; readonly tiers: ReadonlyArray<{ readonly start: number; readonly price: number }> }
type Prices = Readonly<Record<string, Amount>>
interface Lines {
  readonly id: string
  readonly name?: string
  readonly match: Match
  readonly context_window?: number
  readonly deprecated?: boolean
  readonly prices:
    | Prices
    | ReadonlyArray<{
        readonly constraint?: { readonly start_date?: string; readonly type: string }
        readonly prices: Prices
      }>
}

const work = mkdtempSync(join(tmpdir(), "catalogue-"))

const fetched = ({ integrity, name, version }: (typeof packages)["limits"]): string => {
  const folder = mkdtempSync(join(work, "package-"))
  const packed = execFileSync("npm", ["pack", "--silent", "--pack-destination", folder, `${name}@${version}`], {
    cwd: folder
  })
  const file = join(folder, basename(packed.toString().trim().split("\n").at(-1)!))
  const found = `sha512-${createHash("sha512").update(readFileSync(file)).digest("base64")}`
  if (found !== integrity)
    throw new Error(`${name}@${version} has changed: its hash is ${found} but must be ${integrity}`)
  execFileSync("tar", ["-xzf", file, "-C", folder, "--strip-components=1"])
  return folder
}

const limitsIn = (folder: string): ReadonlyArray<Limits> => {
  const data = join(folder, "dist", "providers", "data")
  return readdirSync(data)
    .filter((name) => !name.startsWith("."))
    .flatMap((name) => {
      const groups = JSON.parse(readFileSync(join(data, name), "utf8")) as Record<string, Record<string, Limits>>
      return Object.values(groups).flatMap((models) => Object.values(models))
    })
    .filter(({ provider, type }) => type === "chat" && Object.hasOwn(vendors, provider))
}

const dayOf = (folder: string): string =>
  (
    JSON.parse(readFileSync(join(folder, "dist", "providers", "data", ".manifest.json"), "utf8")) as {
      readonly generatedAt: string
    }
  ).generatedAt.slice(0, 10)

type Find = (query: { readonly providerId: string }) => { readonly models: ReadonlyArray<Lines> } | undefined

const linesIn = async (folder: string): Promise<(vendor: string) => ReadonlyArray<Lines>> => {
  const { findProvider } = (await import(join(folder, "dist", "index.js"))) as { readonly findProvider: Find }
  return (vendor) => {
    const providerId = vendors[vendor]
    return providerId === undefined ? [] : (findProvider({ providerId })?.models ?? [])
  }
}

const isMatch = (match: Match, id: string): boolean =>
  match.or?.some((one) => isMatch(one, id)) ??
  match.and?.every((one) => isMatch(one, id)) ??
  ((match.equals !== undefined && id === match.equals) ||
    (match.starts_with !== undefined && id.startsWith(match.starts_with)) ||
    (match.ends_with !== undefined && id.endsWith(match.ends_with)) ||
    (match.contains !== undefined && id.includes(match.contains)) ||
    (match.regex !== undefined && new RegExp(match.regex).test(id)))

// ---- prices -------------------------------------------------------------------------------------------------------------

/** Returns the decimal with the digits in the package's file. JavaScript prints a number with the shortest digits that identify it. */
const usd = (amount: number): string => {
  const text = String(amount)
  if (/e/.test(text)) throw new Error(`${text} has too many decimal places for a price`)
  return text
}

const known = (amount: number): string | undefined => (amount > 0 ? usd(amount) : undefined)

const withoutNothing = <A extends object>(fields: A): A =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as A

const ofCosts = ({ cacheRead, cacheWrite, input, output }: Costs): PriceFields =>
  withoutNothing({
    prompt: known(input),
    completion: known(output),
    cached_prompt: known(cacheRead),
    cache_write: known(cacheWrite)
  })

const priceOfLimits = ({ cost }: Limits): Price | undefined => {
  if (!(cost.input > 0 && cost.output > 0)) return undefined
  return withoutNothing({
    ...(ofCosts(cost) as Price),
    long_context: cost.tiers?.map((tier) => ({ above_prompt_tokens: tier.inputTokensAbove, ...ofCosts(tier) }))
  })
}

/** The price lines that can apply to a text call, with the package's names. */
const lineNames: Readonly<Record<keyof PriceFields, string>> = {
  prompt: "input_mtok",
  completion: "output_mtok",
  cached_prompt: "cache_read_mtok",
  cached_prompt_audio: "cache_audio_read_mtok",
  cache_write: "cache_write_mtok",
  cache_write_1h: "cache_write_1h_mtok",
  prompt_audio: "input_audio_mtok",
  prompt_image: "input_image_mtok",
  reasoning: "output_reasoning_mtok",
  completion_audio: "output_audio_mtok",
  completion_image: "output_image_mtok"
}
const fieldNames = Object.keys(lineNames) as ReadonlyArray<keyof PriceFields>

const priceOfLines = ({ prices }: Lines, day: string): Price | undefined => {
  const current = Array.isArray(prices) ? pricesOn(prices, day) : (prices as Prices)
  if (current === undefined) return undefined
  const amounts = fieldNames.flatMap((field) => {
    const amount = current[lineNames[field]]
    return amount === undefined ? [] : [[field, amount] as const]
  })
  const base = Object.fromEntries(
    amounts.map(([field, amount]) => [field, usd(typeof amount === "number" ? amount : amount.base)])
  ) as unknown as Price
  if (base.prompt === undefined || base.completion === undefined) return undefined
  const starts = new Set(
    amounts.flatMap(([, amount]) => (typeof amount === "number" ? [] : amount.tiers.map(({ start }) => start)))
  )
  const long_context = [...starts]
    .toSorted((a, b) => a - b)
    .map((above_prompt_tokens) => ({
      above_prompt_tokens,
      ...Object.fromEntries(
        amounts.flatMap(([field, amount]) => {
          const tier =
            typeof amount === "number" ? undefined : amount.tiers.find(({ start }) => start === above_prompt_tokens)
          return tier === undefined ? [] : [[field, usd(tier.price)]]
        })
      )
    }))
  return withoutNothing({ ...base, long_context: long_context.length === 0 ? undefined : long_context })
}

/** Matches the package's names for charges besides tokens: unrequested searches, calls, seconds. */
const nonTokenCharges = /^(requests_kcount|output_citation_mtok|input_text_messages_kcount|.*_hours)$/
const searches = /(^|[/-])sonar|deep-research|-search(-|$)/

/** Returns whether a vendor bills a call for more than its tokens. Such a model gets no price here. */
const isBilledBeside = (id: string, lines: Lines | undefined): boolean => {
  const names =
    lines === undefined
      ? []
      : Object.keys((Array.isArray(lines.prices) ? lines.prices.at(-1)!.prices : lines.prices) as Prices)
  return searches.test(id) || names.some((name) => nonTokenCharges.test(name))
}

/** Returns the prices in effect on `day`, or `undefined` if they vary with the time of day. */
const pricesOn = (list: Extract<Lines["prices"], ReadonlyArray<unknown>>, day: string): Prices | undefined => {
  if (list.some(({ constraint }) => constraint !== undefined && constraint.start_date === undefined)) return undefined
  return list
    .filter(({ constraint }) => (constraint?.start_date ?? "") <= day)
    .toSorted((a, b) => ((a.constraint?.start_date ?? "") < (b.constraint?.start_date ?? "") ? -1 : 1))
    .at(-1)?.prices
}

/**
 * Merges two prices. If they differ, uses only the first, because it is newer. The second may be an earlier model's price under the same name.
 */
const mergePrices = (one: Price | undefined, other: Price | undefined): Pick<Stored, "price" | "differs"> => {
  if (one === undefined || other === undefined) return withoutNothing({ price: one ?? other })
  const different = fieldNames.filter(
    (field) => one[field] !== undefined && other[field] !== undefined && Number(one[field]) !== Number(other[field])
  )
  if (different.length > 0)
    return { price: one, differs: Object.fromEntries(different.map((field) => [field, other[field]])) }
  return { price: withoutNothing({ ...other, ...one, long_context: other.long_context ?? one.long_context }) }
}

// ---- vendors' additions to prompts -------------------------------------------------------------------------------------

type Added = Pick<Stored, "max_added_tokens" | "max_tool_tokens" | "max_attachment_tokens">

/**
 * The maximum number of tokens that vendors add to a prompt, by model family. The first expression that matches the id applies. The figures come from
 * the vendors' documentation on images and tools. For fields that a family does not set, the configuration's default applies.
 *
 * OpenAI counts an image in tiles (a base, plus up to eight tiles of 512 pixels) or in patches of 32 pixels times a factor, up to 1,536 patches and,
 * for newer models, up to 10,000. Anthropic scales an image down to about 1,600 tokens, or 4,784 for newer models. Google counts 258 tokens for each
 * of up to sixteen tiles.
 */
const families: ReadonlyArray<readonly [id: RegExp, Added]> = [
  [/gpt-oss/, { max_added_tokens: 100, max_tool_tokens: 500 }],
  [/gpt-4o-mini/, { max_tool_tokens: 500, max_attachment_tokens: 2_833 + 8 * 5_667 }],
  [/gpt-[4-9][.\d]*-mini|codex-mini/, { max_tool_tokens: 500, max_attachment_tokens: 2_489 }],
  [/gpt-[4-9][.\d]*-nano/, { max_tool_tokens: 500, max_attachment_tokens: 3_779 }],
  [/o4-mini/, { max_tool_tokens: 500, max_attachment_tokens: 2_642 }],
  [/gpt-4|(^|\/)o[13]/, { max_tool_tokens: 500, max_attachment_tokens: 85 + 8 * 170 }],
  [/gpt-5(\.[0-3])?([-:]|$)/, { max_tool_tokens: 500, max_attachment_tokens: 1_536 }],
  [/gpt-[5-9]/, { max_tool_tokens: 500, max_attachment_tokens: 10_000 }],
  [
    /claude-(?:3|(?:opus|sonnet|haiku)-4(?:$|[@:]|[-.][0-6](?!\d)|-20))/,
    { max_tool_tokens: 1_700, max_attachment_tokens: 1_600 }
  ],
  [/claude/, { max_tool_tokens: 1_700, max_attachment_tokens: 4_784 }],
  [/gemini/, { max_attachment_tokens: 16 * 258 }],
  [/pixtral|(mi|mini|magi)stral/, { max_attachment_tokens: 4_160 }],
  [/qwen/, { max_attachment_tokens: 16_384 }]
]

/** Returns the tokens that vendors add to the model's prompts. Omits the image figure for models that do not read images. */
const addedTo = (id: string, readsImages: boolean): Added => {
  const [, added = {}] = families.find(([name]) => name.test(id.toLowerCase())) ?? []
  return readsImages ? added : { ...added, max_attachment_tokens: undefined }
}

// ---- the document -------------------------------------------------------------------------------------------------------

const limitsFolder = fetched(packages.limits)
const limits = limitsIn(limitsFolder)
const day = dayOf(limitsFolder)
const linesOf = await linesIn(fetched(packages.lines))

/**
 * Returns a model's context size. If a model is cheaper for short prompts, the first package lists that price's limit as the context size. The
 * model's other vendors then determine the context size.
 */
const contextOf = ({ contextWindow, cost, id, maxTokens }: Limits, lines: Lines | undefined): number => {
  const own = Math.max(contextWindow, maxTokens, lines?.context_window ?? 0)
  const longest = cost.tiers?.at(-1)?.inputTokensAbove ?? 0
  if (own > longest + 1) return own
  const elsewhere = limits.filter((other) => other.id.endsWith(`/${id}`)).map((other) => other.contextWindow)
  return Math.max(own, ...elsewhere)
}

const storedOf = (model: Limits, lines: Lines | undefined): Stored =>
  withoutNothing({
    name: model.name,
    context_length: contextOf(model, lines),
    max_output_tokens: model.maxTokens,
    input_modalities: model.input.includes("image") ? (["text", "image"] as const) : undefined,
    limit_field: model.compat?.maxTokensField === "max_tokens" ? ("max_tokens" as const) : undefined,
    ...addedTo(model.id, model.input.includes("image")),
    ...(isBilledBeside(model.id, lines) ? {} : mergePrices(priceOfLimits(model), lines && priceOfLines(lines, day)))
  })

const vendorOf = (vendor: string): Vendor => {
  const own = limits.filter(({ provider }) => provider === vendor)
  const priced = linesOf(vendor).filter(({ deprecated }) => deprecated !== true)
  const models = new Map<string, Stored>()
  for (const model of own) {
    const lines = priced.find(({ id }) => id === model.id) ?? priced.find(({ match }) => isMatch(match, model.id))
    models.set(model.id, storedOf(model, lines))
  }
  if (makers.has(vendor))
    for (const lines of priced) {
      const price = isBilledBeside(lines.id, lines) ? undefined : priceOfLines(lines, day)
      const isName = /^[\w./:-]*[\w]$/.test(lines.id) && !lines.id.startsWith("ft:")
      if (price === undefined || !isName || models.has(lines.id)) continue
      models.set(
        lines.id,
        withoutNothing({
          name: lines.name ?? lines.id,
          context_length: lines.context_window,
          // The model's package does not list input modalities.
          ...addedTo(lines.id, true),
          price
        })
      )
    }
  const hosts = new Set(own.map(({ baseUrl }) => baseUrl.split("/")[2] ?? ""))
  const [host] = hosts
  return {
    ...(hosts.size === 1 && host !== "" && !/[{}]/.test(host!) && { host: host! }),
    models: Object.fromEntries([...models].toSorted(([a], [b]) => (a < b ? -1 : 1)))
  }
}

const catalogue: CatalogueDocument = {
  day,
  sources: Object.values(packages).map(({ licence, name, version }) => ({ package: name, version, licence })),
  vendors: Object.fromEntries(Object.keys(vendors).map((vendor) => [vendor, vendorOf(vendor)]))
}

/** One line per model, so a diff shows which models changed. */
const lines = Object.entries(catalogue.vendors).map(([vendor, { host, models }]) => {
  const rows = Object.entries(models).map(([id, model]) => `${JSON.stringify(id)}:${JSON.stringify(model)}`)
  return `${JSON.stringify(vendor)}:{${host === undefined ? "" : `"host":${JSON.stringify(host)},`}"models":{\n${rows.join(",\n")}}}`
})
const { sources } = catalogue
writeFileSync(
  join(root, "src", "upstream", "catalogue", "catalogue.json"),
  `{"day":${JSON.stringify(day)},"sources":${JSON.stringify(sources)},"vendors":{\n${lines.join(",\n")}}}\n`
)
rmSync(work, { recursive: true, force: true })

const all = Object.values(catalogue.vendors).flatMap(({ models }) => Object.values(models))
const count = (is: (model: Stored) => boolean) => all.filter(is).length
console.log(
  `${all.length} models of ${day}: ${count(({ price }) => price === undefined)} without a price, ` +
    `${count(({ max_output_tokens }) => max_output_tokens === undefined)} without a limit, ` +
    `${count(({ differs }) => differs !== undefined)} with different prices in the packages`
)
