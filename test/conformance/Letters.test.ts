/** Letters to other people, over HTTP: how many one account may cause, what is booked beyond that, and how names stand in them. */
import { randomUUID } from "node:crypto"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { lettersTo } from "../support/mail.ts"
import { start } from "../support/Service.ts"
import type { Answer, Person, Service } from "../support/Service.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

let people = 0
const person = (claims: object = {}) => service.signIn(`letters${++people}@example.com`, claims)

const invite = (by: Person, email: string): Promise<Answer> =>
  service.call(`/v1/tenants/${by.tenant_id}/invites`, { token: by.token, json: { email } })

const send = (by: Person, recipient_email: string, key: string = randomUUID()): Promise<Answer> =>
  service.call(`/v1/tenants/${by.tenant_id}/billing/transfers`, {
    token: by.token,
    headers: { "idempotency-key": key },
    json: { amount: 0.01, recipient_email, kind: "gift", message: "hello" }
  })
const fund = (who: Person) => service.control("/credit", { tenant_id: who.tenant_id, amount: 10, source: "purchase" })

const told = ({ body, headers, status }: Answer) => [status, body.code, Number(headers.get("retry-after")) > 0]
const tooMany = [429, "too_many_letters", true]

describe("one account", () => {
  it("causes twenty letters an hour, however many it asks for at once", async () => {
    const ada = await person()
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, i) => invite(ada, `stranger${i}@elsewhere.example`))
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(20)
    for (const refused of answers.filter(({ status }) => status !== 201)) expect(told(refused)).toEqual(tooMany)
    const listed = await service.call(`/v1/tenants/${ada.tenant_id}/invites`, { token: ada.token })
    expect(listed.body.result.invites).toHaveLength(20)

    // A transfer counts with them; nothing of it is booked.
    await fund(ada)
    const before = await service.balance(ada)
    expect(told(await send(ada, "stranger@elsewhere.example"))).toEqual(tooMany)
    expect(await service.balance(ada)).toBe(before)
    expect((await invite(await person(), "stranger0@elsewhere.example")).status).toBe(201)

    await service.control("/clock", { advance_ms: 3_600_000 })
    const again = await service.signIn(ada.email)
    expect((await invite(again, "somebody@elsewhere.example")).status).toBe(201)
  })

  it("causes five a day to one address, of all kinds together; who has an account is told otherwise", async () => {
    const ada = await person()
    const bob = await person()
    await fund(ada)
    const [stranger, kept] = ["stranger@far.example", randomUUID()]
    for (const answer of [
      await invite(ada, stranger),
      await send(ada, stranger),
      await invite(ada, stranger),
      await send(ada, stranger, kept),
      await send(ada, stranger)
    ]) {
      expect(answer.status).toBe(201)
    }
    const balance = await service.balance(ada)
    expect(told(await send(ada, stranger))).toEqual(tooMany)
    expect(told(await invite(ada, stranger))).toEqual(tooMany)
    expect(told(await invite(ada, ` ${stranger.toUpperCase()} `))).toEqual(tooMany)
    // A replay causes nothing.
    const replayed = await send(ada, stranger, kept)
    expect(replayed.status).toBe(200)
    const resend = `/v1/tenants/${ada.tenant_id}/billing/transfers/${replayed.body.result.id}/resend`
    expect(told(await service.call(resend, { token: ada.token, method: "POST" }))).toEqual(tooMany)
    expect(await service.balance(ada)).toBe(balance)

    for (let i = 0; i < 7; i++) expect((await send(ada, bob.email)).status).toBe(201)
    const notices = await service.call("/v1/notifications", { token: bob.token })
    expect(notices.body.result.unread).toBe(7)
    for (let i = 0; i < 200 && (await lettersTo(service, bob.email)).length < 5; i++) {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    expect(await lettersTo(service, bob.email)).toHaveLength(5)
    expect(await service.balance(ada)).toBeCloseTo(balance - 0.07, 9)

    await service.control("/clock", { advance_ms: 86_400_000 })
    const again = await service.signIn(ada.email)
    expect((await invite(again, stranger)).status).toBe(201)
  })
})

describe("a name", () => {
  it("stands in a letter without links and on one line, in its subject too", async () => {
    const mallory = await person({ name: "Your bank https://evil.example/login\r\nBcc: x@evil.example" })
    await fund(mallory)
    const team = await service.call("/v1/tenants", {
      token: mallory.token,
      json: { name: "Prize!\nOpen www.evil.example now, or evil.example/x" }
    })
    await service.call(`/v1/tenants/${team.body.result.id}/invites`, {
      token: mallory.token,
      json: { email: "victim@far.example" }
    })
    await send(mallory, "victim@far.example")
    for (let i = 0; i < 200 && (await lettersTo(service, "victim@far.example")).length < 2; i++) {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    const letters = await lettersTo(service, "victim@far.example")
    expect(letters.map(({ subject }) => subject).toSorted()).toEqual([
      "Your bank Bcc: x@evil example invites you to Prize! Open now, or evil example/x",
      "Your bank Bcc: x@evil example sends you 0.01 credits"
    ])
    for (const { text } of letters) {
      expect(text.match(/https?:\S+/g)).toEqual([
        expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/(transfer-)?invites\//)
      ])
      expect(text).not.toMatch(/evil\.example/)
    }
  })
})
