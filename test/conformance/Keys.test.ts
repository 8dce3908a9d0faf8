/** A person's API keys, as the person and the holder of a key see them. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { start } from "../support/Service.ts"
import type { Answer, Person, Service } from "../support/Service.ts"

let service: Service
let ada: Person

beforeAll(async () => {
  service = await start()
  ada = await service.signIn("ada@example.com")
})
afterAll(() => service.discard())

const applications = (): string => `/v1/tenants/${ada.tenant_id}/applications`

/** The key's record with its text, as its making answers it. */
const made = async (key: object): Promise<{ readonly id: string; readonly api_key: string }> => {
  const { body, status } = await service.call(applications(), { token: ada.token, json: { description: "", ...key } })
  expect([status, body.error]).toEqual([201, undefined])
  return body.result
}

const chat = (token: string, model = "sandbox-small"): Promise<Answer> =>
  service.call("/v1/chat/completions", { token, json: { model, messages: [{ role: "user", content: "one two" }] } })

const requestOf = ({ headers }: Answer): string => headers.get("x-request-id")!

describe("a usage record", () => {
  it("names its key and its request, on both lanes", async () => {
    const { api_key, id } = await made({ name: "laptop" })
    const answers = [
      await chat(api_key),
      await service.call("/v1/search?query=owls", { token: api_key }),
      await service.call("/v1/embeddings", { token: api_key, json: { model: "sandbox-embedding", input: "owls" } }),
      // Its path is no exact one, so that the router serves it.
      await service.call("/v1/chat/completions/", {
        token: api_key,
        json: { model: "sandbox-small", messages: [{ role: "user", content: "three" }] }
      }),
      await service.call("/v1/speech", { token: api_key, json: { model: "tts-1", input: "owls", voice: "nova" } })
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    const records = (await service.usage(ada)).toReversed()
    expect(records.map(({ request_id }) => request_id)).toEqual(answers.map(requestOf))
    for (const record of records)
      expect(record).toMatchObject({ application_id: id, application_name: "laptop", tenant_id: ada.tenant_id })
  })

  it("names the request of a call that failed", async () => {
    await service.control("/faults", { service: "chat", times: 1, status: 500 })
    const refused = await chat(ada.token)
    expect([refused.status, refused.body.code]).toEqual([500, "upstream_error"])
    expect((await service.usage(ada))[0]).toMatchObject({ success: false, request_id: requestOf(refused) })
  })

  it("names no key if a person's token called", async () => {
    const answer = await chat(ada.token)
    const [record] = await service.usage(ada)
    expect(record.request_id).toBe(requestOf(answer))
    expect(Object.keys(record).filter((name) => name.startsWith("application_"))).toEqual([])
  })

  it("keeps the key's id when the key is deleted", async () => {
    const { api_key, id } = await made({ name: "short" })
    await chat(api_key)
    await service.call(`${applications()}/${id}`, { token: ada.token, method: "DELETE" })
    const [record] = await service.usage(ada)
    expect(record.application_id).toBe(id)
    expect(record).not.toHaveProperty("application_name")
  })
})

describe("an API key on a route for people", () => {
  const told =
    'Bearer error="invalid_token", error_description="This route is for people who are signed in; an API key cannot use it. ' +
    'Send the access token of a sign-in."'

  it.each([
    ["the person's profile", "/v1/me"],
    ["the tenant's keys", "/v1/tenants/<tenant>/applications"],
    ["the tenant's usage", "/v1/tenants/<tenant>/usage"]
  ])("is refused in the specification's words, and a header says why: %s", async (_, path) => {
    const { api_key } = await made({ name: "lost" })
    const at = path.replace("<tenant>", ada.tenant_id)
    const { body, headers, status } = await service.call(at, { token: api_key })
    expect([status, body]).toEqual([401, { error: "invalid or expired token" }])
    expect(headers.get("www-authenticate")).toBe(told)
  })

  it.each(["nonsense", "a.b.c", "sk-prod-0000"])(
    "has a header of its own only as a key of this service: %s",
    async (token) => {
      const { headers, status } = await service.call("/v1/me", { token })
      expect([status, headers.get("www-authenticate")]).toEqual([401, null])
    }
  )
})
