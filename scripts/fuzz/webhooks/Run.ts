/** Sends the payment processor's events. Unsigned events must not change anything. Signed events must each take effect once, in any order. */
import fc from "fast-check"
import type { Answer } from "../../../test/support/Service.ts"
import { hostileTexts, literals, placesIn } from "../Hostile.ts"
import { signatureOf, signed } from "./World.ts"
import type { World } from "./World.ts"

export interface Options {
  readonly seed: number
  readonly events: number
  readonly until?: number
}

let made = 0

const event = (type: string, object: object): string =>
  JSON.stringify({
    id: `evt_fuzz_${++made}`,
    object: "event",
    api_version: "2025-01-01",
    created: 1,
    livemode: false,
    type,
    data: { object }
  })

const intent = (id: string, tenant_id: string, cents: number) => ({
  id,
  object: "payment_intent",
  amount: cents,
  amount_received: cents,
  currency: "usd",
  status: "succeeded",
  metadata: { tenant_id, kind: "checkout" }
})

const session = (id: string, tenant_id: string, cents: number) => ({
  id: `cs_${id}`,
  object: "checkout.session",
  mode: "payment",
  payment_status: "paid",
  payment_intent: id,
  amount_total: cents,
  currency: "usd",
  metadata: { tenant_id }
})

const refund = (payment: string, id: string, cents: number, status = "succeeded") => ({
  id,
  object: "refund",
  amount: cents,
  currency: "usd",
  payment_intent: payment,
  status
})

const dispute = (payment: string, cents: number) => ({
  id: `dp_${payment}`,
  object: "dispute",
  amount: cents,
  currency: "usd",
  payment_intent: payment,
  status: "x"
})

// ---- unsigned events ------------------------------------------------------------------------------------------------------------------

type Forgery = (body: string) => readonly [body: Buffer | string, signature: string | undefined]

const seconds = () => Math.floor(Date.now() / 1_000)

const withByte =
  (at: number, byte: number, how: "other" | "more" | "less"): Forgery =>
  (body) => {
    const bytes = Buffer.from(body)
    const place = Math.min(bytes.length - 1, Math.floor(at * bytes.length))
    const own = byte === bytes[place] ? (byte + 1) % 256 : byte
    const middle = how === "less" ? Buffer.alloc(0) : Buffer.from(how === "more" ? [own, bytes[place]!] : [own])
    return [Buffer.concat([bytes.subarray(0, place), middle, bytes.subarray(place + 1)]), signed(body)]
  }

const forgeries: fc.Arbitrary<Forgery> = fc.oneof(
  fc
    .tuple(
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.integer({ min: 0, max: 255 }),
      fc.constantFrom("other" as const, "more" as const, "less" as const)
    )
    .map((all) => withByte(...all)),
  fc.constantFrom<Forgery>(
    (body) => [body, undefined],
    (body) => [body, ""],
    (body) => [body, "t=,v1="],
    (body) => [body, `t=${seconds()}`],
    (body) => [body, `t=${seconds()},v1=`],
    (body) => [body, `t=${seconds()},v1=${"0".repeat(64)}`],
    (body) => [body, `t=${seconds()},v0=${signatureOf(body, seconds())}`],
    (body) => [body, `t=${seconds() + 1},v1=${signatureOf(body, seconds())}`],
    (body) => [body, `t=${seconds() - 4_000},v1=${signatureOf(body, seconds() - 4_000)}`],
    (body) => [body, `t=NaN,v1=${signatureOf(body, Number.NaN)}`],
    (body) => [body, `t=${seconds()},v1=${signatureOf(body, seconds(), "whsec_other")}`],
    (body) => [body, `t=${seconds()},v1=${signatureOf(body, seconds(), "")}`],
    (body) => [body, signed(body).toUpperCase()],
    (body) => [body, signed(body).slice(0, -1)],
    (body) => [body, signed(`${body} `)],
    (body) => [`${body}${body}`, signed(body)],
    (body) => ["", signed(body)],
    (body) => [body, "x".repeat(8_000)],
    (body) => [body, `t=${seconds()},${`v1=${"0".repeat(64)},`.repeat(100)}`]
  )
)

// ---- signed nonsense ----------------------------------------------------------------------------------------------------------------

const mark = "\u27e8literal\u27e9"

const nonsense = (body: string): fc.Arbitrary<string> => {
  const json = JSON.parse(body) as Record<string, unknown>
  const value = fc.oneof(
    literals,
    hostileTexts.map((text) => JSON.stringify(text)),
    fc.constantFrom("-1", "1e308", "900719925474099300", "0.5", "null", '"12"')
  )
  return fc.tuple(fc.constantFrom(...placesIn(json)), value).map(([way, literal]) => {
    if (way.length === 0) return literal
    const copy = structuredClone(json)
    let at = copy
    for (const name of way.slice(0, -1)) at = at[name] as Record<string, unknown>
    at[way.at(-1)!] = mark
    return JSON.stringify(copy).replace(JSON.stringify(mark), () => literal)
  })
}

// ---- the life of a payment ----------------------------------------------------------------------------------------------------------

interface Life {
  readonly events: ReadonlyArray<string>
  /** The amount that remains at the end, in cents. */
  readonly left: number
}

