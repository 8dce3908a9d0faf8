/** Each protocol of clients over each protocol of upstreams: answers, streams, tools, failures and charges are what the vendor says. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { all, eventsIn } from "../../support/Protocols.ts"
import { freePort, freshFolder, start } from "../../support/Service.ts"
import type { Person, Service } from "../../support/Service.ts"
import { baseOf, eventsOf, failureOf, modelOf, streamOf, vendorNames } from "../../support/Vendors.ts"
import type { VendorName } from "../../support/Vendors.ts"

let world: Service
let service: Service

const names = vendorNames
let origin: string

beforeAll(async () => {
  world = await start()
  const { control, issuer } = await world.sandbox()
  origin = control.replace("/control", "")
  const model = (id: string, upstreams: ReadonlyArray<VendorName>) => ({
    id,
    context_length: 100_000,
    max_output_tokens: 2_000,
    price: { prompt_usd_per_million: "3", completion_usd_per_million: "15" },
    upstreams: upstreams.map((upstream) => ({ upstream, model: modelOf(upstream) }))
  })
  const file = join(freshFolder(), "tollgate.json")
  writeFileSync(
    file,
    JSON.stringify({
      clients: [{ client_id: "console", name: "Console" }],
      identity: { google: { issuer, audiences: ["sandbox-google"] } },
      registration: { open: true },
      prices: { default_new_credits: 6, default_registration_credits: 0 },
      rate_limits: { sign_in: 1_000 },
      upstreams: Object.fromEntries(
        names.map((name) => [name, { base_url: origin + baseOf(name), api_key: "k", speaks: [name] }])
      ),
      models: [
        ...names.map((name) => model(name, [name])),
        { ...model("boundless", ["chat"]), limit_field: "none" },
        ...names.flatMap((one) => names.map((other) => model(`${one}-${other}`, [one, other])))
      ]
    })
  )
  service = await start({ port: await freePort(), args: ["--config", file] })
})
afterAll(() => Promise.all([service?.discard(), world?.discard()]))

let people = 0
const person = async (): Promise<{ readonly who: Person; readonly key: string }> => {
  const { issuer } = await world.sandbox()
  const who = await service.signIn(`translated${people++}@example.com`, {}, { client_id: "console", issuer })
  return { who, key: await service.key(who) }
}

/** The finish event of each protocol. A stream that is cut after it is whole. */
const finishing = /"finish_reason":\s*"|"finishReason"|"message_delta"|messageStop|"response\.completed"/

const last = async (who: Person) => (await service.usage(who))[0]
const fault = (vendor: string, more: object) => world.control("/faults", { service: vendor, times: 1, ...more })

