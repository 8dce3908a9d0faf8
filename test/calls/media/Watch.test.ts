/** How often vendors are asked, and that one job which cannot be looked at keeps nobody from the others. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Pace } from "../../../src/calls/media/Watch.ts"
import { start } from "../../support/Service.ts"
import type { Person, Service } from "../../support/Service.ts"
import * as Tables from "../../support/tables.ts"

let service: Service
let who: Person
beforeAll(async () => {
  service = await start()
  who = await service.signIn("watched@example.com")
})
afterAll(() => service.discard())

const submit = async (): Promise<string> => {
  const json = { model: "sandbox-video", prompt: "a fish" }
  return (await service.call("/v1/tools/media/generate", { token: who.token, json })).body.request_id
}
const ask = async (what: string, id: string) =>
  (await service.call(`/v1/tools/media/${what}?request_id=${id}`, { token: who.token })).body
const cancel = (request_id: string) =>
  service.call("/v1/tools/media/cancel", { token: who.token, json: { request_id } })
const heard = async (service_: "media" | "images", part: RegExp): Promise<number> =>
  (await service.control(`/calls?service=${service_}`)).filter(({ path }: { path: string }) => part.test(path)).length

/** Waits until it is so. */
const until = async (so: () => Promise<boolean>) => {
  for (let i = 0; i < 200 && !(await so()); i++) await new Promise((resolve) => setTimeout(resolve, 50))
  expect(await so()).toBe(true)
}

describe("a pace", () => {
  it("is so many at once, then one a second", () => {
    const pace = new Pace(3, 0)
    expect([0, 0, 0, 0, 999].map((now) => pace.take(now))).toEqual([true, true, true, false, false])
    expect([1_000, 1_999, 2_000].map((now) => pace.take(now))).toEqual([true, false, true])
    expect([60_000, 60_000, 60_000, 60_000].map((now) => pace.take(now))).toEqual([true, true, true, false])
    // A clock that is set back gives nothing, and takes nothing.
    expect([0, 61_000].map((now) => pace.take(now))).toEqual([false, true])
  })
})

describe("a client that asks all the time", () => {
  it("reaches the vendor now and then, and sees what is known", async () => {
    const id = await submit()
    await service.control("/media", { request_id: id, status: "IN_PROGRESS" })
    await service.control("/calls", undefined, "DELETE")
    const began = performance.now()
    for (let i = 0; i < 100; i++) {
      const { settled, status } = await ask(i % 2 === 0 ? "status" : "result", id)
      if (i % 2 === 0) expect([settled, status]).toEqual([false, "IN_PROGRESS"])
    }
    const seconds = Math.ceil((performance.now() - began) / 1_000)
    // Six at once, one a second, and the service's own.
    expect(await heard("media", /status$/)).toBeLessThanOrEqual(7 + seconds)
    await service.control("/media", { request_id: id, status: "COMPLETED" })
    await until(async () => (await ask("status", id)).settled)
    expect(await ask("status", id)).toMatchObject({ status: "COMPLETED", cost_usd: 0.25 })
  })

  it("shares one look with all who ask meanwhile, though the first of them leaves", async () => {
    const id = await submit()
    await service.control("/media", { request_id: id, status: "COMPLETED" })
    await service.control("/calls", undefined, "DELETE")
    await service.control("/faults", { service: "media", delay_ms: 300, times: 2 })
    const gone = new AbortController()
    const first = fetch(`${service.url}/v1/tools/media/status?request_id=${id}`, {
      headers: { authorization: `Bearer ${who.token}` },
      signal: gone.signal
    }).catch(() => undefined)
    await until(async () => (await heard("media", /status$/)) === 1)
    const others = Array.from({ length: 20 }, () => ask("status", id))
    gone.abort()
    for (const one of await Promise.all(others)) expect(one).toMatchObject({ settled: true, cost_usd: 0.25 })
    await first
    expect([await heard("media", /status$/), await heard("media", /requests\/[^/]+$/)]).toEqual([1, 1])
  })

  it("cancels at the vendor now and then, until it is heard", async () => {
    const id = await submit()
    await service.control("/media", { request_id: id, status: "IN_PROGRESS" })
    await service.control("/calls", undefined, "DELETE")
    await service.control("/faults", { service: "media", status: 500, times: 1_000 })
    const began = performance.now()
    for (let i = 0; i < 40; i++) expect((await cancel(id)).body.status).toBe("CANCELLED")
    const seconds = Math.ceil((performance.now() - began) / 1_000)
    expect(await heard("media", /cancel$/)).toBeLessThanOrEqual(3 + seconds)
    await service.control("/faults", undefined, "DELETE")
    // Nobody asks again but the service.
    await service.control("/calls", undefined, "DELETE")
    await service.control("/clock", { advance_ms: 60_000 })
    await until(async () => (await heard("media", /cancel$/)) === 1)
    await service.control("/media", { request_id: id, status: "COMPLETED" })
  })

  it("of images too", async () => {
    const asked = { prompt: "a fish", sync_mode: false }
    const { request_id } = (await service.call("/v1/images/generate", { token: who.token, json: asked })).body
    await service.control("/media", { request_id, status: "IN_PROGRESS" })
    await service.control("/calls", undefined, "DELETE")
    const began = performance.now()
    const path = `/v1/images/status?request_id=${request_id}`
    for (let i = 0; i < 100; i++)
      expect((await service.call(path, { token: who.token })).body.status).toBe("PROCESSING")
    const seconds = Math.ceil((performance.now() - began) / 1_000)
    expect(await heard("images", /status$/)).toBeLessThanOrEqual(7 + seconds)
    await service.control("/media", { request_id, status: "COMPLETED" })
  })
})

describe("a job that cannot be settled", () => {
  it("keeps nobody from the others", async () => {
    const other = await service.signIn("unlucky@example.com")
    const json = { model: "sandbox-video", prompt: "a fish" }
    const bad = (await service.call("/v1/tools/media/generate", { token: other.token, json })).body.request_id
    await service.control("/media", { request_id: bad, status: "IN_PROGRESS" })
    const set = (quote: number) =>
      Tables.unchecked(service.folder, "tollgate_media_jobs", `SET quote = ${quote} WHERE id = '${bad}'`)
    await set(-1)
    await service.control("/media", { request_id: bad, status: "COMPLETED" })
    const settled = async (count: number) => {
      const lucky = await service.signIn(`lucky${count}@example.com`)
      for (let i = 0; i < count; i++) {
        await service.call("/v1/tools/media/generate", { token: lucky.token, json })
      }
      // The service sees their end by itself.
      await until(async () => (await service.usage(lucky)).length === count)
    }
    await settled(2)
    await until(async () => service.stderr.join("").includes(bad))
    await settled(1)
    expect((await service.call("/readyz")).status).toBe(200)
    // It is settled as soon as it can be.
    await set(250_000_000)
    await service.control("/clock", { advance_ms: 60_000 })
    await until(async () => (await service.usage(other)).length === 1)
    expect(await service.balance(other)).toBe(5.75)
  })
})
