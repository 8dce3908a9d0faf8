/** `tollgate models`: lists the catalogue's models and prices, and compares a configuration with them. */
import { Command, Options } from "@effect/cli"
import { Clock, Console, Effect, Option, Schema } from "effect"
import { open, settingOf } from "../../upstream/catalogue/Catalogue.ts"
import type { Catalogue, KnownModel } from "../../upstream/catalogue/Catalogue.ts"
import type { Price } from "../../upstream/catalogue/Document.ts"
import { linesOf, withoutHour } from "../../calls/prompts/Model.ts"
import type { Model } from "../../calls/prompts/Model.ts"
import { ModelSetting } from "../../calls/engine/Settings.ts"
import { readFile } from "../Config.ts"
import type { ConfigFile } from "../Config.ts"
import { day, parse } from "../../kernel/Moment.ts"
import { toDecimal } from "../../kernel/Price.ts"
import type { UnitPrice } from "../../kernel/Price.ts"
import { unitWords } from "../../books/prices/Lines.ts"
import type { PriceLine } from "../../books/prices/Lines.ts"
import * as CommandLine from "./CommandLine.ts"
import { json, printed } from "./Options.ts"

const config = Options.text("config").pipe(
  Options.withDescription("compare this configuration's models with the catalogue"),
  Options.optional
)
const search = Options.text("search").pipe(
  Options.withDescription("list only models whose id or name contains this string"),
  Options.optional
)

// ---- lines of prices ----------------------------------------------------------------------------------------------------

/** A price line to print, in USD per million tokens or per request. */
interface ShownLine {
  readonly unit: string
  readonly above_prompt_tokens?: number | undefined
  readonly usd: string
}

/** The maximum length of a printed line, in characters. All prices of a model must fit. */
const lineMax = 2_000

const million = 1_000_000n

const shown = ({ above, price, quantity, unit }: PriceLine): ShownLine => ({
  unit: (unitWords[quantity] ?? unit).replace(/ token$/, ""),
  ...(above !== undefined && { above_prompt_tokens: above }),
  usd: toDecimal(quantity === "requests" ? price : ((price * million) as UnitPrice))
})

const linesOfPrice = (price: Price): ReadonlyArray<PriceLine> =>
  linesOf(
    Schema.decodeUnknownSync(ModelSetting)({
      id: "x",
      context_length: 1,
      max_output_tokens: 1,
      price: settingOf(price),
      upstreams: [{ upstream: "x" }]
    })
  )

const nameOf = ({ above_prompt_tokens: above, unit }: ShownLine): string =>
  above === undefined ? unit : `${unit} above ${above} tokens`

const listed = (lines: ReadonlyArray<PriceLine>): string => {
  const tiers = [...new Set(lines.map(({ above }) => above))]
  return tiers
    .map((tier) => {
      const own = lines.filter(({ above }) => above === tier).map(shown)
      const words = own.map(({ unit, usd }) => `${unit} ${usd}`).join(", ")
      return tier === undefined ? words : `above ${tier} tokens ${words}`
    })
    .join("; ")
}

// ---- differences of a configuration -------------------------------------------------------------------------------------------------

/** A price line that differs. The price is null on the side that lacks the line. */
interface Difference extends Omit<ShownLine, "usd"> {
  readonly configured_usd: string | null
  readonly catalogue_usd: string | null
}

interface Configured {
  readonly model: Model
  readonly known: KnownModel | undefined
  readonly differences: ReadonlyArray<Difference>
}

const knownOf = (catalogue: Catalogue, file: ConfigFile, { id, routes }: Model): KnownModel | undefined => {
  for (const { model, upstream } of routes) {
    const known = catalogue.findAt({ name: upstream, base_url: file.upstreams[upstream]!.base_url }, model)
    if (known !== undefined) return known
  }
  return catalogue.find(id)
}

/** Compares token prices. Ignores prices per request, because they are the deployment's own. */
const differencesOf = (own: ReadonlyArray<PriceLine>, known: ReadonlyArray<PriceLine>): ReadonlyArray<Difference> => {
  const tokens = (lines: ReadonlyArray<PriceLine>) =>
    new Map(lines.filter(({ quantity }) => quantity !== "requests").map((line) => [nameOf(shown(line)), shown(line)]))
  const [here, there] = [tokens(own), tokens(known)]
  return [...new Set([...here.keys(), ...there.keys()])].flatMap((name) => {
    const [one, other] = [here.get(name), there.get(name)]
    if (one?.usd === other?.usd) return []
    const { usd: _, ...line } = (one ?? other)!
    return [{ ...line, configured_usd: one?.usd ?? null, catalogue_usd: other?.usd ?? null }]
  })
}

const configuredOf = (catalogue: Catalogue, file: ConfigFile): ReadonlyArray<Configured> =>
  file.models.map((model) => {
    const known = knownOf(catalogue, file, model)
    const differences = known?.price === undefined ? [] : differencesOf(linesOf(model), linesOfPrice(known.price))
    return { model, known, differences }
  })

