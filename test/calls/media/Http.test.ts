/** Cancels that the vendor does not hear, jobs that it seems to have lost, and the time that a job took. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { start } from "../../support/Service.ts"
import type { Person, Service } from "../../support/Service.ts"

let service: Service
let who: Person
beforeAll(async () => {
  service = await start()
  who = await service.signIn("films@example.com")
})
afterAll(() => service.discard())

const fault = (more: object) => service.control("/faults", { service: "media", times: 1, ...more })
const status = async (id: string) =>
  (await service.call(`/v1/tools/media/status?request_id=${id}`, { token: who.token })).body
const cancel = async (request_id: string) =>
  (await service.call("/v1/tools/media/cancel", { token: who.token, json: { request_id } })).body
const running = async (): Promise<string> => {
  const json = { model: "sandbox-video", prompt: "a fish" }
  const { request_id } = (await service.call("/v1/tools/media/generate", { token: who.token, json })).body
  await service.control("/media", { request_id, status: "IN_PROGRESS" })
  return request_id
}
const cancelsHeard = async (): Promise<number> =>
  (await service.control("/calls?service=media&limit=1000")).filter(({ path }: { path: string }) =>
    path.endsWith("/cancel")
  ).length

describe("a cancel", () => {
  it.each([{ status: 500 }, { drop: true }])("that met %j is sent again, until it is heard", async (more) => {
    const id = await running()
    await service.control("/calls", undefined, "DELETE")
    await fault(more)
    for (const heard of [1, 2, 2]) {
      expect(await cancel(id)).toMatchObject({ status: "CANCELLED", settled: false })
      expect(await cancelsHeard()).toBe(heard)
    }
    await service.control("/media", { request_id: id, status: "COMPLETED" })
    expect(await status(id)).toMatchObject({ status: "COMPLETED", settled: true, cost_usd: 0.25 })
  })

  it("does not make a single 404 the end of what runs on; many are, for nothing", async () => {
    const id = await running()
    await cancel(id)
    await fault({ status: 404 })
    expect(await status(id)).toMatchObject({ status: "CANCELLED", settled: false, cost_usd: 0.25 })
    await fault({ status: 404, times: 4 })
    let last = await status(id)
    for (let i = 0; i < 10 && !last.settled; i++) last = await status(id)
    expect(last).toMatchObject({ status: "CANCELLED", settled: true, cost_usd: 0 })
    await service.control("/faults", undefined, "DELETE")
  })
})

it("the time that a job took is a number before it is known", async () => {
  const id = await running()
  expect((await status(id)).metrics).toEqual({ inference_time: 0 })
  await service.control("/media", { request_id: id, status: "COMPLETED" })
  expect((await status(id)).metrics.inference_time).toBeGreaterThan(0)
})

describe("a vendor's nonsense about a job", () => {
  const generate = () =>
    service.call("/v1/tools/media/generate", { token: who.token, json: { model: "sandbox-video", prompt: "a fish" } })

  it("a queue position that is no safe integer counts as unknown, in each answer", async () => {
    await fault({ body: '{"request_id":"far","queue_position":123456789012345678901234567890}' })
    const submitted = await generate()
    expect(submitted).toMatchObject({ status: 200, body: { queue_position: 0 } })
    await fault({ body: '{"status":"IN_QUEUE","queue_position":123456789012345678901234567890}' })
    expect(await status(submitted.body.request_id)).toMatchObject({ status: "IN_QUEUE" })
    await service.control("/faults", undefined, "DELETE")
  })

  it.each(["a\u0000b", "\ud800"])("an id that cannot be stored is no job: %j", async (request_id) => {
    const before = await service.balance(who)
    await fault({ body: JSON.stringify({ request_id }) })
    expect((await generate()).status).toBe(503)
    expect(await service.balance(who)).toBe(before)
    await service.control("/faults", undefined, "DELETE")
  })
})
