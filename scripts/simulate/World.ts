/** A story's users with their requests and responses, the outside world's records, and the implementation of each step. */
import { createHmac } from "node:crypto"
import { Budgets } from "./Budgets.ts"
import type { Run } from "./Budgets.ts"
import { ask, bodyOf } from "./Client.ts"
import type { Heard, Request } from "./Client.ts"
import type { Computer } from "./Computer.ts"
import { port } from "./Computer.ts"
import { random } from "./machine/Random.ts"
import { nameOf, sentence } from "./Story.ts"
import type { Deed, Manner, ProtocolName, Step, Story, Tool } from "./Story.ts"

type Of<D extends Deed["do"]> = Extract<Deed, { readonly do: D }>

/** A call as its vendor received it. */
export interface Seen {
  /** The sandbox sets `aborted` if the service disconnected before the response was complete. */
  readonly note: { aborted: boolean }
  readonly manner: Manner
  /** The service's life number during the call. */
  readonly life: number
  readonly at: number
  /** The time of the call on the wall clock. */
  readonly wall: number
}

export interface Person {
  readonly name: string
  readonly email: string
  token: string
  tokenAt: number
  account: string
  tenant: string
  key: string
  /** A key with a spending limit in USD. */
  limited: { readonly key: string; readonly id: string; most: number }
  /** The budget key, also used for runs; empty if the story has no budgets. */
  budgeted: { readonly key: string; readonly id: string }
  /** When the user's removal from the team was acknowledged. */
  removed: number | undefined
}

/** An attempt at a request. `until` is 0 while it is open. */
export interface Asked {
  readonly life: number
  readonly from: number
  readonly wallFrom: number
  until: number
  wallUntil: number
  heard: Heard | undefined
}

/** A model request, with all of its results. */
export interface Call {
  readonly id: number
  readonly who: Person
  readonly deed: Of<"chat">
  readonly words: number
  readonly key: string | undefined
  readonly seen: Array<Seen>
  readonly heard: Array<Heard>
  readonly request: Request
  readonly asked: Array<Asked>
  /** The run that made the call, and its parents. */
  readonly runs: ReadonlyArray<Run>
  /** Whether the call used the budget key or a run's key. */
  readonly budgeted: boolean
  /** Whether the service may have deleted the Idempotency-Key. */
  old: boolean
}

export interface Counted {
  readonly who: Person
  readonly seen: Array<Seen>
  heard: Heard | undefined
}

export interface Use extends Counted {
  readonly tool: Tool
}

export interface Job extends Counted {
  readonly id: string | undefined
  readonly cost: number
}

export interface Sent {
  readonly id: string
  readonly from: Person
  readonly to: Person | string
  readonly amount: number
  readonly at: number
  /** The most recent acknowledged status. */
  status: "pending" | "accepted" | "declined" | "revoked"
}

/** The acknowledged settings of auto-reload. */
export interface Reloading {
  readonly who: Person
  readonly card: string
  readonly threshold: number
  /** Whether these are certainly the latest settings: no other change was concurrent, and no later change has an unknown outcome. */
  sure: boolean
  /** Whether the balance has been above the threshold since then. */
  wasAbove: boolean
}

export interface ProcessorEvent {
  readonly id: string
  readonly type: string
  readonly body: string
  readonly payment: string | undefined
  /** The status of each delivery, or 0 without a complete response. */
  readonly answers: Array<number>
}

/**
 * The prices per prompt token and completion token in nano-USD, and their common divisor. They determine a call's expected cost independently of the
 * service.
 */
const prices = {
  "sandbox-small": [150n, 600n, 1n],
  "sandbox-large": [3_000n, 15_000n, 1n],
  // A prompt token costs 37.5 nano-USD.
  "sandbox-fraction": [375n, 1_500n, 10n],
  "sandbox-failover": [150n, 600n, 1n]
} as const

export const priceOf = (model: keyof typeof prices, prompt: number, completion: number): bigint => {
  const [ofPrompt, ofCompletion, parts] = prices[model]
  const exact = BigInt(prompt) * ofPrompt + BigInt(completion) * ofCompletion
  return (exact + parts / 2n) / parts
}

const clientId = "sandbox-client"
/** Returns how much credit a user buys, in USD. Most users have enough, but one has little. */
const boughtBy = (place: number): number => (place === 1 ? 0.02 : 0.8)
/** After a clock jump of this many milliseconds, the service may delete data that it stores for days. */
const far = 7 * 86_400_000

