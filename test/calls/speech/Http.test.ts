/** What the speech routes refuse, and an upstream that sends nothing. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { start } from "../../support/Service.ts"
import type { Person, Service } from "../../support/Service.ts"

let service: Service
let who: Person
beforeAll(async () => {
  service = await start()
  who = await service.signIn("speaks@example.com")
})
afterAll(() => service.discard())

const speak = (more: object, path = "/v1/speech", headers = {}) =>
  service.call(path, { token: who.token, headers, json: { input: "hello", model: "tts-1", voice: "nova", ...more } })

describe("speech", () => {
  it("needs a model on its own route; below /v1/tools it may be left out", async () => {
    const { body, status } = await speak({ model: "" })
    expect([status, body.code, body.details.field]).toEqual([400, "invalid_request", "model"])
    expect((await speak({ model: undefined }, "/v1/tools/speech")).status).toBe(200)
  })

  it.each([
    ["voice", "must be one of alloy, ash, ballad, coral, echo, fable, onyx, nova, sage, shimmer, verse"],
    ["response_format", "must be one of mp3, opus, aac, flac, wav, pcm"]
  ])("names every %s there is", async (field, rule) => {
    for (const path of ["/v1/speech", "/v1/tools/speech"]) {
      expect((await speak({ [field]: "z" }, path)).body.details).toEqual({ field, rule })
    }
  })

  it("of which nothing comes is a failure like any other, and costs nothing", async () => {
    const before = await service.balance(who)
    const headers = { "content-type": "audio/mpeg" }
    await service.control("/faults", { service: "speech", status: 200, body: "", headers, times: 1 })
    const { body, status } = await speak({})
    expect([status, body.code]).toEqual([500, "upstream_error"])
    expect((await service.usage(who))[0]).toMatchObject({ success: false, cost: 0, error_type: "upstream_error" })
    expect(await service.balance(who)).toBe(before)
  })

  it("has a key for each of its routes", async () => {
    const key = { "idempotency-key": "one-key-two-routes" }
    expect((await speak({}, "/v1/speech", key)).status).toBe(200)
    const { body, status } = await speak({}, "/v1/tools/speech", key)
    expect([status, body.code]).toEqual([409, "idempotency_key_reused"])
  })
})