describe.each(all)(
  "a client of $name",
  ({ ask, callsOf, last: lastType, name, path, refusalOf, textIn, textOf, tool, usageOf }) => {
    const call = (key: string, json: unknown) => service.call(path, { token: key, json })
    const isWhole = (body: string) =>
      lastType === undefined ? body.endsWith("data: [DONE]\n\n") : eventsIn(body).at(-1)!.type === lastType

    describe.each(names)("over an upstream of %s", (vendor) => {
      it("has its answer, and pays what the vendor counts", async () => {
        const { key, who } = await person()
        const { body, headers, status } = await call(key, ask("one two three", { model: vendor }))
        expect([status, textOf(body)]).toEqual([200, "one two three"])
        expect(usageOf(body)).toEqual({ prompt: 3, completion: 3 })
        expect(Number(headers.get("x-charge-usd"))).toBe(0.000054)
        expect(await last(who)).toMatchObject({
          endpoint: name === "chat" ? "chat/completions" : name,
          provider: vendor,
          prompt_tokens: 3,
          completion_tokens: 3,
          cost: 0.000054
        })
        const [received] = await world.control(`/calls?service=${vendor}&limit=1`)
        const named =
          vendor === "google" || vendor === "bedrock" ? decodeURIComponent(received.path) : received.body.model
        expect(named).toContain(modelOf(vendor))
      })

      it("has its stream, whose end comes after the charge", async () => {
        const { key, who } = await person()
        const { body, headers } = await call(key, ask("alpha beta gamma", { model: vendor, stream: true }))
        expect(headers.get("content-type")).toBe("text/event-stream")
        expect([textIn(eventsIn(body)), isWhole(body)]).toEqual(["alpha beta gamma", true])
        expect(await last(who)).toMatchObject({ success: true, prompt_tokens: 3, completion_tokens: 3, cost: 0.000054 })
      })

      it("is told of a stream that is cut at any event, and pays what was reported", async () => {
        const { key, who } = await person()
        const asked = ask("alpha beta", { model: vendor, stream: true })
        const events = await eventsOf(origin, vendor, "alpha beta")
        const finish = events.findIndex((event) => finishing.test(event.toString()))
        for (let cut = 1; cut <= finish; cut++) {
          await fault(vendor, streamOf(vendor, events.slice(0, cut), { drop: true }))
          const { body } = await call(key, asked)
          expect([cut, "alpha beta".startsWith(textIn(eventsIn(body)))]).toEqual([cut, true])
          const record = await last(who)
          expect([cut, record.success, record.error_type]).toEqual([cut, false, "upstream_error"])
          expect([cut, record.cost]).toEqual([
            cut,
            Number((record.prompt_tokens * 3e-6 + record.completion_tokens * 15e-6).toFixed(9))
          ])
          const error = eventsIn(body).find((event) => event.error?.code === "upstream_error")
          expect([cut, error?.error.message]).toEqual([cut, "the model's stream ended early"])
        }
        // A vendor of messages reports the prompt before the answer. No other vendor reports before the end.
        const [record] = await service.usage(who)
        expect(record.prompt_tokens).toBe(vendor === "messages" ? 2 : 0)
      })

      it("is told of an error midway, in our words", async () => {
        const { key, who } = await person()
        const events = await eventsOf(origin, vendor, "alpha beta")
        await fault(vendor, streamOf(vendor, [...events.slice(0, 2), failureOf(vendor), ...events.slice(2)]))
        const { body } = await call(key, ask("alpha beta", { model: vendor, stream: true }))
        expect(body).not.toContain("secret")
        const error = eventsIn(body).find((event) => event.error?.code === "upstream_error")
        expect(error?.error.message).toBe("the model's stream ended early")
        expect(await last(who)).toMatchObject({ success: false, error_type: "upstream_error" })
      })

      it("hears of a refusal in its own shape, and of a failure without its words", async () => {
        const { key } = await person()
        await fault(vendor, { status: 400, body: { error: { message: "no such thing" } } })
        const refused = await call(key, ask("hi", { model: vendor }))
        expect([refused.status, refusalOf(refused.body)]).toEqual([
          400,
          { message: "no such thing", code: "upstream_rejected" }
        ])
        await fault(vendor, { status: 500, body: { error: { message: "secret" } } })
        const failed = await call(key, ask("hi", { model: vendor }))
        expect([failed.status, refusalOf(failed.body).code]).toEqual([500, "upstream_error"])
      })

      it("has tools called, several at once", async () => {
        // The sandbox's chat calls none.
        if (vendor === "chat") return
        const { key } = await person()
        const text = 'both\ncall look {"at":"a"}\ncall look {"at":"b"}'
        const { body, status } = await call(key, ask(text, { model: vendor, ...tool("look") }))
        expect(status).toBe(200)
        expect(callsOf(body)).toEqual([
          { name: "look", input: { at: "a" } },
          { name: "look", input: { at: "b" } }
        ])
        const streamed = await call(key, ask(text, { model: vendor, stream: true, ...tool("look") }))
        expect(isWhole(streamed.body)).toBe(true)
      })

      it.each(names)("fails over to one of %s", async (other) => {
        const { key, who } = await person()
        for (const stream of [false, true]) {
          await fault(vendor, { status: 503, body: {} })
          const { body, status } = await call(key, ask("one two", { model: `${vendor}-${other}`, stream }))
          expect(status).toBe(200)
          expect(stream ? textIn(eventsIn(body)) : textOf(body)).toBe("one two")
          expect(await last(who)).toMatchObject({
            provider: other,
            success: true,
            prompt_tokens: 2,
            completion_tokens: 2
          })
        }
      })

      it.each(names)("fails over to one of %s from a stream that fails at once, and pays that alone", async (other) => {
        const { key, who } = await person()
        const whole = await eventsOf(origin, vendor, "one two")
        for (const events of [[failureOf(vendor), ...whole], [], [whole[0]!.subarray(0, 5)]]) {
          await fault(vendor, streamOf(vendor, events))
          const { body, status } = await call(key, ask("one two", { model: `${vendor}-${other}`, stream: true }))
          expect([status, textIn(eventsIn(body)), isWhole(body)]).toEqual([200, "one two", true])
          expect(await last(who)).toMatchObject({ provider: other, success: true, cost: 0.000036 })
        }
        expect(await service.usage(who)).toHaveLength(3)
      })

      it("stays with a stream of which its client has something", async () => {
        if (vendor !== name) return
        const { key, who } = await person()
        const [first] = await eventsOf(origin, vendor, "one two")
        await fault(vendor, streamOf(vendor, [first!, failureOf(vendor)]))
        const asked = ask("one two", { model: `${vendor}-${vendor === "chat" ? "messages" : "chat"}`, stream: true })
        const { body } = await call(key, asked)
        expect(eventsIn(body).at(-1)!.error.message).toBe("the model's stream ended early")
        expect(await last(who)).toMatchObject({ provider: vendor, success: false, error_type: "upstream_error" })
      })
    })
  }
)