const lives = (tenant_id: string): fc.Arbitrary<Life> =>
  fc
    .record({
      cents: fc.integer({ min: 100, max: 100_000 }),
      refunds: fc.array(fc.record({ part: fc.double({ min: 0.01, max: 0.3, noNaN: true }), fails: fc.boolean() }), {
        maxLength: 3
      }),
      disputed: fc.constantFrom("no" as const, "lost" as const, "won" as const),
      order: fc.array(fc.nat(), { minLength: 40, maxLength: 40 }),
      doubled: fc.array(fc.nat(), { maxLength: 6 })
    })
    .map(({ cents, disputed, doubled, order, refunds }) => {
      const id = `pi_fuzz_${++made}`
      let left = cents
      const events = [
        event("payment_intent.succeeded", intent(id, tenant_id, cents)),
        event("checkout.session.completed", session(id, tenant_id, cents))
      ]
      for (const [index, { fails, part }] of refunds.entries()) {
        const amount = Math.max(1, Math.floor(cents * part))
        const name = `re_${id}_${index}`
        events.push(event("refund.created", refund(id, name, amount)))
        if (fails) events.push(event("refund.failed", refund(id, name, amount, "failed")))
        else left -= amount
      }
      if (disputed !== "no") {
        const amount = Math.max(1, Math.floor(cents / 20))
        events.push(event("charge.dispute.funds_withdrawn", dispute(id, amount)))
        if (disputed === "won") events.push(event("charge.dispute.funds_reinstated", dispute(id, amount)))
        else left -= amount
      }
      const all = [...events, ...doubled.map((at) => events[at % events.length]!)]
      const shuffled = all
        .map((one, index) => [order[index % order.length]!, one] as const)
        .toSorted(([one], [other]) => one - other)
      return { events: shuffled.map(([, one]) => one), left }
    })

// ---- the run ------------------------------------------------------------------------------------------------------------------------------

export const run = async ({ deliver, people, service }: World, { events, seed, until = Infinity }: Options) => {
  const counts = new Map<string, number>()
  const found: Array<string> = []
  const note = (kind: string, { status }: Answer) =>
    counts.set(`${kind} ${status}`, (counts.get(`${kind} ${status}`) ?? 0) + 1)
  const cents = async (person: World["people"]["payer"]) => Math.round((await service.balance(person)) * 100)
  const { honest, payer } = people
  const [before, paidBefore] = [await cents(honest), await cents(payer)]
  let sent = 0
  let due = 0
  const sample = <A>(arbitrary: fc.Arbitrary<A>): A =>
    fc.sample(arbitrary, { numRuns: 1, seed: (seed + sent * 7_919) | 0 })[0]!

  const forge = async () => {
    const [body, signature] = sample(forgeries)(
      event("payment_intent.succeeded", intent(`pi_forged_${++made}`, honest.tenant_id, 5_000))
    )
    const answer = await deliver(body, signature)
    note("forged", answer)
    if (answer.status !== 400)
      found.push(`a forged event got ${answer.status}: ${signature?.slice(0, 100)} ${body.toString().slice(0, 300)}`)
  }
  const confuse = async () => {
    const id = `pi_nonsense_${++made}`
    const { tenant_id } = people.nonsense
    const base = sample(
      fc.constantFrom(
        event("payment_intent.succeeded", intent(id, tenant_id, 500)),
        event("checkout.session.completed", session(id, tenant_id, 500)),
        event("refund.created", refund(id, `re_${id}`, 100)),
        event("charge.refunded", {
          id: `ch_${id}`,
          amount_refunded: 100,
          currency: "usd",
          payment_intent: id,
          refunds: { data: [refund(id, `re_${id}`, 100)] }
        }),
        event("charge.dispute.funds_withdrawn", dispute(id, 100))
      )
    )
    const body = sample(nonsense(base))
    const answer = await deliver(body, signed(body))
    note("nonsense", answer)
    if (![200, 400, 413].includes(answer.status))
      found.push(`signed nonsense got ${answer.status} ${JSON.stringify(answer.body)}: ${body.slice(0, 400)}`)
  }
  const live = async () => {
    const { events, left } = sample(lives(payer.tenant_id))
    due += left
    // The events are sent in concurrent pairs.
    for (let at = 0; at < events.length; at += 2)
      await Promise.all(
        events.slice(at, at + 2).map(async (body) => {
          sent++
          const answer = await deliver(body, signed(body))
          note("signed", answer)
          if (answer.status !== 200)
            found.push(`a signed event got ${answer.status} ${JSON.stringify(answer.body)}: ${body}`)
        })
      )
  }
  while (sent < events && Date.now() < until && found.length < 20) {
    for (const kind of [forge, confuse, forge, confuse, live]) {
      await kind()
      sent++
    }
  }
  const [after, paidAfter] = [await cents(honest), await cents(payer)]
  if (after !== before) found.push(`forged events changed a balance by ${after - before} cents`)
  if (paidAfter - paidBefore !== due)
    found.push(`${due} cents are due from signed events, but ${paidAfter - paidBefore} were credited`)
  return { counts, found }
}
