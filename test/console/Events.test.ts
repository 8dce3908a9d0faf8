/** Live events over HTTP: what comes, what goes on behind a lost connection, and when a stream ends. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { session, signIn, signOut } from "../support/Console.ts"
import { Events } from "../support/events.ts"
import { tokensFor } from "../support/OAuth.ts"
import { start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

let people = 0
const person = () => service.signIn(`events${++people}@example.com`)

const chat = async (who: Person, times = 1): Promise<void> => {
  for (let i = 0; i < times; i += 50) {
    const some = Array.from({ length: Math.min(50, times - i) }, () =>
      service.call("/v1/chat/completions", {
        token: who.token,
        json: { model: "auto", messages: [{ role: "user", content: "hello" }] }
      })
    )
    for (const { body, status } of await Promise.all(some)) expect([status, body.error]).toEqual([200, undefined])
  }
}

const ids = (events: ReadonlyArray<{ readonly data: { readonly id: string } }>) => events.map(({ data }) => data.id)
const recorded = async (who: Person) => (await service.usage(who)).toReversed()

describe("a stream", () => {
  it("tells of each call and of the balance as the other routes have them", async () => {
    const who = await person()
    await chat(who)
    const events = await Events.open(service, who.token)
    expect(events.response.headers.get("content-type")).toBe("text/event-stream")
    expect(events.response.headers.get("cache-control")).toBe("no-store")
    const [ready] = await events.until("ready")
    expect(ready!.id).toContain(who.tenant_id)
    expect((await events.until("balance"))[0]!.data).toEqual({ balance: await service.balance(who) })
    await chat(who, 3)
    const calls = await events.until("call", 3)
    expect(calls.map(({ data }) => data)).toEqual((await recorded(who)).slice(1))
    await events.until("balance", 2)
    const balance = await service.balance(who)
    await expect.poll(() => events.of("balance").at(-1)!.data).toEqual({ balance })
    events.close()
  })

  it("goes on behind the last event that came: nothing is missing, nothing twice", async () => {
    const who = await person()
    const first = await Events.open(service, who.token)
    await first.until("ready")
    await chat(who, 120)
    const came = [...(await first.until("call", 60))].slice(0, 60)
    first.close()
    await chat(who, 120)
    const second = await Events.open(service, who.token, came.at(-1)!.id)
    await chat(who, 20)
    const rest = await second.until("call", 200)
    expect(second.of("ready")).toEqual([])
    expect([...ids(came), ...ids(rest)]).toEqual((await allOf(who)).map(({ id }) => id))
    second.close()
    // The same by the address, for those who set no header.
    const third = await Events.open(service, who.token, undefined, `/v1/events?cursor=${rest.at(-3)!.id}`)
    expect(ids(await third.until("call", 2))).toEqual(ids(rest.slice(-2)))
    third.close()
  })

  it("says so when more than a thousand calls were missed", async () => {
    const who = await person()
    const first = await Events.open(service, who.token)
    const [ready] = await first.until("ready")
    first.close()
    await chat(who, 1_001)
    const second = await Events.open(service, who.token, ready!.id)
    const [reset] = await second.until("reset")
    expect(reset!.data).toEqual({ reason: "too_far_behind" })
    await chat(who)
    expect(await second.until("call")).toHaveLength(1)
    second.close()
  })

  it("begins anew with a cursor of another tenant, one that is ahead, or none at all", async () => {
    const [who, other] = [await person(), await person()]
    await chat(other, 2)
    const theirs = await Events.open(service, other.token)
    const [{ id } = { id: "" }] = await theirs.until("ready")
    theirs.close()
    for (const cursor of [id!, id!.replace(other.tenant_id, who.tenant_id), "nonsense", `${who.tenant_id}.-1.`]) {
      const events = await Events.open(service, who.token, cursor)
      await events.until("ready")
      expect(events.of("call")).toEqual([])
      events.close()
    }
  })

  it("tells the person of notifications, and no application", async () => {
    const [who, sender] = [await person(), await person()]
    const { access_token } = (await tokensFor(service, who, "organization")).body
    const [own, application] = [await Events.open(service, who.token), await Events.open(service, access_token)]
    await own.until("ready")
    await application.until("ready")
    await service.control("/credit", { tenant_id: sender.tenant_id, amount: 5, source: "purchase" })
    const sent = await service.call(`/v1/tenants/${sender.tenant_id}/billing/transfers`, {
      token: sender.token,
      headers: { "idempotency-key": `events-${people}-transfer-key` },
      json: { amount: 1, recipient_email: who.email, kind: "gift" }
    })
    expect(sent.status).toBe(201)
    const [notice] = await own.until("notification")
    const { body } = await service.call("/v1/notifications", { token: who.token })
    expect(notice!.data).toEqual(body.result.records[0])
    await chat(who)
    await application.until("call")
    expect(application.of("notification")).toEqual([])
    own.close()
    application.close()
  })

  it("sees nothing of other tenants", async () => {
    const [who, other] = [await person(), await person()]
    const events = await Events.open(service, who.token)
    await events.until("ready")
    await chat(other, 3)
    await chat(who)
    const calls = await events.until("call")
    expect(calls.map(({ data }) => data.tenant_id)).toEqual([who.tenant_id])
    events.close()
  })
})

describe("a stream ends", () => {
  it("with the session that its token follows from", async () => {
    const { browser } = await signIn(service, `events${++people}@example.com`)
    const { access_token } = (await session(service, browser)).body.result
    const events = await Events.open(service, access_token)
    await events.until("ready")
    await signOut(service, browser)
    expect((await events.until("end"))[0]!.data).toEqual({ reason: "credential" })
    await expect.poll(() => events.over).toBe(true)
    expect((await Events.open(service, access_token)).response.status).toBe(401)
  })

  it("never for want of calls, and makes room for others when it is closed", async () => {
    const who = await person()
    const open = await Promise.all(Array.from({ length: 8 }, () => Events.open(service, who.token)))
    for (const events of open) await events.until("ready")
    const refused = await service.call("/v1/events", { token: who.token })
    expect([refused.status, refused.body.code, refused.body.details]).toEqual([429, "too_many_streams", { limit: 8 }])
    open[0]!.close()
    await expect
      .poll(async () => {
        const events = await Events.open(service, who.token)
        events.close()
        return events.response.status
      })
      .toBe(200)
    for (const events of open) events.close()
  })

  it("is for those who may read usage, and no HEAD opens one", async () => {
    expect((await service.call("/v1/events")).status).toBe(401)
    expect((await service.call("/v1/events", { token: await service.key(await person()) })).status).toBe(401)
    const { status } = await service.call("/v1/events", { method: "HEAD", token: (await person()).token })
    expect(status).toBe(405)
  })

  it("when the service stops, which it does not hold up", async () => {
    const other = await start()
    const who = await other.signIn("stop@example.com")
    const events = await Events.open(other, who.token)
    await events.until("ready")
    const ended = other.end("SIGTERM")
    expect((await events.until("end"))[0]!.data).toEqual({ reason: "shutdown" })
    expect(await ended).toBe(0)
    await other.discard()
  })
})

/** All records of a tenant, in the order of time. */
const allOf = async (who: Person): Promise<ReadonlyArray<{ readonly id: string }>> => {
  const records: Array<{ readonly id: string }> = []
  for (let page = 1; ; page++) {
    const path = `/v1/tenants/${who.tenant_id}/usage?per_page=200&page=${page}&direction=asc`
    const { body } = await service.call(path, { token: who.token })
    records.push(...body.result.records)
    if (page >= body.result.total_pages) return records
  }
}