// ---- for people ---------------------------------------------------------------------------------------------------------

const verdictOf = ({ differences, known }: Configured): string =>
  known === undefined
    ? "not in the catalogue"
    : known.price === undefined
      ? `${known.id}, without a price in the catalogue`
      : differences.length === 0
        ? `same as ${known.id}`
        : `differs from ${known.id}`

const differenceText = (difference: Difference): string => {
  const { catalogue_usd, configured_usd } = difference
  const here = configured_usd === null ? "no line here, so the model's general price applies" : `${configured_usd} here`
  return `  ${nameOf({ ...difference, usd: "" })}: ${here}, ${catalogue_usd ?? "no line"} in the catalogue`
}

const configuredTexts = (configured: ReadonlyArray<Configured>): ReadonlyArray<string> =>
  configured.flatMap((one) => [
    `${one.model.id}: ${verdictOf(one)} (${listed(linesOf(one.model))})`,
    ...one.differences.map(differenceText),
    ...hourText(linesOf(one.model)),
    ...(one.known === undefined ? [] : doubtOf(one.known))
  ])

/** Explains that requests with one-hour cache writes are rejected, and which price lines would allow them. */
const hourText = (lines: ReadonlyArray<PriceLine>): ReadonlyArray<string> => {
  const missing = withoutHour(lines)
  if (missing.length === 0) return []
  const line = `"cache_write_1h_usd_per_million": "…"`
  const tiers = missing.flatMap(({ above }) =>
    above === undefined ? [] : [`{ "above_prompt_tokens": ${above}, ${line} }`]
  )
  const parts = [
    ...(missing.length > tiers.length ? [line] : []),
    ...(tiers.length > 0 ? [`"long_context": [${tiers.join(", ")}]`] : [])
  ]
  return [
    `  One-hour cache writes have no price, so requests that use them are refused. To allow them, add ${parts.join(", ")}`
  ]
}

/** Formats the prices that other sources of the catalogue give, if they differ. */
const doubtOf = ({ differs }: KnownModel): ReadonlyArray<string> =>
  differs === undefined
    ? []
    : [
        `  another source gives: ${Object.entries(differs)
          .map(([name, usd]) => `${name.replaceAll("_", " ")} ${usd}`)
          .join(", ")}`
      ]

const knownRow = ({ context_length, id, max_output_tokens, price }: KnownModel): ReadonlyArray<string> => [
  id,
  `${context_length ?? "?"}`,
  `${max_output_tokens ?? "?"}`,
  price === undefined ? "no price" : listed(linesOfPrice(price))
]

// ---- the command --------------------------------------------------------------------------------------------------------

const matching = (catalogue: Catalogue, text: string): ReadonlyArray<KnownModel> => {
  const query = text.toLowerCase()
  return catalogue.models.filter(({ id, name }) => `${id}\n${name}`.toLowerCase().includes(query))
}

export const command = Command.make("models", { config, json, search }, ({ config, json, search }) =>
  Effect.gen(function* () {
    const catalogue = open()
    const file = Option.isNone(config) ? undefined : yield* readFile(config.value)
    const configured = file === undefined ? undefined : configuredOf(catalogue, file)
    const text = Option.getOrUndefined(search)
    // A comparison lists only the models in the configuration.
    const models = text === undefined && file !== undefined ? undefined : matching(catalogue, text ?? "")
    if (json) return yield* printed(documentOf(catalogue, configured, models))
    const days = Math.floor(((yield* Clock.currentTimeMillis) - parse(catalogue.day)!) / day)
    yield* Console.log(`USD per million tokens. The catalogue is from ${catalogue.day}, ${days} days old.`)
    for (const line of configured === undefined ? [] : configuredTexts(configured))
      yield* Console.log(CommandLine.printable(line, lineMax))
    if (models === undefined) return
    if (models.length === 0)
      return yield* Console.log(`no model in the catalogue has ${JSON.stringify(text)} in its id or name`)
    yield* Console.log(CommandLine.table([["model", "context", "answer", "price"], ...models.map(knownRow)]))
  })
).pipe(Command.withDescription("List known models with their prices, and show where a configuration's prices differ"))

const documentOf = (
  { day, sources }: Catalogue,
  configured: ReadonlyArray<Configured> | undefined,
  models: ReadonlyArray<KnownModel> | undefined
) => ({
  catalogue: { day, sources },
  ...(configured !== undefined && {
    configured: configured.map(({ differences, known, model }) => ({
      id: model.id,
      catalogue: known?.id ?? null,
      lines: linesOf(model).map(shown),
      differences,
      without_cache_write_1h: withoutHour(linesOf(model)).map(shown)
    }))
  }),
  ...(models !== undefined && {
    models: models.map(({ differs, host: _host, model: _model, price, vendor: _vendor, ...known }) => ({
      ...known,
      lines: price === undefined ? null : linesOfPrice(price).map(shown),
      ...(differs !== undefined && { differs })
    }))
  })
})