describe("a stream that fails at once", () => {
  const json = { model: "responses-chat", max_output_tokens: 50, input: "one two", stream: true }

  it("is charged what it reports, and then nobody else is asked", async () => {
    const { key, who } = await person()
    const usage = { input_tokens: 7, output_tokens: 1, total_tokens: 8 }
    const failed = { type: "response.failed", response: { status: "failed", usage } }
    const event = Buffer.from(`event: response.failed\ndata: ${JSON.stringify(failed)}\n\n`)
    await fault("responses", streamOf("responses", [event]))
    const { body, status } = await service.call("/v1/responses", { token: key, json })
    expect([status, eventsIn(body).at(-1)!.error.message]).toEqual([200, "the model's stream ended early"])
    expect(await last(who)).toMatchObject({ provider: "responses", success: false, cost: 0.000036 })
  })

  it("is an error of the stream where no other upstream is left", async () => {
    const { key, who } = await person()
    for (const vendor of ["responses", "chat"] as const) await fault(vendor, streamOf(vendor, [failureOf(vendor)]))
    const { body, status } = await service.call("/v1/responses", { token: key, json })
    expect([status, eventsIn(body).map(({ type }) => type)]).toEqual([200, ["error"]])
    expect(await last(who)).toMatchObject({ provider: "chat", success: false, cost: 0, error_type: "upstream_error" })
  })
})

describe("an answer of Gemini that comes to nothing", () => {
  it.each(["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"])(
    "with %s is charged what it reports, and no other upstream is asked",
    async (finishReason) => {
      const { key, who } = await person()
      const usageMetadata = { promptTokenCount: 7, candidatesTokenCount: 1, thoughtsTokenCount: 2, totalTokenCount: 10 }
      await fault("google", { body: { candidates: [{ content: {}, finishReason, index: 0 }], usageMetadata } })
      const asked = { model: "google-chat", max_tokens: 50, messages: [{ role: "user", content: "one two" }] }
      const { body, status } = await service.call("/v1/chat/completions", { token: key, json: asked })
      expect([status, body.code]).toEqual([500, "upstream_error"])
      const records = await service.usage(who)
      expect(records).toHaveLength(1)
      // 7 × 3 + 3 × 15 USD a million.
      expect(records[0]).toMatchObject({ provider: "google", success: false, cost: 0.000066 })
    }
  )
})

