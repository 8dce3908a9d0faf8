/** Money in, from outside: checkout, webhooks, refunds, auto-reload and alerts, over a steered clock and a processor that fails. */
import { createHmac } from "node:crypto"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { lettersTo } from "../support/mail.ts"
import { commandHere } from "../support/CommandLine.ts"
import { command, start } from "../support/Service.ts"
import type { Answer, Person, Service } from "../support/Service.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

let people = 0
const person = () => service.signIn(`payer${++people}@example.com`)
const minutes = 60_000
/** How far the service's clock was moved. */
let shifted = 0
const pass = (advance_ms: number) => {
  shifted += advance_ms
  return service.control("/clock", { advance_ms })
}
const fault = (more: object) => service.control("/faults", { service: "payments", times: 1, ...more })

const billing = (who: Person, rest: string, options: object = {}, on = service): Promise<Answer> =>
  on.call(`/v1/tenants/${who.tenant_id}/billing${rest}`, { token: who.token, ...options })

const refusal = ({ body, status }: Answer) => [status, body.code]

const checkout = async (who: Person, amount_credits = 20): Promise<string> => {
  const { body, status } = await billing(who, "/checkout", { json: { amount_credits } })
  expect(status).toBe(200)
  return body.result.checkout_url
}

const purchases = async (who: Person) => (await service.ledger(who)).filter(({ source }) => source === "purchase")

const eventually = async <A>(look: () => Promise<A | undefined>): Promise<A> => {
  for (let i = 0; i < 400; i++) {
    const found = await look()
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
  throw new Error("it did not come to that")
}

/** Stores the card that works. */
const withCard = async (who: Person) => {
  const { body } = await billing(who, "/payment-methods/setup", { method: "POST" })
  await service.call(body.result.setup_url)
  return who
}

const put = (who: Person, auto_reload: object, alerts?: object) =>
  billing(who, "/auto-reload", { method: "PUT", json: { auto_reload, ...(alerts !== undefined && { alerts }) } })
const reload = async (who: Person, on = service) => (await billing(who, "/auto-reload", {}, on)).body.result
const charge = (who: Person) => billing(who, "/auto-reload/charge", { method: "POST" })

const enabled = { enabled: true, threshold_usd: 5.9, amount_credits: 7, payment_method_id: "pm_card_visa" }

/** Costs 0.15 of the 6. */
const spend = (who: Person, on = service) =>
  on.call("/v1/tools/media/generate", {
    token: who.token,
    json: { model: "sandbox-image", prompt: "x", num_images: 4 }
  })
const spent = async (who: Person, on = service) => {
  const { body } = await spend(who, on)
  await on.control("/media", { request_id: body.request_id, status: "COMPLETED" })
  await on.call(`/v1/tools/media/status?request_id=${body.request_id}`, { token: who.token })
}

const charges = async (who: Person) =>
  (await service.control("/calls?service=payments&limit=10000")).filter(
    ({ body, path }: { body: string; path: string }) =>
      path === "/v1/payment_intents" && decodeURIComponent(String(body)).includes(who.tenant_id)
  )

describe("a checkout", () => {
  it("credits a purchase once it is paid, which may be sent on", async () => {
    const who = await person()
    const url = await checkout(who, 20)
    expect(await service.balance(who)).toBe(6)
    expect((await service.call(url)).status).toBe(200)
    const account = (await billing(who, "")).body.result
    expect(account).toMatchObject({ credits: 26, giftable_credits: 20, has_been_funded: true })
    expect(await purchases(who)).toMatchObject([{ type: "credit", amount: 20, source: "purchase" }])
    // Opening the page again pays nothing again.
    await service.call(url)
    expect(await service.balance(who)).toBe(26)
    const methods = (await billing(who, "/payment-methods")).body.result.payment_methods
    expect(methods.map(({ id }: { id: string }) => id)).toEqual(["pm_card_visa", "pm_card_declined"])
    expect(methods[0]).toMatchObject({ type: "card", brand: "visa", last4: "4242" })
  })

  it.each([4, 10_001, 5.5, "20", undefined])("takes whole credits from 5 to 10000, not %s", async (amount_credits) => {
    const answer = await billing(await person(), "/checkout", { json: { amount_credits } })
    expect([...refusal(answer), answer.body.details.field]).toEqual([400, "invalid_request", "amount_credits"])
  })

  it("reaches the processor 60 times a minute at most, with all that an account asks of it", async () => {
    const [who, other] = [await person(), await person()]
    const ask = [
      () => billing(who, "/checkout", { json: { amount_credits: 5 } }),
      () => billing(who, "/payment-methods/setup", { method: "POST" }),
      () => billing(who, "/payment-methods"),
      () => put(who, enabled)
    ]
    // The minutes are those of the clock: the requests may fall into two of them.
    const answers = await Promise.all(Array.from({ length: 2 * 60 + 4 }, (_, i) => ask[i % ask.length]!()))
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused.length).toBeGreaterThan(0)
    for (const answer of refused) {
      expect(refusal(answer)).toEqual([429, "rate_limited"])
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0)
    }
    expect((await billing(other, "/payment-methods")).status).toBe(200)
    await pass(minutes)
    expect((await billing(who, "/payment-methods")).status).toBe(200)
  })

  it("is for the tenant's own people", async () => {
    const [who, other] = [await person(), await person()]
    const answer = await service.call(`/v1/tenants/${who.tenant_id}/billing/checkout`, {
      token: other.token,
      json: { amount_credits: 5 }
    })
    expect(answer.body.error).toBe("tenant ID in path does not match authenticated tenant")
  })

  it("says so when the processor does not answer", async () => {
    const who = await person()
    await fault({ drop: true, times: 2 })
    expect(refusal(await billing(who, "/checkout", { json: { amount_credits: 5 } }))).toEqual([
      503,
      "payments_unavailable"
    ])
    await service.control("/faults", undefined, "DELETE")
  })
})

