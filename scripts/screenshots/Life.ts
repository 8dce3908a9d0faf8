/**
 * Simulates six weeks of use of a sandbox, to fill every view of the console: purchases, a refund and an auto-reload, keys with and without limits,
 * successful and failed calls, transfers in every state, a team with members and invitations, and media jobs.
 */
import { lettersTo } from "../../test/support/mail.ts"
import type { Answer, Call, Person, Service } from "../../test/support/Service.ts"

const dayLong = 86_400_000

/** The number of days before the last day. By the last day, the transfers of the first days and an invitation from the third week have expired. */
export const daysAhead = 44

const people = {
  ada: "Ada Lovelace",
  grace: "Grace Hopper",
  alan: "Alan Turing",
  katherine: "Katherine Johnson"
} as const
type Name = keyof typeof people

const models = ["sandbox-large", "sandbox-small", "auto", "sandbox-fraction", "sandbox-failover"]
const teamModels = ["sandbox-large", "sandbox-small", "sandbox-large"]

/** A deterministic pseudo-random generator. */
class Chance {
  #seed = 101

  below(limit: number): number {
    const seed = this.#seed++
    let mixed = Math.imul(seed ^ (seed >>> 15), 0x2c1b3c6d)
    mixed = Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39)
    return Math.floor((((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32) * limit)
  }

  of<A>(all: ReadonlyArray<A>): A {
    return all[this.below(all.length)]!
  }
}

const mailOf = (name: string): string => `${name}@example.com`

/** The simulation's results that the screenshots need. */
export interface Lived {
  readonly ada: Person
  /** The tokens in the emails for a pending transfer and an open team invitation. */
  readonly transferLetter: string
  readonly teamLetter: string
}

class Life {
  readonly chance = new Chance()
  readonly service: Service
  /** The maximum prompt length of the day, in words. */
  #words = 6000
  #references = 0

  constructor(service: Service) {
    this.service = service
  }

  async ok(path: string, call: Call): Promise<Answer["body"]> {
    const { body, status } = await this.service.call(path, call)
    if (status < 200 || status > 299) throw new Error(`${path} returned ${status} ${JSON.stringify(body)}`)
    return body.result ?? body
  }

  /** Signs the person in again, because the previous day's token has expired. */
  who(name: Name): Promise<Person> {
    return this.service.signIn(mailOf(name), { name: people[name] })
  }

  async inTeam(person: Person, tenant_id: string): Promise<Person> {
    const { client_id } = await this.service.sandbox()
    const { refresh_token } = person
    const json = { client_id, grant_type: "refresh_token", refresh_token, tenant_id }
    const { access_token } = await this.ok("/v1/auth/token", { json })
    return { ...person, token: access_token, tenant_id }
  }

  async key({ tenant_id, token }: Person, json: object): Promise<string> {
    return (await this.ok(`/v1/tenants/${tenant_id}/applications`, { token, json })).api_key
  }

  async buy({ tenant_id, token }: Person, amount_credits: number): Promise<void> {
    const before = await this.service.balance({ tenant_id, token } as Person)
    const { checkout_url } = await this.ok(`/v1/tenants/${tenant_id}/billing/checkout`, {
      token,
      json: { amount_credits }
    })
    // In the sandbox, opening the checkout page pays.
    await fetch(checkout_url)
    await waitUntil(async () => (await this.service.balance({ tenant_id, token } as Person)) !== before)
  }

  async send(from: Person, to: string, amount: number, more: object = {}): Promise<string> {
    const sent = await this.ok(`/v1/tenants/${from.tenant_id}/billing/transfers`, {
      token: from.token,
      headers: { "idempotency-key": `transfer-number-${++this.#references}-of-life` },
      json: { amount, recipient_email: to, kind: "gift", ...more }
    })
    return sent.id
  }

  end(who: Person, transfer: string, how: "accept" | "decline"): Promise<unknown> {
    return this.ok(`/v1/transfers/${transfer}/${how}`, { token: who.token, method: "POST" })
  }

