/** Mail to oneself if the mail server refuses it for good, or for now. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { lettersTo } from "../../support/mail.ts"
import { start } from "../../support/Service.ts"
import type { Service } from "../../support/Service.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

const fault = (more: object) => service.control("/faults", { service: "mail", times: 1, ...more })
const writer = async (email: string) => {
  const who = await service.signIn(email)
  const token = await service.key(who)
  const send = () => service.call("/v1/email/self/send", { token, json: { subject: "A note", body: "to myself" } })
  return { who, send }
}

it("a letter that is refused for good is an error and costs nothing", async () => {
  const { send, who } = await writer("refused@example.com")
  const before = await service.balance(who)
  await fault({ status: 550 })
  const { body, status } = await send()
  expect([status, body]).toEqual([500, { error: "the mail server rejected the email", code: "upstream_error" }])
  expect(await service.balance(who)).toBe(before)
  expect(await service.usage(who)).toMatchObject([{ success: false, cost: 0, error_type: "upstream_error" }])
  expect(await lettersTo(service, who.email)).toEqual([])
})

it("an accepted letter has left before the answer", async () => {
  const { send, who } = await writer("accepted@example.com")
  expect((await send()).headers.get("x-charge-usd")).toBe("0.001")
  expect(await lettersTo(service, who.email)).toHaveLength(1)
})

it("a letter that is refused for now is charged, and leaves later", async () => {
  const { send, who } = await writer("later@example.com")
  await fault({ status: 451 })
  expect((await send()).status).toBe(200)
  expect(await service.usage(who)).toMatchObject([{ success: true, cost: 0.001 }])
  expect(await lettersTo(service, who.email)).toEqual([])
  await service.control("/clock", { advance_ms: 60_000 })
  for (let i = 0; i < 100 && (await lettersTo(service, who.email)).length === 0; i++) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  expect(await lettersTo(service, who.email)).toHaveLength(1)
})

it("a letter at a slow server is answered after ten seconds, and sent once", async () => {
  const { send, who } = await writer("slow@example.com")
  await fault({ delay_ms: 600_000 })
  const before = (await service.control("/calls?service=mail")).length
  const answer = send()
  const heard = async () => (await service.control("/calls?service=mail")).length
  await expect.poll(heard, { timeout: 60_000 }).toBe(before + 1)
  await service.control("/clock", { advance_ms: 11_000 })
  const [{ status }, early] = [await answer, await lettersTo(service, who.email)]
  expect([status, early]).toEqual([200, []])
  await service.control("/faults", undefined, "DELETE")
  for (let i = 0; i < 200 && (await lettersTo(service, who.email)).length === 0; i++) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  expect(await lettersTo(service, who.email)).toHaveLength(1)
})
