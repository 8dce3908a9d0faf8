/** What the console asks for beside the specification: a balance and what runs on it, records and entries by a filter, previews, and more. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { command, start } from "../support/Service.ts"
import type { Answer, Person, Service } from "../support/Service.ts"
import { linkTo } from "../support/mail.ts"

let service: Service
let ada: Person
let bob: Person
let key: string

const chat = (token: string, model = "sandbox-small", content = "hello there"): Promise<Answer> =>
  service.call("/v1/chat/completions", {
    token,
    json: { model, messages: [{ role: "user", content }], max_tokens: 50 }
  })

const of = (who: Person, path: string, call: Parameters<Service["call"]>[1] = {}): Promise<Answer> =>
  service.call(`/v1/tenants/${who.tenant_id}/${path}`, { token: who.token, ...call })

beforeAll(async () => {
  service = await start()
  ada = await service.signIn("ada@example.com", { name: "Ada Lovelace" })
  bob = await service.signIn("bob@example.com", { name: "Bob" })
  key = await service.key(ada)
  for (const model of ["sandbox-small", "sandbox-large", "sandbox-large"]) await chat(ada.token, model)
  await chat(key)
  await service.control("/credit", { tenant_id: ada.tenant_id, amount: 20, source: "purchase" })
})
afterAll(() => service.discard())

describe("amounts", () => {
  it("say what the balance is made of, and what calls have set aside that run now", async () => {
    const before = (await of(ada, "billing/amounts")).body.result
    expect(before).toEqual({
      balance: expect.any(Number),
      giftable: 20,
      granted: expect.any(Number),
      held: 0,
      reserved: 0,
      available: before.balance
    })
    expect(before.giftable + before.granted).toBeCloseTo(before.balance, 9)
    await service.control("/faults", { service: "chat", delay_ms: 600_000, times: 1 })
    await service.control("/calls", undefined, "DELETE")
    const call = chat(ada.token)
    let during = before
    while (during.reserved === 0) during = (await of(ada, "billing/amounts")).body.result
    expect(during.available).toBeCloseTo(during.balance - during.reserved, 9)
    await expect.poll(async () => (await service.control("/calls?service=chat")).length, { timeout: 60_000 }).toBe(1)
    await service.control("/faults", undefined, "DELETE")
    expect((await call).status).toBe(200)
    expect((await of(ada, "billing/amounts")).body.result.reserved).toBe(0)
    expect((await service.call(`/v1/tenants/${ada.tenant_id}/billing/amounts`, { token: bob.token })).status).toBe(403)
  })
})

describe("the ledger by source", () => {
  it("shows some sources, or charges alone, page by page", async () => {
    const all = (await of(ada, "billing/ledger?per_page=200")).body.result.records as ReadonlyArray<{
      id: string
      source?: string
    }>
    const by = async (source: string, per_page = 2) => {
      const ids: Array<string> = []
      for (let page = 1; ; page++) {
        const { body } = await of(ada, `billing/ledger?source=${source}&page=${page}&per_page=${per_page}`)
        ids.push(...body.result.records.map(({ id }: { id: string }) => id))
        if (page >= body.result.total_pages) {
          expect(body.result.total_records).toBe(ids.length)
          return ids
        }
      }
    }
    const expected = (...sources: ReadonlyArray<string | undefined>) =>
      all.filter(({ source }) => sources.includes(source)).map(({ id }) => id)
    expect(await by("purchase")).toEqual(expected("purchase"))
    expect(await by("purchase,signup_grant,registration_bonus", 1)).toEqual(
      expected("purchase", "signup_grant", "registration_bonus")
    )
    expect(await by("call")).toEqual(expected(undefined))
    expect(await by("transfer_escrow")).toEqual([])
    const wrong = await of(ada, "billing/ledger?source=call,purchase")
    expect([wrong.status, wrong.body.details.field]).toEqual([400, "source"])
  })
})

describe("usage by a filter", () => {
  it("shows the records that have all of what is asked for", async () => {
    const all = await service.usage(ada)
    const keyed = (await of(ada, "applications")).body.result.records[0].id as string
    const by = async (query: string) =>
      (await of(ada, `usage?${query}`)).body.result.records.map(({ id }: { id: string }) => id)
    const models = (model: string) => all.filter((one) => one.model === model).map(({ id }) => id)
    expect(await by("model=sandbox-large")).toEqual(models("sandbox-large"))
    expect(await by(`application_id=${keyed}`)).toHaveLength(1)
    expect(await by("application_id=")).toHaveLength(all.length - 1)
    expect(await by(`billing_source_tenant_id=${ada.tenant_id}&success=true`)).toHaveLength(all.length)
    expect(await by("success=false")).toEqual([])
    for (const [query, field] of [
      ["model=x&sort=cost", "sort"],
      ["success=perhaps", "success"],
      ["usage_type=other", "usage_type"]
    ]) {
      const wrong = await of(ada, `usage?${query}`)
      expect([wrong.status, wrong.body.details.field]).toEqual([400, field])
    }
  })

  it("is drawn by hours and by who paid", async () => {
    const now = Date.now()
    const window = `start_time=${new Date(now - 7_200_000).toISOString()}&end_time=${new Date(now + 60_000).toISOString()}`
    for (const by of ["payer", "application", "provider"]) {
      const { body, status } = await of(ada, `usage/series?${window}&grain=hour&by=${by}`)
      expect(status).toBe(200)
      expect(body.result.total.requests).toBe((await service.usage(ada)).length)
      if (by === "payer") expect(body.result.series.map((one: { key: string }) => one.key)).toEqual([ada.tenant_id])
    }
  })

  it("is explained to an operator as to the caller", async () => {
    const [record] = await service.usage(ada)
    const token = (
      await command(["operator", "--token"], { DATA_DIR: service.folder, PORT: String(service.port) })
    ).stdout.trim()
    const theirs = await service.call(`/v1/operator/usage/${record.id}/explain`, { token })
    const own = await service.call(`/v1/usage/${record.id}/explain`, { token: ada.token })
    expect(theirs.status).toBe(200)
    expect(theirs.body.result).toEqual(own.body)
    expect((await service.call("/v1/operator/usage/use_x/explain", { token })).status).toBe(404)
    expect((await service.call(`/v1/operator/usage/${record.id}/explain`, { token: ada.token })).status).toBe(401)
  })
})

describe("an invitation's link", () => {
  it("says who invites to what, to whoever holds it", async () => {
    const team = (await service.call("/v1/tenants", { token: ada.token, json: { name: "Engines" } })).body.result
    const inviting = { token: ada.token, json: { email: "carol@example.com", role: "member" } }
    expect((await service.call(`/v1/tenants/${team.id}/invites`, inviting)).status).toBe(201)
    const token = await linkTo(service, "carol@example.com")
    const seen = await service.call(`/v1/tenant-invites/${token}`)
    expect([seen.status, seen.body.result]).toEqual([
      200,
      {
        tenant_name: "Engines",
        role: "member",
        inviter_name: "Ada Lovelace",
        email_masked: expect.stringMatching(/^c\W+@/),
        status: "pending",
        expires_at: expect.any(String)
      }
    ])
    const carol = await service.signIn("carol@example.com")
    await service.call(`/v1/tenant-invites/${token}/accept`, { token: carol.token, method: "POST" })
    expect((await service.call(`/v1/tenant-invites/${token}`)).body.result.status).toBe("accepted")
    expect((await service.call(`/v1/tenant-invites/${"0".repeat(64)}`)).status).toBe(404)
    let status = 404
    for (let i = 0; i < 40 && status === 404; i++) status = (await service.call("/v1/tenant-invites/guess")).status
    expect(status).toBe(429)
  })
})

describe("notifications", () => {
  it("are marked as read up to one, or all", async () => {
    for (let i = 0; i < 3; i++) {
      const sent = await of(ada, "billing/transfers", {
        json: { amount: 1, recipient_email: "bob@example.com", kind: "gift" },
        headers: { "idempotency-key": `notification-${i}-0000` }
      })
      expect(sent.status).toBe(201)
    }
    const list = async () => (await service.call("/v1/notifications", { token: bob.token })).body.result
    const read = (json: object) => service.call("/v1/notifications/read", { token: bob.token, json })
    const { records, unread } = await list()
    expect(unread).toBe(3)
    expect((await read({ up_to: records[1].id })).body.result).toEqual({ marked: 2, unread: 1 })
    expect((await list()).records.map(({ read_at }: { read_at: string | null }) => read_at === null)).toEqual([
      true,
      false,
      false
    ])
    expect((await read({})).body.result).toEqual({ marked: 1, unread: 0 })
    expect((await read({})).body.result).toEqual({ marked: 0, unread: 0 })
  })
})

describe("what a generation made", () => {
  it("comes through the service, as a file in which nothing runs, to whoever asked for it alone", async () => {
    const media = (path: string, token = ada.token) => service.call(`/v1/tools/media/${path}`, { token })
    const json = { model: "sandbox-image", prompt: "a lighthouse", num_images: 2 }
    const { request_id } = (await service.call("/v1/tools/media/generate", { token: ada.token, json })).body
    expect((await media(`content?request_id=${request_id}`)).body.code).toBe("media_not_completed")
    await service.control("/media", { request_id, status: "COMPLETED" })
    let found = await media(`content?request_id=${request_id}&index=1`)
    while (found.status === 409) found = await media(`content?request_id=${request_id}&index=1`)
    expect([found.status, found.headers.get("content-type")]).toEqual([200, "image/png"])
    expect(found.body.length).toBeGreaterThan(0)
    expect(found.headers.get("content-disposition")).toBe(`inline; filename="${request_id}-1.png"`)
    expect(found.headers.get("x-content-type-options")).toBe("nosniff")
    expect(found.headers.get("content-security-policy")).toBe("default-src 'none'; sandbox")
    expect(found.headers.get("x-request-id")).not.toBeNull()
    expect((await media(`content?request_id=${request_id}&index=2`)).body.code).toBe("media_not_found")
    expect((await media(`content?request_id=${request_id}`, bob.token)).body.code).toBe("media_not_found")
    expect((await media(`content?request_id=${request_id}&index=x`)).body.code).toBe("invalid_request")
  })
})