describe("webhooks", () => {
  it("each delivered fifty times in parallel, in any order: one credit", async () => {
    const who = await person()
    await service.call(await checkout(who, 10))
    const events = (await service.control("/webhooks")).filter((one: { event: unknown }) =>
      JSON.stringify(one.event).includes(who.tenant_id)
    )
    expect(events.map(({ type }: { type: string }) => type).toSorted()).toEqual([
      "checkout.session.completed",
      "payment_intent.succeeded"
    ])
    const again = Array.from({ length: 100 }, (_, i) => service.control(`/webhooks/${events[i % 2].id}`, {}))
    for (const { status } of await Promise.all(again)) expect(status).toBe(200)
    expect(await purchases(who)).toHaveLength(1)
    expect(await service.balance(who)).toBe(16)
  })

  it("that nobody signed do nothing", async () => {
    const who = await person()
    await service.call(await checkout(who, 10))
    const [{ event }] = await service.control("/webhooks")
    const forged = JSON.stringify({ ...event, id: "evt_forged" })
    for (const headers of [
      {},
      { "stripe-signature": "t=1,v1=00" },
      { "stripe-signature": `t=${Date.now() / 1000},v1=` }
    ]) {
      const answer = await service.call("/v1/webhooks/stripe", {
        raw: forged,
        headers: headers as Record<string, string>
      })
      expect(refusal(answer)).toEqual([400, "webhook_signature_invalid"])
    }
    expect(await service.balance(who)).toBe(16)
  })

  it("do the same in whichever order they come, and however often; an inquiry takes nothing", async () => {
    const deliveries = async (
      after: (payment: string) => Promise<unknown>,
      mix: <A>(all: ReadonlyArray<A>) => Array<A>
    ) => {
      const who = await person()
      await service.control("/webhooks", { hold: true })
      await service.call(await checkout(who, 10))
      const [{ event }] = await service.control("/webhooks")
      const payment = event.data.object.id
      await after(payment)
      await service.control("/webhooks", { hold: false })
      const ids: ReadonlyArray<string> = (await service.control("/webhooks"))
        .filter((one: { event: unknown }) => JSON.stringify(one.event).includes(payment))
        .map(({ id }: { id: string }) => id)
      for (const [i, id] of mix([...ids, ...ids]).entries()) {
        const { status } = await service.control(`/webhooks/${id}`, { as_new: i % 3 === 0 })
        expect(status).toBe(200)
      }
      return service.balance(who)
    }
    const happens =
      (...what: ReadonlyArray<[string, object]>) =>
      async (payment: string) => {
        for (const [one, body] of what) {
          expect((await service.control(`/payments/${payment}/${one}`, body)).events).toBeDefined()
        }
      }
    const newestFirst = <A>(all: ReadonlyArray<A>) => [...all]
    const oldestFirst = <A>(all: ReadonlyArray<A>) => all.toReversed()
    const oddsFirst = <A>(all: ReadonlyArray<A>) => [
      ...all.filter((_, i) => i % 2 === 1),
      ...all.filter((_, i) => i % 2 === 0)
    ]
    for (const mix of [newestFirst, oldestFirst, oddsFirst]) {
      expect(await deliveries(happens(["refund", { amount: 3 }], ["refund", {}], ["refund_fail", {}]), mix)).toBe(13)
      expect(await deliveries(happens(["inquire", {}]), mix)).toBe(16)
      expect(await deliveries(happens(["dispute", {}], ["win", {}]), mix)).toBe(16)
      expect(await deliveries(happens(["refund", { amount: 3 }], ["dispute", { amount: 7 }], ["lose", {}]), mix)).toBe(
        6
      )
    }
  })

  it("of a payment by a method that takes days credit it when it is paid, if it is", async () => {
    for (const [end, balance] of [
      ["settle", 26],
      ["fail", 6]
    ] as const) {
      const who = await person()
      await service.call(`${await checkout(who, 20)}?method=delayed`)
      expect(await service.balance(who)).toBe(6)
      const [{ event }] = await service.control("/webhooks")
      await service.control(`/payments/${event.data.object.payment_intent}/${end}`, {})
      expect(await service.balance(who)).toBe(balance)
    }
  })

  it("that are signed and make no sense say so", async () => {
    const post = (raw: string) => {
      const timestamp = Math.floor(Date.now() / 1_000) + shifted / 1_000
      const signature = createHmac("sha256", "whsec_sandbox").update(`${timestamp}.${raw}`).digest("hex")
      return service.call("/v1/webhooks/stripe", {
        raw,
        headers: { "content-type": "application/json", "stripe-signature": `t=${timestamp},v1=${signature}` }
      })
    }
    const intent = {
      id: "evt_1",
      type: "payment_intent.succeeded",
      data: { object: { id: "pi_1", amount_received: "ten" } }
    }
    for (const [raw, field] of [
      ["{", ""],
      ["[]", ""],
      ['{"id":"evt_1","type":"x"}', "data"],
      [JSON.stringify(intent), "data.object.amount_received"]
    ] as const) {
      const answer = await post(raw)
      expect([raw, ...refusal(answer), answer.body.details.field]).toEqual([raw, 400, "invalid_request", field])
    }
    expect((await post('{"id":"evt_1","type":"constructor","data":{"object":{}}}')).status).toBe(200)
  })

  it("about a payment that never comes are listed by the command", async () => {
    const who = await person()
    await service.control("/webhooks", { hold: true })
    await service.call(await checkout(who, 10))
    const [{ event }] = await service.control("/webhooks")
    await service.control("/webhooks", { hold: false })
    await service.control(`/payments/${event.data.object.id}/dispute`, {})
    const { stdout } = await commandHere(["owed"], { DATA_DIR: service.folder })
    expect(stdout).toContain(`${event.data.object.id} was refunded or disputed (events: 1`)
    expect(await service.balance(who)).toBe(6)
  })

  it("credit on its way to a recipient waits while its payment is owed, and pays the debt when it returns", async () => {
    const [who, friend] = [await person(), await person()]
    const before = await service.balance(who)
    await service.call(await checkout(who, 10))
    const { reference_id } = await eventually(async () => (await purchases(who))[0])
    const sent = await billing(who, "/transfers", {
      json: { amount: 10, recipient_email: friend.email, kind: "transfer" },
      headers: { "idempotency-key": "sender-owes-0123456789" }
    })
    expect(sent.status).toBe(201)
    const accepted = () =>
      service.call(`/v1/transfers/${sent.body.result.id}/accept`, { method: "POST", token: friend.token })
    await service.control(`/payments/${reference_id}/refund`, {})
    await eventually(async () => ((await service.balance(who)) < before ? true : undefined))
    const refused = await accepted()
    expect(refusal(refused)).toEqual([422, "transfer_invalid"])
    expect(JSON.stringify(refused.body)).toContain("the credit for this transfer is not available now")
    expect(JSON.stringify(refused.body)).not.toMatch(/owe|debt|refund|dispute/)
    await service.call(`/v1/transfers/${sent.body.result.id}/decline`, { method: "POST", token: friend.token })
    expect(await service.balance(who)).toBe(before)
    expect(await service.balance(friend)).toBe(before)
  })

  it("a refund is taken back once, without a balance below zero; the rest is owed", async () => {
    const who = await person()
    await service.call(await checkout(who, 10))
    // 10 of the 16 go to somebody else.
    await service.call(`/v1/tenants/${who.tenant_id}/billing/transfers`, {
      token: who.token,
      headers: { "idempotency-key": "refund-0123456789" },
      json: { amount: 8, recipient_email: "x@example.com", kind: "transfer" }
    })
    const [{ reference_id }] = await purchases(who)
    const { event_id } = await service.control(`/payments/${reference_id}/refund`, {})
    await Promise.all(Array.from({ length: 10 }, () => service.control(`/webhooks/${event_id}`, {})))
    expect(await service.balance(who)).toBe(0)
    expect((await purchases(who)).map(({ amount, type }) => [type, amount])).toEqual([
      ["debit", 8],
      ["credit", 10]
    ])
    const { stdout } = await commandHere(["owed"], { DATA_DIR: service.folder })
    expect(stdout).toContain(`${who.tenant_id}`)
    expect(stdout).toContain("2 USD")
    const listed = (await billing(who, "/payments")).body.result
    expect(listed).toMatchObject({ total_records: 1, total_pages: 1 })
    expect(listed.records).toMatchObject([
      {
        id: reference_id,
        kind: "checkout",
        amount: 10,
        taken_back: 8,
        owed: 2,
        movements: [{ kind: "refund", amount: 10 }]
      }
    ])
  })

  it("each is listed to its tenant, the newest first", async () => {
    const [who, other] = [await person(), await person()]
    for (const amount of [5, 6, 7]) {
      await service.call(await checkout(who, amount))
      await pass(1_000)
    }
    const page = (await billing(who, "/payments?per_page=2")).body.result
    expect([page.total_records, page.records.map(({ amount }: { amount: number }) => amount)]).toEqual([3, [7, 6]])
    expect(page.records[0]).toMatchObject({ taken_back: 0, owed: 0, movements: [] })
    expect((await billing(other, "/payments")).body.result.records).toEqual([])
    const theirs = await service.call(`/v1/tenants/${who.tenant_id}/billing/payments`, { token: other.token })
    expect(theirs.status).toBe(403)
  })

  it("a dispute is taken back, and comes back when it is won", async () => {
    const who = await person()
    await service.call(await checkout(who, 10))
    const [{ reference_id }] = await purchases(who)
    const disputed = await service.control(`/payments/${reference_id}/dispute`, {})
    await service.control(`/webhooks/${disputed.event_id}`, {})
    expect(await service.balance(who)).toBe(6)
    const won = await service.control(`/payments/${reference_id}/win`, {})
    await service.control(`/webhooks/${won.event_id}`, {})
    expect(await service.balance(who)).toBe(16)
  })

  it("the books agree with all of it", async () => {
    const { stdout } = await commandHere(["verify"], { DATA_DIR: service.folder })
    expect(stdout).toContain("every invariant of the books holds")
  })
})