export class World {
  readonly people: Array<Person> = []
  readonly calls: Array<Call> = []
  readonly searches: Array<Counted> = []
  readonly uses: Array<Use> = []
  readonly jobs: Array<Job> = []
  readonly sent: Array<Sent> = []
  readonly reloading = new Map<Person, Reloading>()
  /**
   * When the clock last jumped by at least `far`. The service may then have deleted events that were waiting for their payment, and due
   * emails.
   */
  farAt: number | undefined
  /** Whether the clock was set back. */
  isBack = false
  readonly events: Array<ProcessorEvent> = []
  readonly letters: Array<{ readonly to: string; readonly subject: string; readonly text: string }> = []
  readonly findings: Array<string> = []
  readonly budgets = new Budgets(this)
  /** When another host released the open calls. */
  readonly lapses: Array<number> = []
  /** The tenant that the first user owns and the other users join. */
  team = { tenant: "", account: "" }
  /** The open operations, by step number. */
  readonly open = new Map<number, string>()
  /** How often each fault occurred during each kind of step. */
  readonly met = new Map<string, number>()
  private readonly manners = new Map<string, Array<Manner>>()
  readonly computer: Computer
  private readonly note: (line: string) => void
  private strangers = 0
  private keys = 0

  constructor(computer: Computer, note: (line: string) => void) {
    this.computer = computer
    this.note = note
    Object.assign(globalThis, {
      simulatedHooks: {
        called: this.called,
        letter: this.letter,
        event: this.event,
        native: <A>(work: Promise<A>) => computer.machine.native(work)
      }
    })
    const { storage } = computer
    storage.onMishap = (moment, mishap) => {
      const what = typeof mishap === "string" ? mishap : mishap.error
      this.note(`the writer met ${what} at ${moment}`)
      this.meet(`${what} at ${moment}`)
    }
  }

  /** Counts a fault for every operation in progress. */
  meet(fault: string): void {
    const during = this.computer.isUp ? this.open.values() : ["the start"]
    const all = new Set(during)
    for (const what of all.size === 0 ? ["nothing"] : all) this.meetOne(fault, what)
  }

  private meetOne(fault: string, what: string): void {
    const both = `${fault} × ${what}`
    this.met.set(both, (this.met.get(both) ?? 0) + 1)
  }

  // ---- the outside world's view ---------------------------------------------------------------------------------------

