/** Other names of models, and wildcards of the catalogue. */
import { Either } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { decodeFile } from "../../src/app/Config.ts"
import { modelOf, Routed } from "../support/Routed.ts"

let routed: Routed
beforeAll(async () => {
  routed = await Routed.start(
    { a: {}, b: {} },
    {
      models: [
        { catalogue: "openai/gpt-4.1*", upstreams: [{ upstream: "a" }] },
        { catalogue: "openai/gpt-4.1-mini", name: "Ours", upstreams: [{ upstream: "b" }] },
        modelOf("plain", ["b"])
      ],
      aliases: { fast: "openai/gpt-4.1-nano", upstream: "plain" },
      auto: "plain"
    }
  )
})
afterAll(() => routed?.stop())

interface Row {
  readonly id: string
  readonly name: string
}
const rows = async (token = routed.key): Promise<ReadonlyArray<Row>> =>
  (await routed.service.call("/v1/models", { token })).body.data

describe("an alias", () => {
  it("is in the model list beside its model, with the same price", async () => {
    const { body } = await routed.service.call("/v1/models/fast", { token: routed.key })
    const model = await routed.service.call("/v1/models/openai/gpt-4.1-nano", { token: routed.key })
    expect(body).toEqual({ ...model.body, id: "fast" })
    expect((await rows()).map(({ id }) => id)).toEqual(expect.arrayContaining(["auto", "fast", "plain", "upstream"]))
  })

  it("is called as its model, which the record names", async () => {
    expect((await routed.chat("fast")).status).toBe(200)
    expect(routed.vendors.asked.at(-1)?.body.model).toBe("gpt-4.1-nano")
    expect((await routed.service.usage(routed.who))[0]).toMatchObject({ model: "openai/gpt-4.1-nano", provider: "a" })
  })

  it("is open to a key that may call its model, and closed to others", async () => {
    const { service, who } = routed
    const made = await service.call(`/v1/tenants/${who.tenant_id}/applications`, {
      token: who.token,
      json: { name: "narrow", description: "", allowed_models: ["openai/gpt-4.1-nano"] }
    })
    const narrow = made.body.result.api_key
    expect((await rows(narrow)).map(({ id }) => id).toSorted()).toEqual(["fast", "openai/gpt-4.1-nano"])
    expect((await routed.chat("fast", {}, narrow)).status).toBe(200)
    expect((await routed.chat("upstream", {}, narrow)).body.code).toBe("model_not_allowed")
  })
})

describe("a wildcard", () => {
  it("stands for the models of the catalogue whose ids begin so; an entry of one model goes before it", async () => {
    const found = (await rows()).filter(({ id }) => id.startsWith("openai/"))
    expect(found.map(({ id }) => id).toSorted()).toEqual([
      "openai/gpt-4.1",
      "openai/gpt-4.1-mini",
      "openai/gpt-4.1-nano"
    ])
    expect(found.find(({ id }) => id === "openai/gpt-4.1-mini")?.name).toBe("Ours")
    await routed.chat("openai/gpt-4.1-mini")
    expect(routed.vendors.order.at(-1)).toBe("b")
    await routed.chat("openai/gpt-4.1")
    expect(routed.vendors.order.at(-1)).toBe("a")
  })
})

describe("a wrong configuration", () => {
  const upstreams = {
    a: { base_url: "https://a.example.com/v1", api_key: "k" },
    b: { base_url: "https://b.example.com" }
  }
  const wrong = (file: object): string => {
    const read = decodeFile({ upstreams, ...file }, "the file")
    return Either.isLeft(read) ? read.left.message : ""
  }

  it.each([
    [{ models: [modelOf("m", ["a"])], aliases: { fast: "x" } }, "aliases.fast: there is no model x"],
    [{ models: [modelOf("m", ["a"])], aliases: { m: "m" } }, "aliases.m: m is already in use"],
    [{ models: [modelOf("m", ["a"])], aliases: { auto: "m" } }, "aliases.auto: auto is already in use"],
    [{ models: [modelOf("m", ["a"], { fallbacks: ["x"] })] }, "models.0.fallbacks.0: there is no model x"],
    [{ models: [modelOf("m", ["a"], { fallbacks: ["m"] })] }, "models.0.fallbacks.0: must be a different model"],
    [{ models: [modelOf("m", ["a"], { retries: 0 })] }, "models.0.retries: must be a whole number from 1 to 10"],
    [
      { models: [modelOf("m", ["a"], { routing: "luck" })] },
      "models.0.routing: must be one of order, weights, cost, latency"
    ],
    [
      { models: [modelOf("m", ["a"], { routing: "cost" })] },
      "models.0.upstreams.0.cost: must be set for routing by cost"
    ],
    [
      { models: [modelOf("m", [{ upstream: "a", weight: 1 }])] },
      'models.0.upstreams.0.weight: must be omitted unless "routing" is "weights"'
    ],
    [{ models: [{ catalogue: "openia/*" }] }, "models.0.catalogue: the catalogue contains no model openia/*"],
    [
      {
        models: [{ catalogue: "openai/gpt-4.1", upstreams: [{ upstream: "a" }] }, { catalogue: "openai/gpt-4.1*" }]
      },
      "models.1.catalogue: no upstream has the name openai"
    ],
    [
      { models: [{ catalogue: "openai/*", id: "x" }] },
      "models.0.id: must be absent if the entry stands for several models"
    ]
  ])("is refused with its place: %j", (file, message) => {
    expect(wrong(file)).toContain(message)
  })
})