describe("auto-reload settings", () => {
  it("have defaults, and are replaced whole", async () => {
    const who = await withCard(await person())
    expect(await reload(who)).toEqual({
      configured: false,
      auto_reload: {
        enabled: false,
        threshold_usd: 2,
        amount_credits: 10,
        payment_method_id: null,
        state: "disabled",
        last_charged_at: null,
        last_error: null,
        disabled_reason: null,
        in_flight_started_at: null,
        failures: 0,
        free_at: null
      },
      alerts: { enabled: false, warn_threshold_usd: null, rearm_threshold_usd: null },
      alerts_warned: false
    })
    const set = await put(who, enabled, { enabled: true, warn_threshold_usd: 1, rearm_threshold_usd: 3 })
    expect(set.body.result).toMatchObject({
      configured: true,
      auto_reload: { ...enabled, state: "idle" },
      alerts: { enabled: true, warn_threshold_usd: 1, rearm_threshold_usd: 3 }
    })
    const replaced = await put(who, { enabled: false })
    expect(replaced.body.result).toMatchObject({
      configured: false,
      auto_reload: { enabled: false, threshold_usd: 2, amount_credits: 10, payment_method_id: null },
      alerts: { enabled: false, warn_threshold_usd: null }
    })
  })

  it.each([
    [{ auto_reload: { enabled: "yes" } }, "auto_reload.enabled"],
    [{ auto_reload: {} }, "auto_reload.enabled"],
    [{}, "auto_reload"],
    [{ auto_reload: { enabled: false, threshold_usd: 0.009 } }, "auto_reload.threshold_usd"],
    [{ auto_reload: { enabled: false, threshold_usd: 10_000.01 } }, "auto_reload.threshold_usd"],
    [{ auto_reload: { enabled: false, amount_credits: 4 } }, "auto_reload.amount_credits"],
    [{ auto_reload: { enabled: false, amount_credits: 10_001 } }, "auto_reload.amount_credits"],
    [{ auto_reload: { enabled: false, amount_credits: 5.5 } }, "auto_reload.amount_credits"],
    [{ auto_reload: { enabled: false, surprise: 1 } }, "auto_reload.surprise"],
    [{ auto_reload: { enabled: false }, surprise: 1 }, "surprise"],
    [{ auto_reload: { enabled: false }, alerts: { enabled: true } }, "alerts.warn_threshold_usd"],
    [
      { auto_reload: { enabled: false }, alerts: { enabled: true, warn_threshold_usd: 5, rearm_threshold_usd: 4 } },
      "alerts.rearm_threshold_usd"
    ]
  ])("refuse %j", async (json, field) => {
    const answer = await billing(await person(), "/auto-reload", { method: "PUT", json })
    expect([...refusal(answer), answer.body.details.field]).toEqual([400, "invalid_request", field])
  })

  it("need a stored payment method", async () => {
    const who = await person()
    expect(refusal(await put(who, { enabled: true }))).toEqual([400, "payment_method_required"])
    expect(refusal(await put(who, { enabled: true, payment_method_id: "pm_none" }))).toEqual([
      400,
      "payment_method_not_found"
    ])
    expect(refusal(await put(who, enabled))).toEqual([400, "payment_method_not_found"])
    expect((await put(await withCard(who), enabled)).status).toBe(200)
  })

  it("are unconfigured where the deployment has no processor", async () => {
    const without = await start({ env: { SANDBOX_PAYMENTS: "off" } })
    try {
      const who = await without.signIn("nobody@example.com")
      const path = `/v1/tenants/${who.tenant_id}/billing/auto-reload`
      expect((await without.call(path, { token: who.token })).body.result.configured).toBe(false)
      const set = await without.call(path, { token: who.token, method: "PUT", json: { auto_reload: enabled } })
      expect(refusal(set)).toEqual([503, "auto_reload_unconfigured"])
      const charged = await without.call(`${path}/charge`, { token: who.token, method: "POST" })
      expect(refusal(charged)).toEqual([503, "auto_reload_unconfigured"])
    } finally {
      await without.discard()
    }
  })
})

