/** Credit transfers from outside: sender and recipient, states, mail, and the specification's error table row by row. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { linkTo, lettersTo } from "../support/mail.ts"
import { start } from "../support/Service.ts"
import type { Answer, Person, Service } from "../support/Service.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

let people = 0
const person = (name: string, claims: object = {}) => service.signIn(`${name}${++people}@example.com`, claims)

const hours = 3_600_000
const days = 24 * hours
const pass = (advance_ms: number) => service.control("/clock", { advance_ms })

const fund = (who: Person, amount: number, source = "purchase") =>
  service.control("/credit", { tenant_id: who.tenant_id, amount, source })

let keys = 0
const freshKey = () => `key-0123456789-${++keys}`

const path = (who: Person, rest = "") => `/v1/tenants/${who.tenant_id}/billing/transfers${rest}`

const send = (from: Person, body: object | string, key: string | undefined = freshKey()): Promise<Answer> =>
  service.call(path(from), {
    token: from.token,
    headers: {
      "content-type": "application/json",
      ...(key !== "" && { "idempotency-key": key })
    },
    method: "POST",
    raw: typeof body === "string" ? body : JSON.stringify(body)
  })

const gift = (to: Person | string, amount = 2, more: object = {}) => ({
  amount,
  recipient_email: typeof to === "string" ? to : to.email,
  kind: "gift",
  ...more
})

const made = async (from: Person, to: Person | string, amount = 2, more: object = {}) => {
  const answer = await send(from, gift(to, amount, more))
  expect(answer.status).toBe(201)
  return answer.body.result
}

const act = (who: Person, id: string, move: "accept" | "decline") =>
  service.call(`/v1/transfers/${id}/${move}`, { token: who.token, method: "POST" })
const revoke = (who: Person, id: string) => service.call(path(who, `/${id}`), { token: who.token, method: "DELETE" })
const resend = (who: Person, id: string) =>
  service.call(path(who, `/${id}/resend`), { token: who.token, method: "POST" })
const seen = async (who: Person, id: string) =>
  (await service.call(`/v1/transfers/${id}`, { token: who.token })).body.result
const account = async (who: Person) =>
  (await service.call(`/v1/tenants/${who.tenant_id}/billing`, { token: who.token })).body.result

/** A sender with 10 purchased and 6 granted credits. */
const sender = async (name = "ada") => {
  const who = await person(name)
  await fund(who, 10)
  return who
}

const refusal = ({ body, status }: Answer) => [status, body.code ?? null]