  private readonly called = (
    service: string,
    received: { readonly path: string; readonly query: URLSearchParams; readonly body: Buffer } | undefined,
    note: { aborted: boolean }
  ): object | undefined => {
    const text = received?.body.toString() ?? ""
    const { machine } = this.computer
    const seen = (manner: Manner): Seen => ({
      note,
      manner,
      life: this.computer.lives,
      at: machine.now,
      wall: machine.wall()
    })
    if (service === "chat" || service === "messages" || service === "responses") {
      const call = this.calls[Number(/"call(\d+) /.exec(text)?.[1] ?? -1)]
      if (call === undefined) return undefined
      // The second upstream behaves normally, and so do retries.
      const manner: Manner = call.seen.length === 0 ? call.deed.manner : { kind: "well" }
      call.seen.push(seen(manner))
      this.note(`the vendor sees call ${call.id} (${manner.kind})`)
      if (manner.kind !== "well") this.meet(`vendor ${manner.kind}`)
      return faultOf(manner, call, service)
    }
    if (service === "search") {
      const found = /search(\d+)/.exec(`${received?.query.toString()}${text}`)?.[1]
      const search = this.searches[Number(found ?? -1)]
      const manner = this.nextManner(service)
      search?.seen.push(seen(manner))
      return faultOf(manner)
    }
    const used = /used(\d{4})/.exec(text)?.[1]
    if (used !== undefined) {
      const manner = this.nextManner(service)
      this.uses[Number(used)]?.seen.push(seen(manner))
      if (manner.kind !== "well") this.meet(`vendor ${manner.kind}`)
      return faultOf(manner)
    }
    // The service polls a job.
    if (service === "images") return undefined
    if (service === "media") {
      const submitted = /"prompt":"job(\d+)"/.exec(text)?.[1]
      const manner = submitted === undefined ? ({ kind: "well" } as const) : this.nextManner(service)
      if (submitted !== undefined) this.jobs[Number(submitted)]?.seen.push(seen(manner))
      return faultOf(manner)
    }
    const manner = this.nextManner(service)
    if (manner.kind !== "well") {
      this.note(`${service} answers: ${manner.kind}`)
      this.meet(`${service} ${manner.kind}`)
    }
    return faultOf(manner)
  }

  private nextManner(service: string): Manner {
    return this.manners.get(service)?.shift() ?? { kind: "well" }
  }

  private setManner(service: string, manner: Manner): void {
    if (manner.kind === "well") return
    this.manners.set(service, [...(this.manners.get(service) ?? []), manner])
  }

  heal(): void {
    this.manners.clear()
  }

  private readonly letter = (to: string, subject: string, text: string): void => {
    this.letters.push({ to, subject, text })
    this.note(`an email to ${to}: ${subject}`)
  }

  private readonly event = (event: Pick<ProcessorEvent, "id" | "type" | "body">): void => {
    const { object } = JSON.parse(event.body).data
    const payment = String(object.id).startsWith("pi_") ? object.id : object.payment_intent
    this.events.push({ ...event, payment: payment ?? undefined, answers: [] })
    this.note(`the processor has an event: ${event.type}`)
  }

  // ---- sending requests -------------------------------------------------------------------------------------------------

  async ask(path: string, request: Request = {}): Promise<Heard> {
    const isOurs = !path.startsWith("http")
    const heard = await ask(this.computer.network, isOurs ? `http://127.0.0.1:${port}${path}` : path, request)
    if (request.leaves !== undefined && !heard.complete && this.computer.isUp)
      this.meetOne(
        `client disconnects ${heard.status === 0 ? "before" : "during"} the response`,
        path.split("?")[0]!.replace(/[a-z]+_[0-9a-z]{10,}/g, "#")
      )
    // Expected failures have specific errors.
    if (isOurs && heard.complete && heard.status === 500 && bodyOf(heard)?.code === "internal_error")
      this.findings.push(`an internal error was returned: ${path.split("?")[0]}`)
    return heard
  }

  /** Sends a request as the user. Signs in again first if the token has expired. */
  async asPerson(who: Person, path: string, request: Request = {}): Promise<Heard> {
    const { machine } = this.computer
    if (machine.wall() - who.tokenAt > 1_800_000 || machine.wall() < who.tokenAt) await this.signIn(who)
    return this.ask(path, { ...request, token: who.token })
  }

  private async control(path: string, json?: unknown): Promise<unknown> {
    return bodyOf(await this.ask(`${this.computer.world.control}${path}`, json === undefined ? {} : { json }))
  }

  /** Returns whether the sign-in succeeded. */
  private async signIn(who: Person): Promise<boolean> {
    const issued = bodyOf(await this.ask(`${this.computer.world.issuer}/token`, { json: { email: who.email } }))
    const heard = await this.ask("/v1/auth/google", { json: { id_token: issued?.id_token, client_id: clientId } })
    if (heard.status !== 200) {
      this.note(`${who.name} cannot sign in: ${heard.status} ${heard.text.slice(0, 200)}`)
      return false
    }
    const { account_created, token_response } = bodyOf(heard).result
    if (who.tenant !== "" && account_created === true) this.findings.push(`${who.name} got a second account`)
    who.token = token_response.access_token
    who.tokenAt = this.computer.machine.wall()
    if (who.tenant !== "") return true
    const me = await this.ask("/v1/me", { token: who.token })
    if (me.complete && (me.status === 401 || me.status === 404))
      this.findings.push(`${who.name} has signed in to an account that does not exist`)
    if (me.status !== 200) return false
    const { account } = bodyOf(me).result
    who.account = account.id
    who.tenant = account.tenant_id
    return true
  }

  private newPerson(name: string): Person {
    const email = `${name.toLowerCase()}@example.com`
    const limited = { key: "", id: "", most: 0.004 }
    const budgeted = { key: "", id: "" }
    return {
      name,
      email,
      token: "",
      tokenAt: 0,
      account: "",
      tenant: "",
      key: "",
      limited,
      budgeted,
      removed: undefined
    }
  }

  // ---- set-up -----------------------------------------------------------------------------------------------------------

  /** Signs users in, gives them keys and credit, and adds them to a team. No faults occur in the meantime. */
  async begin({ people, steps }: Story): Promise<void> {
    const hasBudgets = steps.some(({ deed }) => isOfBudgets(deed))
    await this.control("/webhooks", { hold: true })
    for (let i = 0; i < people; i++) {
      const who = this.newPerson(nameOf(i))
      this.people.push(who)
      if (!(await this.signIn(who))) throw new Error(`${who.name} could not sign in`)
      const applications = `/v1/tenants/${who.tenant}/applications`
      const made = async (json: object) => bodyOf(await this.ask(applications, { token: who.token, json })).result
      who.key = (await made({ name: "a key" })).api_key
      const limited = await made({
        name: "a key with a limit",
        spending_limit_usd: who.limited.most,
        spending_limit_period: "total"
      })
      who.limited = { key: limited.api_key, id: limited.id, most: who.limited.most }
      if (!hasBudgets) continue
      const { api_key, id } = await made({ name: "a key for budgets" })
      who.budgeted = { key: api_key, id }
    }
    const [owner, ...members] = this.people as [Person, ...Array<Person>]
    const { id } = bodyOf(await this.ask("/v1/tenants", { token: owner.token, json: { name: "Team" } })).result
    this.team = { tenant: id, account: `bil_${id.slice(4)}` }
    await this.control(`/tenants/${id}`, { plan: "team", plan_status: "active" })
    await this.control("/credit", { tenant_id: id, amount: 0.05, source: "purchase" })
    for (const [place, { tenant }] of this.people.entries())
      await this.control("/credit", { tenant_id: tenant, amount: boughtBy(place), source: "purchase" })
    for (const member of members) {
      await this.ask(`/v1/tenants/${id}/invites`, { token: owner.token, json: { email: member.email, role: "member" } })
      while (!this.letters.some(({ to }) => to === member.email))
        await new Promise((resolve) => setTimeout(resolve, 10))
      const token = /invites\/([0-9a-f]{64})/.exec(this.letters.find(({ to }) => to === member.email)?.text ?? "")?.[1]
      await this.ask(`/v1/tenant-invites/${token}/accept`, { token: member.token, method: "POST" })
    }
  }

  // ---- deeds --------------------------------------------------------------------------------------------------------------

  /** Starts a step. The step continues in the background. */
  do({ deed, id }: Step): void {
    this.note(`${id}. ${sentence(deed)}`)
    const done = this.begun(deed)
    if (done === undefined) return
    this.open.set(id, deed.do)
    done.then(
      (what) => {
        this.open.delete(id)
        this.note(`   ${id}: ${what}`)
      },
      (error: unknown) => {
        this.open.delete(id)
        this.findings.push(`step ${id} could not be performed: ${String(error instanceof Error ? error.stack : error)}`)
      }
    )
  }

  private begun(deed: Deed): Promise<string> | undefined {
    const { machine, storage } = this.computer
    switch (deed.do) {
      case "chat":
        return this.chat(deed)
      case "again":
        return this.again(deed)
      case "search":
        return this.search(deed)
      case "use":
        return this.use(deed)
      case "media":
        return this.media(deed)
      case "look":
        return this.look(deed)
      case "send":
        return this.send(deed)
      case "answer":
        return this.answer(deed)
      case "buy":
        return this.buy(deed)
      case "reload":
        return this.reload(deed)
      case "payment":
        return this.payment(deed)
      case "deliver":
        return this.deliver(deed)
      case "pin":
        return this.pin(deed)
      case "remove":
        return this.remove(deed)
      case "limit":
        return this.limit(deed)
      case "budget":
        return this.budgets.make(deed)
      case "rebudget":
        return this.budgets.change(deed)
      case "raise":
        return this.budgets.raise(deed)
      case "drop":
        return this.budgets.drop(deed)
      case "run":
        return this.budgets.begin(deed)
      case "end":
        return this.budgets.end(deed)
      case "check":
        return this.budgets.check(deed)
      case "join":
        return this.join()
      case "mail":
        this.setManner("mail", deed.manner)
        return undefined
      case "crash":
        this.meet("crash")
        if (this.computer.isUp) this.computer.crash()
        return undefined
      case "stop":
        this.meet("stop")
        this.computer.stop()
        return undefined
      case "disk":
        storage.arm(deed)
        return undefined
      case "full":
        storage.failFor(deed.millis, deed.moment, deed.error)
        return undefined
      case "read":
        storage.failReads(deed.after, deed.millis, deed.error)
        return undefined
      case "hang":
        this.meet(`hang ${deed.way}`)
        storage.holdFor(deed.millis, deed.way)
        return undefined
      case "lapse":
        this.meet("lapse")
        this.lapses.push(machine.now)
        this.computer.lapse()
        return undefined
      case "thread":
        this.meet("thread")
        this.computer.endThread()
        return undefined
      case "clock":
        this.meet(deed.millis < 0 ? "clock back" : deed.millis >= far ? "clock a month forward" : "clock forward")
        machine.offset += deed.millis
        if (deed.millis < 0) this.isBack = true
        if (deed.millis >= far) {
          for (const call of this.calls) call.old = true
          this.farAt = machine.now
        }
        return undefined
    }
  }

  person(who: number): Person {
    return this.people[who % this.people.length]!
  }

  one<A>(all: ReadonlyArray<A>, which: number): A | undefined {
    return which < 0 ? all.at(which) : all.length === 0 ? undefined : all[which % all.length]
  }

  private async chat(deed: Of<"chat">): Promise<string> {
    const { under } = deed
    const run = under === undefined ? undefined : this.budgets.run(under)
    const who = run?.who ?? this.person(deed.who)
    const budgeted = under === undefined ? "" : (run?.key ?? who.budgeted.key)
    const id = this.calls.length
    // Each call's prompt has a unique number of words, which identifies the call's record.
    let words = id + 2 + deed.length
    while (this.calls.some((call) => call.words === words)) words++
    const key = deed.keyed ? this.freshKey() : undefined
    const content = `call${id}${" w".repeat(words - 1)}`
    const request: Request = {
      token: budgeted !== "" ? budgeted : deed.limited ? who.limited.key : who.key,
      json: bodyBy[deed.protocol ?? "chat"](deed, content),
      ...(key !== undefined && { headers: { "idempotency-key": key } })
    }
    const call: Call = {
      id,
      who,
      deed,
      words,
      key,
      seen: [],
      heard: [],
      asked: [],
      runs: run === undefined ? [] : [run, ...run.above],
      budgeted: budgeted !== "",
      request,
      old: false
    }
    this.calls.push(call)
    return this.made(call, { ...request, leaves: deed.leaves })
  }

  private freshKey(): string {
    return `simulated-key-${String(++this.keys).padStart(8, "0")}`
  }

  private async made(call: Call, request: Request): Promise<string> {
    const { lives, machine } = this.computer
    const [from, wallFrom] = [machine.now, machine.wall()]
    const asked: Asked = { life: lives, from, wallFrom, until: 0, wallUntil: 0, heard: undefined }
    call.asked.push(asked)
    const heard = await this.ask(`/v1/${endpointOf(call.deed)}`, request)
    asked.until = machine.now
    asked.wallUntil = machine.wall()
    asked.heard = heard
    call.heard.push(heard)
    return said(`call ${call.id}`, heard)
  }

  private async again({ which }: Of<"again">): Promise<string> {
    const call = this.one(
      this.calls.filter(({ key, old }) => key !== undefined && !old),
      which
    )
    return call === undefined ? "there is none" : this.made(call, call.request)
  }

  private async search({ leaves, manner, who }: Of<"search">): Promise<string> {
    const search: Counted = { who: this.people[who % this.people.length]!, seen: [], heard: undefined }
    const id = this.searches.push(search) - 1
    this.setManner("search", manner)
    search.heard = await this.ask(`/v1/search?query=search${id}`, { token: search.who.key, leaves })
    return said("search", search.heard)
  }

  private async use({ leaves, manner, tool, who }: Of<"use">): Promise<string> {
    const used: Use = { who: this.people[who % this.people.length]!, tool, seen: [], heard: undefined }
    const name = `used${String(this.uses.push(used) - 1).padStart(4, "0")}`
    this.setManner(tool, manner)
    const { path, request } = useOf[tool](name)
    used.heard = await this.ask(path, { ...request, token: used.who.key, leaves })
    return said(tool, used.heard)
  }

  private async media({ leaves, manner, seconds, who }: Of<"media">): Promise<string> {
    const person = this.people[who % this.people.length]!
    const place = this.jobs.length
    const job = {
      id: undefined as string | undefined,
      who: person,
      cost: seconds * 0.05,
      seen: [],
      heard: undefined as Heard | undefined
    }
    this.jobs.push(job)
    this.setManner("media", manner)
    job.heard = await this.ask("/v1/tools/media/generate", {
      token: person.key,
      json: { model: "sandbox-video", prompt: `job${place}`, duration: seconds },
      leaves
    })
    if (job.heard.complete && job.heard.status === 200) job.id = bodyOf(job.heard).request_id
    return said("a video", job.heard)
  }

  private async look({ cancel, which }: Of<"look">): Promise<string> {
    const job = this.one(
      this.jobs.filter(({ id }) => id !== undefined),
      which
    )
    if (job === undefined) return "there is none"
    const heard = cancel
      ? await this.ask("/v1/tools/media/cancel", { token: job.who.key, json: { request_id: job.id } })
      : await this.ask(`/v1/tools/media/result?request_id=${job.id}`, { token: job.who.key })
    return said("the video", heard)
  }

  private async send({ cents, leaves, to, twice, who }: Of<"send">): Promise<string> {
    const from = this.people[who % this.people.length]!
    const amount = typeof cents === "number" ? cents / 100 : await this.amountOf(from, cents)
    if (amount === undefined || amount <= 0) return "nothing can be sent"
    const recipient =
      to === "stranger" ? `stranger${++this.strangers}@example.com` : this.people[to % this.people.length]!
    const email = typeof recipient === "string" ? recipient : recipient.email
    const key = this.freshKey()
    const request: Request = {
      json: { amount, recipient_email: email, kind: "gift" },
      headers: { "idempotency-key": key },
      leaves
    }
    const path = `/v1/tenants/${from.tenant}/billing/transfers`
    const asked = () => this.asPerson(from, path, request)
    const at = this.computer.machine.now
    const answers = await Promise.all(twice ? [asked(), asked()] : [asked()])
    const made = answers.filter(({ complete, status }) => complete && (status === 200 || status === 201))
    const ids = new Set(made.map((heard) => String(bodyOf(heard).result.id)))
    if (ids.size > 1) this.findings.push(`one Idempotency-Key created ${ids.size} transfers`)
    for (const id of ids) this.sent.push({ id, from, to: recipient, amount, at, status: "pending" })
    return answers.map((heard) => said("a transfer", heard)).join(", ")
  }

  /** Returns the user's giftable credit or entire balance in USD, or `undefined` if the request fails. */
  private async amountOf(who: Person, what: "giftable" | "everything"): Promise<number | undefined> {
    const heard = await this.asPerson(who, `/v1/tenants/${who.tenant}/billing`)
    if (!heard.complete || heard.status !== 200) return undefined
    const { credits, giftable_credits } = bodyOf(heard).result
    return what === "giftable" ? giftable_credits : credits
  }

  private async answer({ how, which }: Of<"answer">): Promise<string> {
    const transfer = this.one(
      this.sent.filter(({ status }) => status === "pending"),
      which
    )
    if (transfer === undefined) return "there is none"
    const { from, id, to } = transfer
    const revoked = () =>
      this.asPerson(from, `/v1/tenants/${from.tenant}/billing/transfers/${id}`, { method: "DELETE" })
    if (how === "race" && typeof to !== "string") {
      const accepted = this.asPerson(to, `/v1/transfers/${id}/accept`, { method: "POST" })
      const answers = await Promise.all([accepted, revoked()])
      const done = answers.flatMap((heard) =>
        heard.complete && heard.status === 200 ? [bodyOf(heard).result.status as Sent["status"]] : []
      )
      if (new Set(done).size > 1) this.findings.push(`transfer ${id} was ${done.join(" and ")}`)
      transfer.status = done[0] ?? transfer.status
      return answers.map((heard) => said("the transfer", heard)).join(", ")
    }
    const heard =
      how === "revoke" || typeof to === "string"
        ? await revoked()
        : await this.asPerson(to, `/v1/transfers/${id}/${how}`, { method: "POST" })
    if (heard.complete && heard.status === 200) {
      const { status } = bodyOf(heard).result
      if (transfer.status !== "pending" && transfer.status !== status)
        this.findings.push(`transfer ${id} was ${transfer.status}, and then ${status}`)
      transfer.status = status
    }
    return said("the transfer", heard)
  }

  private async buy({ credits, manner, who }: Of<"buy">): Promise<string> {
    const person = this.people[who % this.people.length]!
    this.setManner("payments", manner)
    const heard = await this.asPerson(person, `/v1/tenants/${person.tenant}/billing/checkout`, {
      json: { amount_credits: credits }
    })
    if (!heard.complete || heard.status !== 200) return said("a checkout", heard)
    return said("a checkout", await this.ask(bodyOf(heard).result.checkout_url))
  }

  private async reload({ at, card, manner, threshold, who }: Of<"reload">): Promise<string> {
    const person = this.people[who % this.people.length]!
    const billing = `/v1/tenants/${person.tenant}/billing`
    const setup = await this.asPerson(person, `${billing}/payment-methods/setup`, { method: "POST" })
    if (setup.complete && setup.status === 200) await this.ask(bodyOf(setup).result.setup_url)
    if (at !== "charge") this.setManner("payments", manner)
    const known = this.reloading.get(person)
    if (known !== undefined) known.sure = false
    const heard = await this.asPerson(person, `${billing}/auto-reload`, {
      method: "PUT",
      json: {
        auto_reload: { enabled: true, threshold_usd: threshold, amount_credits: 5, payment_method_id: card },
        alerts: { enabled: true, warn_threshold_usd: threshold, rearm_threshold_usd: threshold + 1 }
      }
    })
    if (heard.complete && heard.status === 200) {
      const isAlone = this.reloading.get(person) === known
      this.reloading.set(person, { who: person, card, threshold, sure: isAlone, wasAbove: false })
    }
    const settings = this.reloading.get(person)
    if (at === "charge") this.setManner("payments", manner)
    const charged = await this.asPerson(person, `${billing}/auto-reload/charge`, { method: "POST" })
    // Auto-reload charges for five credits at a time.
    if (settings !== undefined && charged.complete && charged.status === 200 && settings.threshold <= 5) {
      const { state } = bodyOf(charged).result.auto_reload
      if (state === "cooldown") settings.wasAbove = true
    }
    return `${said("auto-reload", heard)}, ${said("a charge", charged)}`
  }

  private async payment({ cents, what, which }: Of<"payment">): Promise<string> {
    const paid = this.events.filter(({ type }) => type === "payment_intent.succeeded")
    const event = this.one(paid, which)
    if (event === undefined) return "there is none"
    const payment = JSON.parse(event.body).data.object.id as string
    const heard = await this.ask(`${this.computer.world.control}/payments/${payment}/${what}`, {
      json: what === "refund" ? { amount: cents / 100 } : {}
    })
    return said("the payment", heard)
  }

  private async deliver({ leaves, which }: Of<"deliver">): Promise<string> {
    const event = this.one(this.events, which)
    return event === undefined ? "there is none" : this.delivered(event, leaves)
  }

  async delivered(event: ProcessorEvent, leaves?: Request["leaves"]): Promise<string> {
    const timestamp = Math.floor(this.computer.machine.wall() / 1_000)
    const signature = createHmac("sha256", "whsec_sandbox").update(`${timestamp}.${event.body}`).digest("hex")
    const heard = await this.ask("/v1/webhooks/stripe", {
      raw: event.body,
      headers: { "stripe-signature": `t=${timestamp},v1=${signature}` },
      leaves
    })
    const isHeard = (one: ProcessorEvent) => one.answers.some((status) => status === 200)
    const earlier = this.events.slice(0, this.events.indexOf(event))
    if (isHeard(event)) this.meetOne("event once more", event.type)
    else if (event.answers.length > 0) this.meetOne("event after a failed delivery", event.type)
    if (event.payment !== undefined && earlier.some((one) => one.payment === event.payment && !isHeard(one)))
      this.meetOne("event before an earlier one", event.type)
    event.answers.push(heard.complete ? heard.status : 0)
    return said(event.type, heard)
  }

  private async pin({ team, who }: Of<"pin">): Promise<string> {
    const person = this.people[who % this.people.length]!
    const json = team ? { mode: "pinned", billing_account_id: this.team.account } : { mode: "automatic" }
    return said("billing source", await this.asPerson(person, "/v1/me/billing-source", { method: "PUT", json }))
  }

  private async remove({ who }: Of<"remove">): Promise<string> {
    const [owner] = this.people as [Person]
    const person = this.people[who % this.people.length]!
    if (person === owner || person.account === "") return "the owner cannot be removed"
    const path = `/v1/tenants/${this.team.tenant}/members/${person.account}`
    // An owner acts for the team with their own token.
    const heard = await this.asPerson(owner, path, { method: "DELETE" })
    if (heard.complete && heard.status === 200) person.removed ??= this.computer.machine.now
    return said("the team", heard)
  }

  private async limit({ mills, who }: Of<"limit">): Promise<string> {
    const person = this.people[who % this.people.length]!
    const { id } = person.limited
    if (id === "") return "there is no such key"
    const most = mills / 1_000
    // The new limit may apply regardless of the response, so spending is compared with the maximum limit ever requested.
    person.limited.most = Math.max(person.limited.most, most)
    const path = `/v1/tenants/${person.tenant}/applications/${id}`
    return said("the limit", await this.asPerson(person, path, { method: "PATCH", json: { spending_limit_usd: most } }))
  }

  private async join(): Promise<string> {
    // The user uses two browsers concurrently.
    const who = this.newPerson(`Guest${++this.strangers}`)
    const other = this.newPerson(who.name)
    const signedIn = await Promise.all([this.signIn(who), this.signIn(other)])
    if (signedIn.every(Boolean) && who.tenant !== other.tenant) this.findings.push(`${who.name} has two accounts`)
    const there = who.tenant === "" ? other : who
    if (there.tenant !== "") this.people.push(Object.assign(there, { key: there.token }))
    return signedIn.join(", ")
  }
}

// ---- requests -----------------------------------------------------------------------------------------------------------

const limitOf = ({ limit }: Of<"chat">) => (limit === undefined ? {} : { max_tokens: limit })

const bodyBy: { readonly [Name in ProtocolName]: (deed: Of<"chat">, content: string) => object } = {
  chat: (deed, content) => ({
    model: deed.model,
    messages: [{ role: "user", content }],
    ...limitOf(deed),
    ...(deed.stream && { stream: true, stream_options: { include_usage: true } })
  }),
  text: (deed, content) => ({
    model: deed.model,
    prompt: content,
    ...limitOf(deed),
    ...(deed.stream && { stream: true, stream_options: { include_usage: true } })
  }),
  messages: (deed, content) => ({
    model: deed.model,
    max_tokens: deed.limit ?? 4_096,
    messages: [{ role: "user", content }],
    ...(deed.stream && { stream: true })
  }),
  responses: (deed, content) => ({
    model: deed.model,
    input: content,
    ...(deed.limit !== undefined && { max_output_tokens: limitIn(deed) }),
    ...(deed.stream && { stream: true })
  })
}

/** Returns a request's completion limit, if any. The Responses protocol requires at least 16 tokens. */
export const limitIn = ({ limit, protocol }: Pick<Of<"chat">, "limit" | "protocol">): number | undefined =>
  limit !== undefined && protocol === "responses" ? Math.max(16, limit) : limit

const endpoints = {
  chat: "chat/completions",
  text: "completions",
  messages: "messages",
  responses: "responses"
} as const

export const endpointOf = ({ protocol = "chat" }: Pick<Of<"chat">, "protocol">): string => endpoints[protocol]
export const modelEndpoints: ReadonlySet<string> = new Set(Object.values(endpoints))

const about = { about: { type: "noul", instructions: "Is it so?" } }

/** Builders of each tool's request, with a name that identifies the call at the vendor. */
const useOf: { readonly [Name in Tool]: (name: string) => { readonly path: string; readonly request: Request } } = {
  embeddings: (name) => ({
    path: "/v1/embeddings",
    request: { json: { model: "sandbox-embedding-large", input: `${name} w w` } }
  }),
  rerank: (name) => ({
    path: "/v1/rerank",
    request: { json: { model: "sandbox-rerank", query: name, documents: ["one", "two"] } }
  }),
  decisions: (name) => ({ path: "/v1/decisions", request: { json: { state: name, questions: about } } }),
  speech: (name) => ({
    path: "/v1/audio/speech",
    request: { json: { model: "tts-1", voice: "alloy", input: name } }
  }),
  images: (name) => ({ path: "/v1/images/generations", request: { json: { prompt: name } } })
}

/** Each tool's endpoint in usage records, and its cost per use in nano-USD. */
export const toolCosts: { readonly [Name in Tool]: readonly [endpoint: string, cost: bigint] } = {
  embeddings: ["embeddings", 390n],
  rerank: ["rerank", 2_000_000n],
  decisions: ["decisions", 336n],
  speech: ["audio/speech", 120_000n],
  images: ["images/generations", 40_000_000n]
}

const budgetDeeds: ReadonlySet<string> = new Set(["budget", "rebudget", "raise", "drop", "run", "end", "check"])

const isOfBudgets = (deed: Deed): boolean =>
  budgetDeeds.has(deed.do) || (deed.do === "chat" && deed.under !== undefined)

const said = (what: string, { complete, error, status }: Heard): string =>
  `${what}: ${status === 0 ? "no answer" : status}${complete ? "" : ` (${error ?? "cut"})`}`

/** Returns the sandbox's fault for a vendor's behavior. For some behaviors in a model call, the fault contains a response. */
const faultOf = (manner: Manner, call?: Call, service?: string): object | undefined => {
  switch (manner.kind) {
    case "well":
      return undefined
    case "late":
      return { delay_ms: manner.millis }
    case "paced":
      return { chunk_delay_ms: manner.millis }
    case "cut":
      return { drop: true }
    case "refuses":
      return manner.answers === true && call !== undefined && call.deed.protocol === undefined
        ? { ...figures(call, usageOf(call.words, Math.min(10, call.deed.limit ?? 10))), status: manner.status }
        : { status: manner.status }
    case "stops":
      return call === undefined ? undefined : stopped(call)
    case "absurd":
    case "uncounted":
      return call === undefined ? undefined : figures(call, manner.kind === "absurd" ? absurd : undefined)
    case "long":
      return call?.deed.stream === true && service === "responses" ? longStream(call) : undefined
  }
}

const usageOf = (prompt_tokens: number, completion_tokens: number) => ({
  prompt_tokens,
  completion_tokens,
  total_tokens: prompt_tokens + completion_tokens
})

/** Builds an incomplete response that ends normally: a stream without its end, or truncated JSON. */
const stopped = (call: Call): object => {
  const whole = figures(call, undefined) as { readonly body: string | object }
  const { body } = whole
  return {
    ...whole,
    body: typeof body === "string" ? body.split("\n\n")[0] + "\n\n" : JSON.stringify(body).slice(0, 60)
  }
}

export const absurd = { prompt_tokens: 1_000_000_000, completion_tokens: 1_000_000_000, total_tokens: 2_000_000_000 }

/** Builds a response of ten words that reports this usage, if any. */
const figures = ({ deed }: Call, usage: object | undefined): object => {
  const head = { id: "chatcmpl-simulated", created: 0, model: deed.model }
  const text = "w w w w w w w w w w"
  if (!deed.stream) {
    const message = { role: "assistant", content: text }
    const choices = [{ index: 0, message, finish_reason: "stop" }]
    return { status: 200, body: { ...head, object: "chat.completion", choices, ...(usage !== undefined && { usage }) } }
  }
  const chunk = (more: object) => `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", ...more })}\n\n`
  const events = [
    chunk({ choices: [{ index: 0, delta: { role: "assistant", content: text }, finish_reason: null }] }),
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }),
    ...(usage === undefined ? [] : [chunk({ choices: [], usage })]),
    "data: [DONE]\n\n"
  ]
  return { status: 200, headers: { "content-type": "text/event-stream" }, body: events.join("") }
}

/** Builds a Responses stream. Its last event repeats the output with nine megabytes of additional data. */
const longStream = ({ deed, words }: Call): object => {
  const tokens = Math.min(words, deed.limit ?? words, 10)
  const event = (type: string, more: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
  const usage = { input_tokens: words, output_tokens: tokens, total_tokens: words + tokens }
  const output = [{ type: "message", content: [{ type: "output_text", text: "w", logprobs: "x".repeat(9_437_184) }] }]
  const events = [
    event("response.created", { response: { id: "resp_simulated", status: "in_progress" } }),
    event("response.output_text.delta", { output_index: 0, content_index: 0, delta: "w" }),
    event("response.completed", { response: { id: "resp_simulated", status: "completed", output, usage } })
  ]
  return { status: 200, headers: { "content-type": "text/event-stream" }, body: events.join("") }
}

/** Creates the source of randomness after the last step, independent of all steps. */
export const endOf = (seed: string) => random(`end ${seed}`)