describe("a charge on demand", () => {
  it("credits at once, then cools down for ten minutes", async () => {
    const who = await withCard(await person())
    expect(refusal(await charge(who))).toEqual([409, "auto_reload_disabled"])
    await put(who, enabled)
    const { body, status } = await charge(who)
    expect([status, body.result.auto_reload.state]).toEqual([200, "cooldown"])
    expect(body.result.auto_reload.last_charged_at).not.toBeNull()
    expect(await service.balance(who)).toBe(13)
    expect(await purchases(who)).toMatchObject([{ amount: 7 }])
    expect(refusal(await charge(who))).toEqual([409, "auto_reload_busy"])
    await pass(10 * minutes)
    expect((await reload(who)).auto_reload.state).toBe("idle")
    expect((await charge(who)).status).toBe(200)
    expect(await service.balance(who)).toBe(20)
  })

  it("that is declined says so; three in a row switch it off", async () => {
    const who = await person()
    const money = `money${people}@example.com`
    await billing(who, "", { method: "PATCH", json: { billing_emails: [money] } })
    await put(who, { ...enabled, payment_method_id: "pm_card_declined" })
    for (let i = 1; i <= 3; i++) {
      const declined = await charge(who)
      expect([...refusal(declined), declined.body.error]).toEqual([402, "payment_declined", "Your card was declined."])
      if (i < 3) {
        expect((await reload(who)).auto_reload).toMatchObject({
          state: "failed",
          last_error: "Your card was declined.",
          disabled_reason: null
        })
        expect(refusal(await charge(who))).toEqual([409, "auto_reload_busy"])
        await pass(10 * minutes)
      }
    }
    expect((await reload(who)).auto_reload).toMatchObject({
      enabled: false,
      state: "disabled",
      disabled_reason: "payment_failed"
    })
    expect(refusal(await charge(who))).toEqual([409, "auto_reload_disabled"])
    const letters = await eventually(async () => {
      const sent = await lettersTo(service, money)
      return sent.length > 0 ? sent : undefined
    })
    expect(letters).toHaveLength(1)
    const told = await service.call("/v1/notifications", { token: who.token })
    expect(told.body.result.records).toMatchObject([{ kind: "auto_reload_failed" }])
    expect(await service.balance(who)).toBe(6)
    // Setting it again begins anew, but the ten minutes bind.
    const again = await put(await withCard(who), enabled)
    expect(again.body.result.auto_reload).toMatchObject({ state: "idle", disabled_reason: null, last_error: null })
    expect(refusal(await charge(who))).toEqual([409, "auto_reload_busy"])
  })
})

