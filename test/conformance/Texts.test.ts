/**
 * Texts that not every engine can hold, U+0000 and half of a surrogate pair, in every place of every request: none is an error of the service.
 * Where a text would be stored it is refused, so nothing that was acknowledged comes back as something else. It is the same on both engines.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { start } from "../support/Service.ts"
import type { Answer, Call, Person, Service } from "../support/Service.ts"
import * as Tables from "../support/tables.ts"

const hostile = ["a\0b", "a\ud800b", "\udc00"] as const
const rule = "must not contain U+0000 or unpaired surrogates"

let service: Service
let ada: Person
let key: string
beforeAll(async () => {
  service = await start({ env: { LOG_LEVEL: "none" } })
  ada = await service.signIn("ada@example.com")
  key = await service.key(ada)
  await service.control("/credit", { tenant_id: ada.tenant_id, amount: 100, source: "purchase" })
})
afterAll(() => service.discard())

interface Operation {
  readonly parameters?: ReadonlyArray<{ readonly name: string; readonly in: string }>
  readonly security?: ReadonlyArray<object>
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly example?: unknown }>> }
}

/** The value with the text in the place of one of its texts, once for each. */
const variants = (value: unknown, text: string): ReadonlyArray<unknown> => {
  if (typeof value === "string") return [text]
  if (Array.isArray(value)) return value.flatMap((one, i) => variants(one, text).map((other) => value.with(i, other)))
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([name, one]) =>
    variants(one, text).map((other) => ({ ...value, [name]: other }))
  )
}

/** The calls of an operation with such a text in its path, its query, or its body. */
const callsOf = (path: string, { parameters = [], requestBody }: Operation, text: string) => {
  const named = (place: string) => parameters.filter((one) => one.in === place).map(({ name }) => name)
  const own = path.replaceAll("{tenant_id}", ada.tenant_id).replaceAll("{account_id}", ada.account_id)
  const filled = (at: string, other = "x") => at.replaceAll(/\{\w+\}/g, other)
  // What is no whole text is no UTF-8 either: in a URL it is a byte that stands alone.
  const escaped = text.includes("\0") ? "a%00b" : "a%ED%A0%80b"
  const example = Object.values(requestBody?.content ?? {}).find((one) => one.example !== undefined)?.example
  const bodies = example === undefined ? [] : variants(example, text)
  return [
    ...named("path").map((name) => ({ at: filled(path.replace(`{${name}}`, escaped)), json: example })),
    ...named("query").map((name) => ({ at: `${filled(own)}?${name}=${escaped}`, json: example })),
    ...bodies.map((json) => ({ at: filled(own), json }))
  ]
}

describe("a text that not every engine can hold", () => {
  it.each(hostile)("is no error of the service, wherever it stands: %j", async (text) => {
    const { paths } = (await service.call("/openapi.json")).body as {
      readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
    }
    const wrong: Array<unknown> = []
    let asked = 0
    for (const [path, methods] of Object.entries(paths))
      for (const [method, operation] of Object.entries(methods))
        for (const { at, json } of callsOf(path, operation, text)) {
          const isOfKeys = JSON.stringify(operation.security ?? []).includes("api_key")
          const call: Call = { method: method.toUpperCase(), token: isOfKeys ? key : ada.token }
          const { body, status } = await service.call(at, {
            ...call,
            ...(json !== undefined && method !== "get" && { json })
          })
          asked++
          if (status >= 500) wrong.push([method, at, json, status, body])
        }
    expect(wrong).toEqual([])
    expect(asked).toBeGreaterThan(150)
    expect((await service.call("/readyz")).status).toBe(200)
  })

  const refused = (field: string) => ({ status: 400, field, rule })
  const of = ({ body, status }: Answer) => ({ status, field: body.details?.field, rule: body.details?.rule })
  const tenant = (rest: string) => `/v1/tenants/${ada.tenant_id}${rest}`
  const post = (path: string, json: unknown, more: Call = {}) => service.call(path, { token: ada.token, json, ...more })

  it.each(hostile)("is refused where it would be stored: %j", async (text) => {
    const before = await Tables.everything(service.folder)
    expect(of(await post(tenant("/applications"), { name: text }))).toEqual(refused("name"))
    expect(of(await post(tenant("/applications"), { name: "n", description: text }))).toEqual(refused("description"))
    expect(of(await post("/v1/tenants", { name: text }))).toEqual(refused("name"))
    const gift = { amount: 1, recipient_email: "bob@example.com", kind: "gift", message: text }
    const sent = await post(tenant("/billing/transfers"), gift, {
      headers: { "idempotency-key": "key-0123456789-abcdef" }
    })
    expect([sent.status, sent.body.details.field]).toEqual([422, "message"])
    const addressed = { ...gift, message: "hi", recipient_email: `${text}@example.com` }
    const headers = { "idempotency-key": "key-0123456789-abcdef" }
    expect((await post(tenant("/billing/transfers"), addressed, { headers })).status).toBe(422)
    const settings = { billing_emails: [`${text}@example.com`] }
    expect((await service.call(tenant("/billing"), { method: "PATCH", token: ada.token, json: settings })).status).toBe(
      400
    )
    const { token } = (await service.call("/v1/web/client-token", { json: { service_client_id: "sandbox-web" } })).body
    const message = { name: "Ada", email: "ada@example.com", inquiryType: "general", message: "hello" }
    for (const field of ["name", "inquiryType", "message"])
      expect(of(await post("/v1/web/contact", { ...message, [field]: text }, { token }))).toEqual(refused(field))
    const after = await Tables.everything(service.folder)
    // U+FFFD is what would have been put in its place.
    expect(after.split("\uFFFD").length).toBe(before.split("\uFFFD").length)
  })

  it.each(hostile)("passes through to whom it is for, unchanged: %j", async (text) => {
    const before = (await service.control("/calls?service=chat&limit=1000")).length
    const answer = await post(
      "/v1/chat/completions",
      { model: "sandbox-small", messages: [{ role: "user", content: text }] },
      { token: key, headers: { "idempotency-key": `passing-0123456-${hostile.indexOf(text as never)}` } }
    )
    expect(answer.status).toBe(200)
    const calls = await service.control("/calls?service=chat&limit=1000")
    expect(calls.length).toBe(before + 1)
    expect(JSON.stringify(calls)).toContain(JSON.stringify(text).slice(1, -1))
  })

  it("of an identity provider's name has U+FFFD in its place", async () => {
    const named = await service.signIn("named@example.com", { name: "N\0N" })
    expect((await service.call("/v1/me", { token: named.token })).body.result.account.name).toBe("N\uFFFDN")
  })
})

describe("a text beyond the ASCII", () => {
  const whole = "Ωmega 🦀 \u2028 \\u0000 \ud83e\udd80 e\u0301"

  it("comes back as it came", async () => {
    const made = await service.call(`/v1/tenants/${ada.tenant_id}/applications`, {
      token: ada.token,
      json: { name: whole, description: whole }
    })
    expect(made.body.result).toMatchObject({ name: whole, description: whole })
    const { body } = await service.call(`/v1/tenants/${ada.tenant_id}/applications/${made.body.result.id}`, {
      token: ada.token
    })
    expect(body.result).toMatchObject({ name: whole, description: whole })
  })
})