  async calls(key: string, count: number, among = models): Promise<void> {
    for (let call = 0; call < count; call++) {
      const content = "word ".repeat(200 + this.chance.below(this.#words))
      await this.service.call("/v1/chat/completions", {
        token: key,
        json: { model: this.chance.of(among), messages: [{ role: "user", content }] }
      })
    }
  }

  /** Waits for an email with this type of link and returns the newest link's token. */
  async letterTo(email: string, kind: "invites" | "transfer-invites"): Promise<string> {
    const link = new RegExp(`/${kind}/([0-9a-f]{64})`)
    let token: string | undefined
    await waitUntil(async () => {
      const letters = await lettersTo(this.service, email)
      token = letters.flatMap(({ text }) => link.exec(text)?.[1] ?? []).at(-1)
      return token !== undefined
    })
    return token!
  }

  pass(days: number): Promise<unknown> {
    return this.service.control("/clock", { advance_ms: Math.round(days * dayLong) })
  }

  /** Simulates a day in three parts. Some days are busy and others are quiet. */
  async day(calls: () => Promise<void>): Promise<void> {
    this.#words = 1500 + this.chance.below(9000)
    for (const part of [0.4, 0.25, 0.35]) {
      await calls()
      await this.pass(part)
    }
  }

  async media(token: string, json: object, status?: string): Promise<void> {
    const { request_id } = await this.ok("/v1/tools/media/generate", { token, json })
    if (status === undefined) return
    if (status === "CANCELLED") {
      await this.service.call("/v1/tools/media/cancel", { token, json: { request_id } })
    } else await this.service.control("/media", { request_id, status })
    await this.service.call(`/v1/tools/media/status?request_id=${request_id}`, { token })
    if (status === "COMPLETED") await this.service.call(`/v1/tools/media/result?request_id=${request_id}`, { token })
  }
}

/** Waits for a condition that a background job fulfills. */
const waitUntil = async (is: () => Promise<boolean>): Promise<void> => {
  for (let tries = 0; tries < 200; tries++) {
    if (await is()) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error("the expected change did not happen")
}

const adasKeys = async (life: Life, ada: Person): Promise<ReadonlyArray<string>> => [
  await life.key(ada, { name: "Nightly report", description: "Reads usage, writes a summary" }),
  await life.key(ada, { name: "Support bot", spending_limit_usd: 0.5, spending_limit_period: "month" }),
  await life.key(ada, {
    name: "Experiment",
    description: "",
    spending_limit_usd: 25,
    spending_limit_period: "total",
    allowed_models: ["sandbox-large", "auto"]
  }),
  await life.key(ada, {
    name: "Workshop",
    description: "Two weeks in November",
    expires_at: new Date(Date.now() + (daysAhead + 3) * dayLong).toISOString()
  })
]

/** Creates a team that pays for its members. Each member has a key. */
const makeTeam = async (life: Life, ada: Person) => {
  const { id } = await life.ok("/v1/tenants", { token: ada.token, json: { name: "Lighthouse" } })
  await life.ok(`/v1/tenants/${id}/plan`, { token: ada.token, method: "PUT", json: { plan: "team", seats: 6 } })
  await life.service.control("/credit", { tenant_id: id, amount: 60, source: "purchase" })
  const keys = [await life.key(await life.inTeam(ada, id), { name: "Release notes", description: "" })]
  for (const [name, role] of [
    ["grace", "admin"],
    ["alan", "member"],
    ["katherine", "member"]
  ] as const) {
    const person = await life.who(name)
    await life.ok(`/v1/tenants/${id}/invites`, { token: ada.token, json: { email: person.email, role } })
    const token = await life.letterTo(person.email, "invites")
    await life.ok(`/v1/tenant-invites/${token}/accept`, { token: person.token, method: "POST" })
    keys.push(
      await life.key(await life.inTeam(person, id), {
        name: `${people[name].split(" ")[0]}'s notebook`,
        description: ""
      })
    )
  }
  return { id: id as string, keys }
}

const settings = async (life: Life, { tenant_id, token }: Person): Promise<void> => {
  const { payment_methods } = await life.ok(`/v1/tenants/${tenant_id}/billing/payment-methods`, { token })
  await life.ok(`/v1/tenants/${tenant_id}/billing/auto-reload`, {
    token,
    method: "PUT",
    json: {
      auto_reload: {
        enabled: true,
        threshold_usd: 10,
        amount_credits: 20,
        payment_method_id: payment_methods.find(({ last4 }: { readonly last4: string }) => last4 === "4242").id
      },
      alerts: { enabled: true, warn_threshold_usd: 12.5, rearm_threshold_usd: 15 }
    }
  })
}

const refund = async (life: Life, { tenant_id, token }: Person, amount: number): Promise<void> => {
  const { records } = await life.ok(`/v1/tenants/${tenant_id}/billing/payments`, { token })
  await life.service.control(`/payments/${records[0].id}/refund`, { amount })
}

/** Simulates the first month, whose transfers and invitations have ended by the last day. */
const simulateFirstMonth = async (life: Life): Promise<void> => {
  const ada = await life.who("ada")
  await life.buy(ada, 25)
  await life.send(ada, "charles@example.com", 1.5, { message: "For the second engine" })
  const accepted = await life.send(ada, mailOf("grace"), 4, {
    reason: "thanks",
    message: "For the review of the parser"
  })
  await life.end(await life.who("grace"), accepted, "accept")
  await life.pass(3)
}

/** Simulates the last days, whose transfers and invitations are still pending. */
const simulateLastDays = async (life: Life, team: string): Promise<Pick<Lived, "transferLetter" | "teamLetter">> => {
  const [ada, grace, alan] = [await life.who("ada"), await life.who("grace"), await life.who("alan")]
  await life.end(alan, await life.send(ada, alan.email, 2.25), "decline")
  const revoked = await life.send(ada, mailOf("katherine"), 0.75, { kind: "transfer" })
  await life.ok(`/v1/tenants/${ada.tenant_id}/billing/transfers/${revoked}`, { token: ada.token, method: "DELETE" })
  await life.send(ada, "hedy@example.com", 3, { reason: "welcome", message: "A start for your first experiments" })
  await life.service.control("/credit", { tenant_id: alan.tenant_id, amount: 9, source: "purchase" })
  await life.end(ada, await life.send(alan, ada.email, 5.25, { reason: "congrats" }), "accept")
  await life.send(grace, ada.email, 1.25, { reason: "thanks", message: "You paid for lunch" })
  await life.ok(`/v1/tenants/${team}/invites`, {
    token: ada.token,
    json: { email: "margaret@example.com", role: "member" }
  })
  return {
    transferLetter: await life.letterTo("hedy@example.com", "transfer-invites"),
    teamLetter: await life.letterTo("margaret@example.com", "invites")
  }
}

const makeMedia = async (life: Life): Promise<void> => {
  const { token } = await life.who("ada")
  const image = { model: "sandbox-image", prompt: "A lighthouse at dusk", num_images: 2, image_size: "landscape_4_3" }
  const video = { model: "sandbox-video", prompt: "Waves against a lighthouse", duration: 5 }
  await life.media(token, image, "COMPLETED")
  await life.media(token, video, "COMPLETED")
  await life.media(token, { ...video, prompt: "A storm" }, "FAILED")
  await life.media(token, video, "CANCELLED")
  await life.media(token, { ...image, num_images: 1 }, "COMPLETED")
  await life.media(token, { ...video, resolution: "720p" }, "IN_PROGRESS")
}

export const live = async (service: Service): Promise<Lived> => {
  const life = new Life(service)
  const { chance } = life
  await simulateFirstMonth(life)
  const ada = await life.who("ada")
  const keys = await adasKeys(life, ada)
  const team = await makeTeam(life, ada)
  await settings(life, ada)
  for (let day = daysAhead - 3; day > 0; day--) {
    if (day === 20) {
      const { token } = await life.who("ada")
      await life.ok(`/v1/tenants/${team.id}/invites`, { token, json: { email: "edsger@example.com", role: "admin" } })
    }
    if (day === 9) await life.buy(await life.who("ada"), 15)
    if (day === 8) await refund(life, await life.who("ada"), 5)
    if (day === 1) await makeMedia(life)
    await life.day(async () => {
      await life.calls(chance.of(keys), 1 + chance.below(5))
      await life.calls(chance.of(team.keys), 1 + chance.below(3), teamModels)
    })
    await service.call("/v1/search?query=tolls", { token: keys[0]! })
  }
  const letters = await simulateLastDays(life, team.id)
  await service.control("/faults", { service: "chat", status: 500, times: 1 })
  await service.call("/v1/chat/completions", {
    token: keys[0]!,
    json: { model: "sandbox-small", messages: [{ role: "user", content: "This fails" }] }
  })
  await life.calls(keys[0]!, 6)
  return { ada: await life.who("ada"), ...letters }
}