describe("auto-reload", () => {
  it("is set off once by the charge that crosses the threshold, however many cross it at once", async () => {
    const who = await withCard(await person())
    await put(who, enabled)
    expect(await charges(who)).toHaveLength(0)
    await Promise.all(Array.from({ length: 8 }, () => spent(who)))
    await eventually(async () => ((await purchases(who)).length > 0 ? true : undefined))
    await Promise.all(Array.from({ length: 8 }, () => spent(who)))
    expect(await charges(who)).toHaveLength(1)
    expect(await purchases(who)).toHaveLength(1)
    expect((await reload(who)).auto_reload.state).toBe("cooldown")
  })

  it("a thousand calls below the threshold are one attempt", async () => {
    const who = await withCard(await person())
    await put(who, { ...enabled, threshold_usd: 10_000 })
    const call = () => service.call("/v1/search?query=x", { token: who.token })
    for (let i = 0; i < 20; i++) await Promise.all(Array.from({ length: 50 }, call))
    expect(await charges(who)).toHaveLength(1)
    // 1000 queries at 0.005 of 6 + 7.
    expect(await service.balance(who)).toBe(8)
    await pass(10 * minutes)
    await call()
    await eventually(async () => ((await charges(who)).length === 2 ? true : undefined))
  })

  it("a processor that hangs up is asked again under the same name, and charges once", async () => {
    const who = await withCard(await person())
    await put(who, enabled)
    await fault({ drop: true })
    await spent(who)
    const flying = await eventually(async () => {
      const { auto_reload } = await reload(who)
      return auto_reload.state === "in_flight" && (await charges(who)).length > 0 ? auto_reload : undefined
    })
    expect(flying.in_flight_started_at).not.toBeNull()
    expect(refusal(await charge(who))).toEqual([409, "auto_reload_busy"])
    await pass(5_000)
    // The webhook may bring the credit before the answer brings the end.
    const over = await eventually(async () => {
      const { auto_reload } = await reload(who)
      return auto_reload.state === "in_flight" ? undefined : auto_reload
    })
    expect(over).toMatchObject({ state: "cooldown", in_flight_started_at: null })
    expect(await purchases(who)).toHaveLength(1)
  })

  it("survives the process: an attempt in flight is finished by the next one, once", async () => {
    const first = await start()
    const who = await first.signIn("killed@example.com")
    const setup = await billing(who, "/payment-methods/setup", { method: "POST" }, first)
    await first.call(setup.body.result.setup_url)
    await billing(who, "/auto-reload", { method: "PUT", json: { auto_reload: enabled } }, first)
    await first.control("/faults", { service: "payments", delay_ms: 60_000, times: 1 })
    await spent(who, first)
    await eventually(async () => ((await reload(who, first)).auto_reload.state === "in_flight" ? true : undefined))
    await first.end("SIGKILL")
    const second = await start({ folder: first.folder })
    try {
      // Over PostgreSQL another node might be at it, to which it is left for a while.
      await second.control("/clock", { advance_ms: 120_000 })
      await eventually(async () =>
        (await second.ledger(who)).some(({ source }) => source === "purchase") ? true : undefined
      )
      // The webhook may bring the credit before the answer brings the end.
      const over = await eventually(async () => {
        const { auto_reload } = await reload(who, second)
        return auto_reload.state === "in_flight" ? undefined : auto_reload
      })
      expect(over.state).toBe("cooldown")
      expect((await second.ledger(who)).filter(({ source }) => source === "purchase")).toHaveLength(1)
    } finally {
      await second.discard()
    }
  })
})