describe("a request that one upstream cannot carry", () => {
  it("goes to one that can, and is refused by the field where none can", async () => {
    const { key, who } = await person()
    const audio = (model: string) => ({
      model,
      messages: [{ role: "user", content: [{ type: "input_audio", input_audio: { data: "AAAA", format: "wav" } }] }],
      max_tokens: 5
    })
    const refused = await service.call("/v1/chat/completions", { token: key, json: audio("messages") })
    expect([refused.status, refused.body.code]).toEqual([400, "invalid_request"])
    expect(refused.body.details.field).toMatch(/^messages\.0\.content/)
    expect(await service.usage(who)).toEqual([])
    const carried = await service.call("/v1/chat/completions", { token: key, json: audio("messages-chat") })
    expect(carried.status).toBe(200)
    expect(await last(who)).toMatchObject({ provider: "chat" })
  })

  it("such as an answer of fewer than 16 tokens by responses, goes to another", async () => {
    const { key, who } = await person()
    const ask = (model: string, max_tokens = 15) =>
      service.call("/v1/messages", {
        token: key,
        json: { model, max_tokens, messages: [{ role: "user", content: "hi" }] }
      })
    const refused = await ask("responses")
    expect([refused.status, refused.body.error.message]).toEqual([
      400,
      "max_tokens: the upstream of this model requires a limit of at least 16"
    ])
    expect(await service.usage(who)).toEqual([])
    expect((await ask("responses", 16)).status).toBe(200)
    expect((await ask("responses-chat")).status).toBe(200)
    expect(await last(who)).toMatchObject({ provider: "chat" })
    // As it came, the vendor itself says so.
    const json = { model: "responses", max_output_tokens: 15, input: "hi" }
    const { body, status } = await service.call("/v1/responses", { token: key, json })
    expect([status, body.error.message]).toEqual([400, expect.stringContaining("Expected a value >= 16")])
  })

  it("has no limit for an upstream that takes none", async () => {
    const { key } = await person()
    const json = { model: "boundless", max_tokens: 5, messages: [{ role: "user", content: "hello" }] }
    expect((await service.call("/v1/messages", { token: key, json })).status).toBe(200)
    const [{ body: sent }] = await world.control("/calls?service=chat&limit=1")
    expect(Object.keys(sent).toSorted()).toEqual(["messages", "model"])
  })

  it("is one for text completions, which are not translated", async () => {
    const { key } = await person()
    const { body, status } = await service.call("/v1/completions", {
      token: key,
      json: { model: "messages", prompt: "x" }
    })
    expect([status, body.details.field]).toEqual([400, "model"])
  })

  it("counts tokens as far as bytes tell, where no upstream counts", async () => {
    const { key } = await person()
    const json = { model: "chat", messages: [{ role: "user", content: "hello there" }] }
    const { body } = await service.call("/v1/messages/count_tokens", { token: key, json })
    expect(body).toEqual({ input_tokens: Math.ceil(JSON.stringify(json).length / 4) })
  })
})

describe("thoughts that another vendor signed", () => {
  it("do not go to a vendor that would refuse them, whichever came before", async () => {
    const { key } = await person()
    const history = [
      { role: "user", content: "hi" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "a thought", signature: "google:c2ln" },
          { type: "text", text: "hello" }
        ]
      },
      { role: "user", content: "one two" }
    ]
    for (const stream of [false, true]) {
      const json = { model: "messages", max_tokens: 50, messages: history, stream, metadata: { user_id: "u" } }
      const { body, status } = await service.call("/v1/messages", { token: key, json })
      expect([status, stream ? eventsIn(body).at(-1)!.type : body.content[0].text]).toEqual([
        200,
        stream ? "message_stop" : "one two"
      ])
      const [{ body: sent }] = await world.control("/calls?service=messages&limit=1")
      expect(sent.messages[1].content).toEqual([{ type: "text", text: "hello" }])
      expect(sent.metadata).toEqual({ user_id: "u" })
    }
    const own = [history[0], { role: "assistant", content: [{ type: "thinking", thinking: "x", signature: "c2ln" }] }]
    await service.call("/v1/messages", {
      token: key,
      json: { model: "messages", max_tokens: 50, messages: [...own, history[2]], unknown: 1 }
    })
    const [{ body: untouched }] = await world.control("/calls?service=messages&limit=1")
    expect(untouched).toMatchObject({ messages: [...own, history[2]], unknown: 1 })
  })

  it("nor in responses", async () => {
    const { key } = await person()
    const input = [
      { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "anthropic:c2ln" },
      { role: "user", content: "one two" }
    ]
    const json = { model: "responses", max_output_tokens: 50, input }
    const { body, status } = await service.call("/v1/responses", { token: key, json })
    expect([status, body.output.at(-1).content[0].text]).toEqual([200, "one two"])
    const [{ body: sent }] = await world.control("/calls?service=responses&limit=1")
    expect(JSON.stringify(sent)).not.toContain("c2ln")
  })
})
