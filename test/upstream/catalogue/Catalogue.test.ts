/** The catalogue of models: what it holds, entries of a configuration that name a model of it, and the command that compares. */
import { Either } from "effect"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { open, settingOf } from "../../../src/upstream/catalogue/Catalogue.ts"
import type { KnownModel } from "../../../src/upstream/catalogue/Catalogue.ts"
import { linesOf } from "../../../src/calls/prompts/Model.ts"
import { decodeFile } from "../../../src/app/Config.ts"
import { commandHere } from "../../support/CommandLine.ts"
import { freshFolder } from "../../support/Service.ts"

const catalogue = open()
const isWhole = ({ context_length, max_output_tokens, price }: KnownModel) =>
  price !== undefined && context_length !== undefined && max_output_tokens !== undefined
/** One of OpenAI that has all, a line for the cache too; what it costs is for the catalogue to say. */
const whole = catalogue.models.find(
  (model) => model.vendor === "openai" && isWhole(model) && model.price?.cached_prompt
)!
/** One with other prices for longer prompts, of which writes to a cache are one, but none for an hour. */
const tiered = catalogue.models.find(
  ({ price }) => price?.long_context?.[0]?.cache_write !== undefined && price.cache_write_1h === undefined
)!
const unlimited = catalogue.models.find(
  ({ max_output_tokens, price }) => price !== undefined && max_output_tokens === undefined
)!
const unpriced = catalogue.models.find(({ price }) => price === undefined)!

const upstream = { base_url: "https://api.example.com/v1", api_key: "k" }
const openai = { base_url: "https://api.openai.com/v1", api_key: "k" }
const decoded = (models: ReadonlyArray<object>, upstreams: object = { openai }) =>
  decodeFile({ upstreams, models }, "the file")
const modelOf = (...asked: Parameters<typeof decoded>) => Either.getOrThrow(decoded(...asked)).models[0]!
const refusalOf = (...asked: Parameters<typeof decoded>) =>
  Either.match(decoded(...asked), { onLeft: ({ message }) => message, onRight: () => "taken" })

const folder = freshFolder()
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe("the catalogue", () => {
  it("has models of each vendor once, at prices that the configuration takes", () => {
    expect(catalogue.models.length).toBeGreaterThan(1_000)
    expect(new Set(catalogue.models.map(({ id }) => id)).size).toBe(catalogue.models.length)
    expect(catalogue.day).toMatch(/^\d{4}-\d\d-\d\d$/)
    const entries = catalogue.models.flatMap(({ context_length = 1, id, max_output_tokens = 1, price }) =>
      price === undefined
        ? []
        : [{ id, context_length, max_output_tokens, price: settingOf(price), upstreams: [{ upstream: "openai" }] }]
    )
    expect(refusalOf(entries)).toBe("taken")
  })

  it("has no price of nothing", () => {
    const isLess = (usd: string | undefined) => usd !== undefined && !(Number(usd) > 0)
    const wrong = catalogue.models.filter(
      ({ price }) => price !== undefined && (isLess(price.prompt) || isLess(price.completion))
    )
    expect(wrong.map(({ id }) => id)).toEqual([])
  })
})