describe("an alert", () => {
  /** Somebody who is told below `warn`, and again after having been above `rearm`. */
  const alerted = async (warn_threshold_usd: number, rearm_threshold_usd: number) => {
    const who = await person()
    const money = `alert${people}@example.com`
    await billing(who, "", { method: "PATCH", json: { billing_emails: [money] } })
    const set = await put(who, { enabled: false }, { enabled: true, warn_threshold_usd, rearm_threshold_usd })
    expect(set.status).toBe(200)
    const sent = async () => (await lettersTo(service, money)).length
    const letters = (count: number) => eventually(async () => ((await sent()) >= count ? true : undefined))
    const credit = (amount: number) =>
      service.control("/credit", { tenant_id: who.tenant_id, amount, source: "purchase" })
    return { who, sent, letters, credit }
  }
  let transfers = 0
  const transfer = async (who: Person, amount: number): Promise<string> => {
    const { body, status } = await service.call(`/v1/tenants/${who.tenant_id}/billing/transfers`, {
      token: who.token,
      headers: { "idempotency-key": `alert-0123456789-${++transfers}` },
      json: { amount, recipient_email: `x${transfers}@example.com`, kind: "transfer" }
    })
    expect(status).toBe(201)
    return body.result.id
  }

  it("comes once below its threshold, and again once the balance was above the other", async () => {
    const { credit, letters, sent, who } = await alerted(5.9, 8)
    expect((await billing(who, "/auto-reload")).body.result.alerts_warned).toBe(false)
    await spent(who)
    await letters(1)
    expect((await billing(who, "/auto-reload")).body.result.alerts_warned).toBe(true)
    await spent(who)
    await spent(who)
    expect(await sent()).toBe(1)
    const told = await service.call("/v1/notifications", { token: who.token })
    expect(told.body.result.records).toMatchObject([{ kind: "low_balance" }])
    // Up, but not above the second threshold.
    await credit(2)
    for (let i = 0; i < 10; i++) await spent(who)
    expect(await sent()).toBe(1)
    await credit(5)
    // Down by sending it away.
    const { credits } = (await billing(who, "")).body.result
    const id = await transfer(who, Math.floor(credits - 4))
    await letters(2)
    // Up by what comes back, and down by sending it away again.
    const revoked = await billing(who, `/transfers/${id}`, { method: "DELETE" })
    expect(revoked.status).toBe(200)
    await transfer(who, Math.floor(credits - 4))
    await letters(3)
    expect(await sent()).toBe(3)
  })

  it("comes again after a grant by a command in another process", async () => {
    const { letters, sent, who } = await alerted(5.9, 8)
    await spent(who)
    await letters(1)
    const granted = await command(["grant", "--tenant", who.tenant_id, "--amount", "2.3"], { DATA_DIR: service.folder })
    expect(granted.stdout).toContain("granted")
    for (let i = 0; i < 16; i++) await spent(who)
    await letters(2)
    expect(await sent()).toBe(2)
  })

  it("comes by a refund, and by a dispute, and again after the dispute was won", async () => {
    const { letters, sent, who } = await alerted(10, 12)
    const pays = async () => {
      await service.call(await checkout(who, 10))
      return (await purchases(who))[0].reference_id
    }
    const one = await pays()
    await service.control(`/payments/${one}/refund`, {})
    await letters(1)
    const other = await pays()
    await service.control(`/payments/${other}/dispute`, {})
    await letters(2)
    await service.control(`/payments/${other}/win`, {})
    expect(await service.balance(who)).toBe(16)
    await service.control(`/payments/${other}/refund`, {})
    await letters(3)
    expect(await sent()).toBe(3)
  })

  it("takes any thresholds from 0, and compares them only while it is enabled", async () => {
    const who = await person()
    const alerts = { enabled: false, warn_threshold_usd: 5, rearm_threshold_usd: 0 }
    expect((await put(who, { enabled: false }, alerts)).body.result.alerts).toEqual(alerts)
    const dear = { enabled: true, warn_threshold_usd: 20_000.5, rearm_threshold_usd: 1_000_000 }
    expect((await put(who, { enabled: false }, dear)).body.result.alerts).toEqual(dear)
    for (const wrong of [
      { ...dear, rearm_threshold_usd: 1 },
      { ...dear, warn_threshold_usd: -1 }
    ]) {
      expect(refusal(await put(who, { enabled: false }, wrong))).toEqual([400, "invalid_request"])
    }
  })
})