describe("a transfer", () => {
  it("is in escrow until it is accepted, and then on the recipient's balance", async () => {
    const [ada, bob] = [await sender(), await person("bob")]
    const transfer = await made(ada, bob, 2.5, { reason: "thanks", message: "for the fish" })
    expect(transfer).toMatchObject({
      status: "pending",
      kind: "gift",
      amount: 2.5,
      reason: "thanks",
      message: "for the fish",
      sender: { account_id: ada.account_id, email: ada.email },
      recipient_email: bob.email,
      recipient_account_id: bob.account_id,
      accepted_at: null,
      declined_at: null,
      revoked_at: null
    })
    expect(Date.parse(transfer.expires_at) - Date.parse(transfer.created_at)).toBe(30 * days)
    expect(await account(ada)).toMatchObject({ credits: 13.5, giftable_credits: 7.5, held_credits: 2.5 })
    expect((await service.ledger(ada))[0]).toMatchObject({
      type: "debit",
      amount: 2.5,
      balance: 13.5,
      source: "transfer_escrow",
      reference_id: transfer.id
    })
    const notices = await service.call("/v1/notifications", { token: bob.token })
    expect(notices.body.result.records).toMatchObject([
      { kind: "transfer_received", data: { transfer_id: transfer.id } }
    ])

    const accepted = await act(bob, transfer.id, "accept")
    expect(accepted.body.result).toMatchObject({ id: transfer.id, status: "accepted" })
    expect(accepted.body.result.accepted_at).not.toBeNull()
    expect(await account(ada)).toMatchObject({ credits: 13.5, held_credits: 0 })
    expect(await account(bob)).toMatchObject({ credits: 8.5, giftable_credits: 2.5, has_been_funded: true })
    expect((await service.ledger(bob))[0]).toMatchObject({
      type: "credit",
      source: "transfer_release",
      reference_id: transfer.id
    })
    // Once more changes nothing.
    expect((await act(bob, transfer.id, "accept")).status).toBe(200)
    expect(await service.balance(bob)).toBe(8.5)
    const told = await service.call("/v1/notifications", { token: ada.token })
    expect(told.body.result.records).toMatchObject([{ kind: "transfer_ended", data: { status: "accepted" } }])
  })

  it("goes back when it is declined, revoked or expired, once", async () => {
    const [ada, bob] = [await sender(), await person("bob")]
    const declined = await made(ada, bob)
    expect((await act(bob, declined.id, "decline")).body.result.status).toBe("declined")
    expect((await act(bob, declined.id, "decline")).status).toBe(200)
    const revoked = await made(ada, bob)
    expect((await revoke(ada, revoked.id)).body.result).toMatchObject({ status: "revoked" })
    expect(refusal(await revoke(ada, revoked.id))).toEqual([409, "transfer_not_pending"])
    const expired = await made(ada, bob)
    await pass(30 * days + 1)
    const [fresh, late] = [await service.signIn(ada.email), await service.signIn(bob.email)]
    expect(await seen(late, expired.id)).toMatchObject({ status: "expired" })
    for (const move of ["accept", "decline"] as const) {
      expect(refusal(await act(late, expired.id, move))).toEqual([409, "transfer_not_pending"])
    }
    expect(await account(fresh)).toMatchObject({ credits: 16, giftable_credits: 10, held_credits: 0 })
    const returns = (await service.ledger(fresh)).filter(({ source }) => source === "transfer_return")
    expect(returns.map(({ reference_id }) => reference_id)).toEqual([expired.id, revoked.id, declined.id])
  })

  it("expires by itself, without anybody looking", async () => {
    const [ada, bob] = [await sender(), await person("bob")]
    await made(ada, bob, 4)
    await pass(30 * days + 1)
    const fresh = await service.signIn(ada.email)
    for (let i = 0; i < 100 && (await account(fresh)).held_credits > 0; i++) {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    expect(await account(fresh)).toMatchObject({ credits: 16, held_credits: 0 })
  })

  it("reaches somebody who is not here yet", async () => {
    const ada = await sender()
    const transfer = await made(ada, "New.Comer@example.com", 3)
    expect(transfer).toMatchObject({ recipient_email: "new.comer@example.com", recipient_account_id: null })
    const token = await linkTo(service, "new.comer@example.com")
    const preview = await service.call(`/v1/transfer-invites/${token}`)
    expect(preview.body.result).toEqual({
      kind: "gift",
      amount: 3,
      reason: null,
      message: null,
      sender_name: transfer.sender.name,
      recipient_email_masked: "n***@example.com",
      status: "pending",
      expires_at: transfer.expires_at
    })
    const comer = await service.signIn("new.comer@example.com")
    // Coming in binds nothing by itself.
    const waiting = await service.call("/v1/transfers", { token: comer.token })
    expect(waiting.body.result).toMatchObject({
      total_records: 1,
      records: [{ id: transfer.id, recipient_account_id: null }]
    })
    expect(await service.balance(comer)).toBe(6)
    const attached = await service.call(`/v1/transfer-invites/${token}/attach`, { token: comer.token, method: "POST" })
    expect(attached.body.result).toMatchObject({ status: "pending", recipient_account_id: comer.account_id })
    expect(await service.balance(comer)).toBe(6)
    expect((await act(comer, transfer.id, "accept")).status).toBe(200)
    expect(await service.balance(comer)).toBe(9)
  })

  it("is listed by its status, a page at a time", async () => {
    const [ada, bob] = [await sender(), await person("bob")]
    const ids: Array<string> = []
    for (let i = 0; i < 5; i++) ids.push((await made(ada, bob, 1)).id)
    await act(bob, ids[0]!, "accept")
    await revoke(ada, ids[1]!)
    const list = async (who: Person, where: string, query: string) =>
      (await service.call(`${where}${query}`, { token: who.token })).body.result
    const pending = await list(ada, path(ada), "?status=pending&per_page=2")
    expect([pending.total_records, pending.total_pages]).toEqual([3, 2])
    expect(pending.records.map(({ id }: { id: string }) => id)).toEqual([ids[4], ids[3]])
    expect((await list(bob, "/v1/transfers", "?status=accepted")).records).toMatchObject([{ id: ids[0] }])
    expect((await list(ada, path(ada), "")).total_records).toBe(5)
    expect(refusal(await service.call(`${path(ada)}?status=lost`, { token: ada.token }))).toEqual([
      400,
      "invalid_request"
    ])
  })
})

describe("the amount", () => {
  it.each([
    ["1.005", 1.01],
    ["1.00499999999999999999999", 1],
    ["1.015", 1.02],
    ["0.01", 0.01],
    ["0.014999", 0.01],
    ["2e0", 2],
    ["25e-1", 2.5]
  ])("%s is rounded half-up on its decimal literal to %d", async (literal, amount) => {
    const ada = await sender()
    const { body, status } = await send(
      ada,
      `{"amount": ${literal}, "recipient_email": "x@example.com", "kind": "transfer"}`
    )
    expect([status, body.result?.amount]).toEqual([201, amount])
    expect((await account(ada)).held_credits).toBe(amount)
  })

  it.each(["0.009999", "0.00999999999999999999999", "0.005", "0", "-1", "1e-400", "1e40"])(
    "%s is refused, and nothing moves",
    async (literal) => {
      const ada = await sender()
      const answer = await send(ada, `{"amount": ${literal}, "recipient_email": "x@example.com", "kind": "transfer"}`)
      expect([answer.status, answer.body.code]).toEqual([
        422,
        literal === "1e40" ? "transfer_insufficient_credits" : "transfer_invalid"
      ])
      expect(await account(ada)).toMatchObject({ credits: 16, held_credits: 0 })
    }
  )
})

describe("the Idempotency-Key", () => {
  it("is required, and has a form", async () => {
    const ada = await sender()
    expect(refusal(await send(ada, gift("x@example.com"), ""))).toEqual([400, "idempotency_key_required"])
    for (const key of ["x".repeat(15), "x".repeat(129), "not a good key!!"]) {
      expect(refusal(await send(ada, gift("x@example.com"), key))).toEqual([400, "idempotency_key_invalid"])
    }
    for (const key of ["x".repeat(16), "_-".repeat(64)]) {
      expect((await send(ada, gift("x@example.com"), key)).status).toBe(201)
    }
  })

  it("answers the same request with its transfer as it is now, and another with 409", async () => {
    const [ada, bob] = [await sender(), await person("bob")]
    const key = freshKey()
    const first = await send(ada, gift(bob), key)
    expect(first.status).toBe(201)
    await act(bob, first.body.result.id, "accept")
    const again = await send(ada, gift(bob), key)
    expect([again.status, again.body.result]).toMatchObject([200, { id: first.body.result.id, status: "accepted" }])
    for (const other of [
      gift(bob, 3),
      gift("x@example.com"),
      gift(bob, 2, { message: "hi" }),
      { ...gift(bob), kind: "transfer" }
    ]) {
      expect(refusal(await send(ada, other, key))).toEqual([409, "idempotency_key_reused"])
    }
    expect(await service.balance(ada)).toBe(14)
    // The key is the tenant's own.
    const cyd = await sender("cyd")
    expect((await send(cyd, gift(bob), key)).status).toBe(201)
  })

  it("debits once, though fifty come at once", async () => {
    const [ada, bob] = [await sender(), await person("bob")]
    const key = freshKey()
    // More than half of what there is: a second debit would be refused, and must not be what anybody sees.
    const answers = await Promise.all(Array.from({ length: 50 }, () => send(ada, gift(bob, 6), key)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(49)
    expect(new Set(answers.map(({ body }) => body.result.id)).size).toBe(1)
    expect(await account(ada)).toMatchObject({ credits: 10, held_credits: 6 })
  })
})

describe("what races", () => {
  it("pays out once: accept against revoke", async () => {
    for (let i = 0; i < 5; i++) {
      const [ada, bob] = [await sender(), await person("bob")]
      const { id } = await made(ada, bob, 5)
      const [accepted, revoked] = await Promise.all([act(bob, id, "accept"), revoke(ada, id)])
      expect([accepted.status, revoked.status].toSorted()).toEqual([200, 409])
      const [from, to] = [await account(ada), await account(bob)]
      expect(from.held_credits).toBe(0)
      expect([from.credits, to.credits]).toEqual(accepted.status === 200 ? [11, 11] : [16, 6])
    }
  })

  it("pays out once: many accepts", async () => {
    const [ada, bob] = [await sender(), await person("bob")]
    const { id } = await made(ada, bob, 5)
    const answers = await Promise.all(Array.from({ length: 20 }, () => act(bob, id, "accept")))
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    expect(await service.balance(bob)).toBe(11)
  })

  it("never sends more than there is", async () => {
    const [ada, bob] = [await sender(), await person("bob")]
    const answers = await Promise.all(Array.from({ length: 10 }, () => send(ada, gift(bob, 3))))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(3)
    expect(await account(ada)).toMatchObject({ credits: 7, held_credits: 9, giftable_credits: 1 })
  })
})

describe("the letter", () => {
  it("can be sent again at once, then once in 12 hours; the link before works no more", async () => {
    const [ada, bob] = [await sender(), await person("bob")]
    const transfer = await made(ada, bob)
    const first = await linkTo(service, bob.email, 1)
    const again = await resend(ada, transfer.id)
    expect(again.body.result).toMatchObject({ id: transfer.id, status: "pending", expires_at: transfer.expires_at })
    const second = await linkTo(service, bob.email, 2)
    expect((await service.call(`/v1/transfer-invites/${second}`)).status).toBe(200)
    for (const rest of ["", "/attach"]) {
      const old = await service.call(`/v1/transfer-invites/${first}${rest}`, {
        token: bob.token,
        method: rest === "" ? "GET" : "POST"
      })
      expect(refusal(old)).toEqual([404, "invite_not_found"])
    }
    const soon = await resend(ada, transfer.id)
    expect(refusal(soon)).toEqual([429, "transfer_resend_too_soon"])
    expect(Number(soon.headers.get("retry-after"))).toBeGreaterThan(12 * 3600 - 60)
    await pass(12 * hours)
    const fresh = await service.signIn(ada.email)
    expect((await resend(fresh, transfer.id)).status).toBe(200)
    await linkTo(service, bob.email, 3)
    expect(await lettersTo(service, bob.email)).toHaveLength(3)
    const late = await service.signIn(bob.email)
    await act(late, transfer.id, "decline")
    expect(refusal(await resend(fresh, transfer.id))).toEqual([409, "transfer_not_pending"])
  })

  it("is previewed thirty times a minute from one address", async () => {
    await pass(60_000)
    const answers: Array<number> = []
    for (let i = 0; i < 31; i++) answers.push((await service.call("/v1/transfer-invites/unknown")).status)
    // A minute of the clock may turn meanwhile.
    expect(answers.filter((status) => status === 404).length).toBeGreaterThanOrEqual(30)
    if (!answers.includes(429)) {
      for (let i = 0; i < 31; i++) answers.push((await service.call("/v1/transfer-invites/unknown")).status)
    }
    expect(answers).toContain(429)
    const refused = await service.call("/v1/transfer-invites/unknown")
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
    await pass(60_000)
    expect((await service.call("/v1/transfer-invites/unknown")).status).toBe(404)
  })
})

describe("the error table", () => {
  it.each([
    ["reason on a transfer", { kind: "transfer", reason: "thanks" }, 422, "transfer_invalid", "reason"],
    ["message on a transfer", { kind: "transfer", message: "hi" }, 422, "transfer_invalid", "message"],
    ["an unknown reason", { reason: "because" }, 422, "transfer_invalid", "reason"],
    ["a message with half a character", { message: "\ud83d" }, 422, "transfer_invalid", "message"],
    ["a message of 281", { message: "x".repeat(281) }, 422, "transfer_invalid", "message"],
    ["an unknown kind", { kind: "loan" }, 422, "transfer_invalid", "kind"],
    ["no address", { recipient_email: "nobody" }, 422, "transfer_invalid", "recipient_email"],
    ["a missing address", { recipient_email: undefined }, 400, "invalid_request", "recipient_email"],
    ["a missing kind", { kind: undefined }, 400, "invalid_request", "kind"],
    ["an amount as text", { amount: "2" }, 400, "invalid_request", "amount"],
    ["a missing amount", { amount: undefined }, 400, "invalid_request", "amount"],
    ["a message that is no text", { message: 7 }, 400, "invalid_request", "message"]
  ])("%s", async (_, change, status, code, field) => {
    const ada = await sender()
    const answer = await send(ada, { ...gift("x@example.com"), ...change })
    expect([answer.status, answer.body.code, answer.body.details?.field]).toEqual([status, code, field])
    expect(await account(ada)).toMatchObject({ credits: 16, held_credits: 0 })
  })

  it("a name that stands twice, or a body too deep, is refused in words", async () => {
    const ada = await sender()
    const twice = await send(ada, '{"amount":1,"amount":2,"recipient_email":"x@example.com","kind":"gift"}')
    expect([twice.status, twice.body.details]).toEqual([400, { field: "", rule: "must not repeat a field" }])
    const deep = `{"amount":1,"recipient_email":"x@example.com","kind":"gift","x":${"[".repeat(9_000)}${"]".repeat(9_000)}}`
    const answer = await send(ada, deep)
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_request"])
  })

  it("says whose tenant it is before anything of the request", async () => {
    const [ada, bob] = [await sender(), await person("bob")]
    const elsewhere = await service.call(path(bob), { token: ada.token, method: "POST", raw: "{" })
    expect([elsewhere.status, elsewhere.body.error]).toEqual([
      403,
      "tenant ID in path does not match authenticated tenant"
    ])
    expect(refusal(await send(ada, "{}", ""))).toEqual([400, "idempotency_key_required"])
  })

  it("a message of 280 characters is taken, whatever they are", async () => {
    const ada = await sender()
    expect((await send(ada, gift("x@example.com", 1, { message: "🐟".repeat(280) }))).status).toBe(201)
  })

  it("granted credit cannot be sent; too little cannot either", async () => {
    const ada = await sender()
    const granted = await send(ada, gift("x@example.com", 10.01))
    expect(refusal(granted)).toEqual([422, "transfer_insufficient_giftable"])
    expect(granted.body.error).toContain("granted credits can no longer be transferred")
    expect(refusal(await send(ada, gift("x@example.com", 16.01)))).toEqual([422, "transfer_insufficient_credits"])
    await fund(ada, 5, "admin")
    expect(refusal(await send(ada, gift("x@example.com", 10.01)))).toEqual([422, "transfer_insufficient_giftable"])
    expect((await send(ada, gift("x@example.com", 10))).status).toBe(201)
  })

  it("what a call in flight has reserved cannot be sent", async () => {
    const ada = await sender()
    await service.control("/faults", { service: "chat", delay_ms: 600_000, times: 1 })
    await service.control("/calls", undefined, "DELETE")
    const call = service.call("/v1/chat/completions", {
      token: ada.token,
      // Up to 7.9 of the 16.
      json: { model: "sandbox-large", n: 128, max_tokens: 4_096, messages: [{ role: "user", content: "hi" }] }
    })
    const heard = async () => (await service.control("/calls?service=chat")).length
    await expect.poll(heard, { timeout: 60_000 }).toBe(1)
    expect(refusal(await send(ada, gift("x@example.com", 9)))).toEqual([422, "transfer_insufficient_credits"])
    await service.control("/faults", undefined, "DELETE")
    expect((await call).status).toBe(200)
    expect((await send(ada, gift("x@example.com", 9))).status).toBe(201)
  })

  it("nobody sends to themselves", async () => {
    const ada = await sender()
    expect(refusal(await send(ada, gift(ada.email.toUpperCase())))).toEqual([422, "transfer_self"])
    const bob = await person("bob", { email_verified: false })
    await fund(bob, 10)
    expect(refusal(await send(bob, gift(bob)))).toEqual([422, "transfer_self"])
  })

  it("strangers see nothing and get nothing", async () => {
    const [ada, bob, eve] = [await sender(), await person("bob"), await person("eve")]
    const { id } = await made(ada, bob)
    const token = await linkTo(service, bob.email)
    expect(refusal(await service.call(`/v1/transfers/${id}`, { token: eve.token }))).toEqual([
      404,
      "transfer_not_found"
    ])
    for (const move of ["accept", "decline"] as const) {
      expect(refusal(await act(eve, id, move))).toEqual([403, "email_mismatch"])
      expect(refusal(await act(ada, id, move))).toEqual([403, "email_mismatch"])
      expect(refusal(await act(bob, "trf_none", move))).toEqual([404, "transfer_not_found"])
    }
    const attach = await service.call(`/v1/transfer-invites/${token}/attach`, { token: eve.token, method: "POST" })
    expect(refusal(attach)).toEqual([403, "email_mismatch"])
    expect(refusal(await revoke(eve, id))).toEqual([404, "transfer_not_found"])
    expect(refusal(await resend(eve, id))).toEqual([404, "transfer_not_found"])
    const others = await service.call(path(ada, `/${id}`), { token: eve.token, method: "DELETE" })
    expect([others.status, others.body.error]).toEqual([403, "tenant ID in path does not match authenticated tenant"])
    expect((await seen(ada, id)).status).toBe("pending")
    expect((await service.call("/v1/transfers", { token: eve.token })).body.result.records).toEqual([])
  })

  it("an address that was not verified receives nothing", async () => {
    const ada = await sender()
    const bob = await person("bob", { email_verified: false })
    const { id } = await made(ada, bob)
    expect(refusal(await act(bob, id, "accept"))).toEqual([403, "email_mismatch"])
    const verified = await service.signIn(bob.email)
    expect((await act(verified, id, "accept")).status).toBe(200)
  })

  it("a suspended billing account sends nothing", async () => {
    const ada = await sender()
    await service.control(`/tenants/${ada.tenant_id}`, { billing_status: "suspended" })
    expect(refusal(await send(ada, gift("x@example.com")))).toEqual([409, "billing_account_inactive"])
  })

  it("a suspended or closed billing account still receives, and gets back what it sent", async () => {
    for (const billing_status of ["suspended", "closed"]) {
      const [ada, bob] = [await sender(), await person("bob")]
      const [{ id: accepted }, { id: expired }] = [await made(ada, bob, 3), await made(ada, bob, 2)]
      for (const { tenant_id } of [ada, bob]) await service.control(`/tenants/${tenant_id}`, { billing_status })
      expect((await act(bob, accepted, "accept")).status).toBe(200)
      expect(await account(bob)).toMatchObject({ status: billing_status, credits: 9, giftable_credits: 3 })
      expect(await account(ada)).toMatchObject({ credits: 11, held_credits: 2 })
      expect((await revoke(ada, expired)).status).toBe(200)
      expect(await account(ada)).toMatchObject({ credits: 13, held_credits: 0 })
    }
  })

  it("in a shared tenant, owners and admins send", async () => {
    const [ada, bob] = [await sender(), await person("bob")]
    await service.call(`/v1/tenants/${ada.tenant_id}/invites`, { token: ada.token, json: { email: bob.email } })
    const invite = await linkTo(service, bob.email)
    await service.call(`/v1/tenant-invites/${invite}/accept`, { token: bob.token, method: "POST" })
    const { client_id } = await service.sandbox()
    const there = await service.call("/v1/auth/token", {
      json: { client_id, grant_type: "refresh_token", refresh_token: bob.refresh_token, tenant_id: ada.tenant_id }
    })
    const member = { ...bob, token: there.body.result.access_token, tenant_id: ada.tenant_id }
    expect(refusal(await send(member, gift("x@example.com")))).toEqual([403, "insufficient_role"])

    // From Ada's tenant to Ada: it reaches the balance that it came from, and is booked as what it is.
    await service.call(`/v1/tenants/${ada.tenant_id}/members/${bob.account_id}`, {
      token: ada.token,
      method: "PATCH",
      json: { role: "admin" }
    })
    const { id } = await made(member, ada)
    expect((await act(ada, id, "accept")).status).toBe(200)
    expect(await account(ada)).toMatchObject({ credits: 16, held_credits: 0 })
    const ledger = await service.call(`/v1/tenants/${ada.tenant_id}/billing/ledger`, { token: ada.token })
    expect(ledger.body.result.records[0]).toMatchObject({ type: "credit", source: "transfer_release", amount: 2 })
    // The sender sees it from wherever they are.
    expect(await seen(bob, id)).toMatchObject({ status: "accepted" })
  })
})