describe("an entry that names a model of the catalogue", () => {
  it("is a whole entry, asked of the upstream with the vendor's name or host", () => {
    for (const name of ["openai", "another name"]) {
      const model = modelOf([{ catalogue: whole.id }], { [name]: openai, spare: upstream })
      expect(model).toMatchObject({
        id: whole.id,
        name: whole.name,
        owned_by: "openai",
        context_length: whole.context_length,
        output_tokens_max: whole.max_output_tokens,
        routes: [{ upstream: name, model: whole.model }]
      })
      const [prompt, completion] = linesOf(model)
      expect([prompt!.price, completion!.price]).toEqual(
        [whole.price!.prompt, whole.price!.completion].map((usd) => BigInt(Math.round(Number(usd) * 1e12)))
      )
      expect(linesOf(model).some(({ quantity }) => quantity === "cached_tokens")).toBe(true)
    }
    expect(modelOf([{ catalogue: whole.id }], { openai: upstream }).routes[0]?.upstream).toBe("openai")
  })

  it("says beside what is to be otherwise", () => {
    const price = { prompt_usd_per_million: "7", completion_usd_per_million: "8" }
    const upstreams = [{ upstream: "spare" }, { upstream: "openai", model: "renamed" }]
    const model = modelOf([{ catalogue: whole.id, id: "mine", context_length: 5, price, upstreams }], {
      openai,
      spare: upstream
    })
    expect(model).toMatchObject({
      id: "mine",
      name: whole.name,
      context_length: 5,
      prompt_price: 7_000_000_000_000n,
      detail_prices: undefined,
      routes: [
        { upstream: "spare", model: whole.model },
        { upstream: "openai", model: "renamed" }
      ]
    })
  })

  it("adds the lines of a price beside that says not what tokens cost", () => {
    const upstreams = [{ upstream: "spare" }]
    const entry = (price: object) => modelOf([{ catalogue: tiered.id, upstreams, price }], { spare: upstream })
    const { long_context, ...prices } = settingOf(tiered.price!)
    const tiers = long_context!
    const above = tiers[0]!.above_prompt_tokens
    const added = entry({
      cache_write_1h_usd_per_million: "77",
      usd_per_request: "0.5",
      long_context: [
        { above_prompt_tokens: above, cache_write_1h_usd_per_million: "88" },
        { above_prompt_tokens: 7, prompt_usd_per_million: "99" }
      ]
    })
    const written = modelOf(
      [
        {
          catalogue: tiered.id,
          upstreams,
          price: {
            ...prices,
            cache_write_1h_usd_per_million: "77",
            usd_per_request: "0.5",
            long_context: [
              { above_prompt_tokens: 7, prompt_usd_per_million: "99" },
              { ...tiers[0], cache_write_1h_usd_per_million: "88" },
              ...tiers.slice(1)
            ]
          }
        }
      ],
      { spare: upstream }
    )
    expect(linesOf(added)).toEqual(linesOf(written))
    expect(linesOf(entry({}))).toEqual(linesOf(entry({ ...prices, long_context: tiers })))
    expect(refusalOf([{ catalogue: whole.id, price: { completion_usd_per_million: "1" } }])).toContain(
      "models.0.price.prompt_usd_per_million"
    )
    expect(refusalOf([{ catalogue: whole.id, price: { long_context: [7] } }])).toContain("models.0.price.long_context")
  })

  it("is refused where nobody knows which model or upstream is meant", () => {
    expect(refusalOf([{ catalogue: whole.id.replace("openai/", "openai/x") }])).toContain(
      `models.0.catalogue: the catalogue of ${catalogue.day} does not contain this model: similar ids are `
    )
    expect(refusalOf([{ catalogue: "zzzz" }])).toContain(`"tollgate models" lists them`)
    expect(refusalOf([{ catalogue: 7 }])).toContain("the id of a model")
    expect(refusalOf([{ catalogue: whole.id }], { spare: upstream })).toContain(
      "no upstream has the name openai or the host api.openai.com"
    )
    expect(refusalOf([{ catalogue: whole.id }], { one: openai, other: openai })).toContain("several upstreams have")
    expect(refusalOf([{ catalogue: whole.id, upstreams: [{ upstream: "nobody" }] }])).toContain(
      "models.0.upstreams.0.upstream: there is no upstream nobody"
    )
    expect(refusalOf([{ catalogue: whole.id, surplus: 1 }])).toContain("models.0.surplus")
  })

  it("is refused without a price or a limit, unless it says it", () => {
    const upstreams = [{ upstream: "openai" }]
    const price = { prompt_usd_per_million: "1", completion_usd_per_million: "2" }
    const limits = { context_length: 1_000, max_output_tokens: 100 }
    expect(refusalOf([{ catalogue: unlimited.id, upstreams }])).toContain(
      `models.0.catalogue: the catalogue states no max_output_tokens for ${unlimited.id}: add it to this entry`
    )
    expect(refusalOf([{ catalogue: unpriced.id, upstreams }])).toContain(
      `the catalogue states no price for ${unpriced.id}`
    )
    expect(refusalOf([{ catalogue: unlimited.id, upstreams, ...limits }])).toBe("taken")
    expect(refusalOf([{ catalogue: unpriced.id, upstreams, ...limits, price }])).toBe("taken")
  })
})