describe("auto-reload is set off", () => {
  it("by a refund that lowers the balance, and by what was spent while it had to wait", async () => {
    const who = await withCard(await person())
    await service.call(await checkout(who, 10))
    const [{ reference_id }] = await purchases(who)
    await put(who, { ...enabled, threshold_usd: 10 })
    await service.control(`/payments/${reference_id}/refund`, {})
    // 16 less the 10 that were refunded, and 7 by the reload.
    await eventually(async () => ((await service.balance(who)) === 13 ? true : undefined))
    for (let i = 0; i < 24; i++) await spent(who)
    expect(await charges(who)).toHaveLength(1)
    // Nothing more is spent: the end of the ten minutes is enough.
    await pass(10 * minutes)
    await eventually(async () => ((await charges(who)).length === 2 ? true : undefined))
  })

  it("by no movement of an account that is suspended, until it is active again", async () => {
    const who = await withCard(await person())
    await service.call(await checkout(who, 10))
    const [{ reference_id }] = await purchases(who)
    await put(who, { ...enabled, threshold_usd: 10 })
    const status = (billing_status: string) => service.control(`/tenants/${who.tenant_id}`, { billing_status })
    await status("suspended")
    await service.control(`/payments/${reference_id}/refund`, {})
    await pass(11 * minutes)
    expect(await charges(who)).toHaveLength(0)
    await status("active")
    await pass(11 * minutes)
    let looks = 0
    await eventually(async () => {
      // The look before may have come after that: then the next one is this much later.
      if (++looks % 50 === 0) await pass(11 * minutes)
      return (await service.balance(who)) === 13 ? true : undefined
    })
  })
})