describe("tollgate models", () => {
  const models = async (...args: ReadonlyArray<string>) => {
    const { code, stderr, stdout } = await commandHere(["models", ...args], { DATA_DIR: folder })
    expect([code, stderr]).toEqual([0, ""])
    return stdout
  }
  const { price } = whole
  const written = (entries: ReadonlyArray<object>) => {
    const file = join(folder, "tollgate.json")
    writeFileSync(file, JSON.stringify({ upstreams: { openai, spare: upstream }, models: entries }))
    return file
  }
  const entry = (id: string, more: object) => ({ id, context_length: 10, max_output_tokens: 5, ...more })
  const file = written([
    { catalogue: whole.id, id: "same" },
    entry("outdated", {
      price: { ...settingOf(price!), prompt_usd_per_million: "999", cached_prompt_usd_per_million: undefined },
      upstreams: [{ upstream: "openai", model: whole.model }]
    }),
    entry("own", {
      price: { prompt_usd_per_million: "1", completion_usd_per_million: "2", usd_per_request: "0.5" },
      upstreams: [{ upstream: "spare" }]
    })
  ])

  it("lists what is known, and finds it by a part of id or name", async () => {
    const all = await models()
    expect(all).toContain(`The catalogue is from ${catalogue.day}`)
    expect(all.split("\n").length).toBeGreaterThan(catalogue.models.length)
    const found = await models("--search", whole.id.toUpperCase())
    expect(found).toMatch(new RegExp(`^${whole.id.replaceAll(".", "\\.")} +${whole.context_length} `, "m"))
    expect(found).toContain(
      `prompt ${price!.prompt}, completion ${price!.completion}, cached prompt ${price!.cached_prompt}`
    )
    expect(await models("--search", unpriced.id)).toContain("no price")
    expect(await models("--search", "no such thing")).toContain("no model in the catalogue has")
  })

  it("says where the prices of a configuration are others", async () => {
    const text = await models("--config", file)
    expect(text).toContain(`same: same as ${whole.id} (prompt ${price!.prompt}, `)
    expect(text).toContain(`outdated: differs from ${whole.id} (prompt 999, `)
    expect(text).toContain(`  prompt: 999 here, ${price!.prompt} in the catalogue`)
    expect(text).toContain(
      `  cached prompt: no line here, so the model's general price applies, ${price!.cached_prompt} in`
    )
    expect(text).toContain("own: not in the catalogue (prompt 1, completion 2, request 0.5)")
    expect(text).not.toContain("context")
    expect(text).not.toContain("one-hour")
    expect(await models("--config", file, "--search", whole.id)).toContain("context")
  })

  it("says the same in JSON", async () => {
    const document = JSON.parse(await models("--config", file, "--search", whole.id, "--json"))
    expect(document.catalogue).toMatchObject({ day: catalogue.day })
    expect(document.configured.map((one: Record<string, unknown>) => [one.id, one.catalogue])).toEqual([
      ["same", whole.id],
      ["outdated", whole.id],
      ["own", null]
    ])
    expect(document.configured[1].differences).toEqual([
      { unit: "prompt", configured_usd: "999", catalogue_usd: price!.prompt },
      { unit: "cached prompt", configured_usd: null, catalogue_usd: price!.cached_prompt }
    ])
    expect(document.models[0]).toMatchObject({ id: whole.id, context_length: whole.context_length })
    expect(document.models[0].lines[0]).toEqual({ unit: "prompt", usd: price!.prompt })
  })

  it("says which price a cache of an hour lacks, and what its price needs", async () => {
    const [{ above_prompt_tokens: above }] = tiered.price!.long_context as [{ above_prompt_tokens: number }]
    const line = (usd: string) => `"cache_write_1h_usd_per_million": "${usd}"`
    const of = (price?: object) => {
      const entry = { catalogue: tiered.id, id: "cached", upstreams: [{ upstream: "spare" }], ...(price && { price }) }
      const file = join(folder, "hour.json")
      writeFileSync(file, JSON.stringify({ upstreams: { spare: upstream }, models: [entry] }))
      return models("--config", file)
    }
    const refused = "One-hour cache writes have no price, so requests that use them are refused. To allow them, add "
    const tier = `"long_context": [{ "above_prompt_tokens": ${above}, ${line("…")} }]`
    expect(await of()).toContain(`${refused}${line("…")}, ${tier}\n`)
    expect(await of(JSON.parse(`{ ${line("7")} }`))).toContain(`${refused}${tier}\n`)
    expect(await of(JSON.parse(`{ ${line("7")}, ${tier.replace("…", "8")} }`))).not.toContain("one-hour")
  })

  it("refuses a configuration that does not fit", async () => {
    const wrong = written([{ catalogue: "openai/none" }])
    const { code, stderr } = await commandHere(["models", "--config", wrong], { DATA_DIR: folder })
    expect([code, stderr]).toEqual([1, expect.stringContaining("models.0.catalogue")])
  })
})
