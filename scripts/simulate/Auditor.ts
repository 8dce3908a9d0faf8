/**
 * The checks after a story. They compare users' requests and responses with the outside world's records and the service's database. Every charge
 * must belong to a call, and every received result must be charged as metered. Acknowledged changes must persist, and every expected event must have
 * occurred.
 */
import { BudgetAuditor } from "./BudgetAuditor.ts"
import { bodyOf, gaveUp } from "./Client.ts"
import type { Computer } from "./Computer.ts"
import { contextLength } from "../../src/sandbox/Chat.ts"
import { tools } from "./Story.ts"
import { endOf, limitIn, modelEndpoints, priceOf, toolCosts } from "./World.ts"
import type { Manner, Tool } from "./Story.ts"
import type { Call, Person, World } from "./World.ts"

/** Converts an amount in a response to nano-USD. */
const nano = (usd: number): bigint => BigInt(Math.round(usd * 1e9))

interface Entry {
  readonly type: "credit" | "debit"
  readonly amount: number
  readonly balance: number
  readonly reference_id: string
  readonly source?: string
}

interface Record_ {
  readonly id: string
  readonly account_id: string
  readonly model: string
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly cost: number
  readonly uncollected?: number
  readonly success: boolean
  readonly endpoint: string
  readonly billing_source_tenant_id: string
  readonly usage_source?: string
  readonly timestamp: string
}

interface Reload {
  readonly state: string
  readonly enabled?: boolean
  readonly last_error?: string | null
  readonly payment_method_id?: string | null
  readonly threshold_usd?: number
}

interface Tenant {
  readonly name: string
  readonly id: string
  readonly credits: bigint
  readonly giftable: bigint
  readonly held: bigint
  readonly entries: ReadonlyArray<Entry>
  readonly records: ReadonlyArray<Record_>
}

const minute = 60_000
/** The maximum wait for an email's next attempt after a temporary rejection, in minutes. */
const letterWait = 7 * 60
const day = 86_400_000
/** The maximum number of jobs, and of responses, that the check of strangers requests per story. */
const askedAsStrangers = 5

export class Auditor {
  private readonly computer: Computer
  private readonly world: World
  private readonly note: (line: string) => void
  private readonly jumped: boolean
  private tenants = new Map<string, Tenant>()

  constructor(computer: Computer, world: World, note: (line: string) => void, jumped: boolean) {
    this.computer = computer
    this.world = world
    this.note = note
    this.jumped = jumped
  }

  private find(what: string): void {
    this.world.findings.push(what)
  }

  /** Waits until the world is idle, then checks it. */
  async audit(seed: string): Promise<void> {
    const { machine, storage } = this.computer
    this.note("faults end")
    storage.heal()
    // Undo a clock that was set back, because timers would wait longer.
    machine.offset = Math.max(0, machine.offset)
    this.world.heal()
    if (!(await machine.run(() => this.computer.isUp, 5 * minute))) return this.find("the service does not start again")
    await machine.run(() => this.world.open.size === 0, 15 * minute)
    for (const [id, deed] of this.world.open) this.find(`step ${id} (${deed}) never ended`)
    await this.deliverAll(seed)
    await machine.run(() => false, 15 * minute)
    for (let i = 0; i < letterWait && this.count(lettersLeft) > 0; i++) await machine.run(() => false, minute)
    // Check this before sending requests, because a leftover at this point would remain forever.
    this.leftovers()
    const quiet = machine.now
    await this.lookAtBudgets()
    await this.strangers()
    // Read the emails now, because the service deletes them within the next month.
    const letters = this.computer.query("SELECT recipient, status FROM tollgate_mail_outbox")
    this.note("a month passes")
    machine.offset += 31 * day
    await this.lastTransfer()
    await machine.run(() => false, 15 * minute)
    this.answers()
    await this.learn()
    this.books()
    this.calls()
    const records = [...this.tenants.values()].flatMap((tenant) => tenant.records)
    new BudgetAuditor(this.world, records, quiet, this.world.isBack).audit()
    await this.jobs()
    this.counted()
    await this.transfers()
    this.payments()
    this.letters(letters)
    await this.reloads()
    this.computer.end()
    for (const finding of await this.computer.look()) this.find(`the checks of the books: ${finding}`)
  }

  /**
   * Sends and revokes one more transfer, to wake the job that ends expired transfers. Otherwise, the job could sleep for up to a day, because the
   * clock no longer jumps.
   */
  private async lastTransfer(): Promise<void> {
    const [who] = this.world.people
    const { world } = this
    let done = false
    const path = `/v1/tenants/${who!.tenant}/billing/transfers`
    const sendAfter = async (amount: number) => {
      await world.ask(`${this.computer.world.control}/credit`, {
        json: { tenant_id: who!.tenant, amount, source: "purchase" }
      })
      const json = { amount: 0.01, recipient_email: "late@example.com", kind: "gift" }
      const headers = { "idempotency-key": `the-last-transfer-${amount}` }
      return world.asPerson(who!, path, { json, headers })
    }
    const make = async () => {
      const first = await sendAfter(1)
      // A tenant with a debt cannot send credit, so this credit exceeds every debt in a story.
      const heard = first.status === 422 ? await sendAfter(1_000) : first
      if (heard.status !== 201) return this.find(`no one can send credit any more: ${heard.status} ${heard.text}`)
      await new Promise((resolve) => setTimeout(resolve, minute))
      await world.asPerson(who!, `${path}/${bodyOf(heard).result.id}`, { method: "DELETE" })
    }
    void make().then(() => (done = true))
    await this.computer.machine.run(() => done, 15 * minute)
  }

  private async lookAtBudgets(): Promise<void> {
    let done = false
    void this.world.budgets.lookAtAll().then(() => (done = true))
    await this.computer.machine.run(() => done, 30 * minute)
    if (!done) this.find("the budgets cannot be read")
  }

  /** Delivers all events. The processor retries each event until it is acknowledged. */
  private async deliverAll(seed: string): Promise<void> {
    const { machine } = this.computer
    const random = endOf(seed)
    const isHeard = ({ answers }: { readonly answers: ReadonlyArray<number> }) =>
      answers.some((status) => status === 200)
    for (let round = 0; round < 10; round++) {
      const left = this.world.events.filter((event) => !isHeard(event))
      if (left.length === 0) return
      const all = [...left].sort(() => random.next() - 0.5).map((event) => this.world.delivered(event))
      let done = false
      void Promise.all(all).then(() => (done = true))
      await machine.run(() => done, 15 * minute)
      await machine.run(() => false, minute)
    }
    for (const event of this.world.events)
      if (!isHeard(event))
        this.find(`an event of the processor was never acknowledged: ${event.type}, ${event.answers.join(", ")}`)
  }

  // ---- responses --------------------------------------------------------------------------------------------------------

  private answers(): void {
    for (const call of this.world.calls) {
      for (const heard of call.heard) {
        if (heard.error === gaveUp) this.find(`call ${call.id} got no response`)
        const code = bodyOf(heard)?.code ?? bodyOf(heard)?.error?.code
        if (heard.complete && heard.status === 500 && code !== "upstream_error" && code !== "upstream_unavailable")
          this.find(`call ${call.id} got a 500: ${heard.text.slice(0, 200)}`)
      }
      const whole = call.heard.filter(isWhole).map(({ text }) => text)
      for (const [i, first] of call.asked.entries())
        for (const { from, heard, life } of call.asked.slice(i + 1))
          if (first.heard !== undefined && isWhole(first.heard) && first.life === life && first.until <= from)
            if (heard !== undefined && bodyOf(heard)?.code === "idempotency_answer_lost")
              this.find(`call ${call.id} got a response, but the response is lost on a retry`)
      if (new Set(whole).size > 1 && !call.old) this.find(`call ${call.id} has one Idempotency-Key and two responses`)
    }
  }

  // ---- the service's data ----------------------------------------------------------------------------------------------

  private async learn(): Promise<void> {
    const { people, team } = this.world
    const all = [
      ...people.map((who) => ({ who, name: who.name, tenant: who.tenant })),
      { who: people[0]!, name: "the team", tenant: team.tenant }
    ]
    let failed: unknown
    let done = false
    const learnAll = async () => {
      for (const { name, tenant, who } of all) this.tenants.set(tenant, await this.tenantOf(who, name, tenant))
    }
    learnAll().then(
      () => (done = true),
      (error: unknown) => (failed = error)
    )
    await this.computer.machine.run(() => done || failed !== undefined, 30 * minute)
    if (!done) this.find(`the books cannot be read: ${String(failed)}`)
  }

  private async tenantOf(who: Person, name: string, tenant: string): Promise<Tenant> {
    const token = tenant === who.tenant ? undefined : await this.tokenOf(who, tenant)
    const get = async (path: string) => {
      const heard = token === undefined ? await this.world.asPerson(who, path) : await this.world.ask(path, { token })
      if (heard.status !== 200) throw new Error(`${path} returned ${heard.status} ${heard.error ?? heard.text}`)
      return bodyOf(heard)
    }
    const pages = async <A>(path: string): Promise<ReadonlyArray<A>> => {
      const found: Array<A> = []
      for (let page = 1; ; page++) {
        const body = await get(`${path}?per_page=100&page=${page}`)
        const { records, total_pages } = body.result ?? body
        found.push(...records)
        if (page >= total_pages) return found
      }
    }
    const { credits, giftable_credits, held_credits } = (await get(`/v1/tenants/${tenant}/billing`)).result
    return {
      name,
      id: tenant,
      credits: nano(credits),
      giftable: nano(giftable_credits),
      held: nano(held_credits),
      entries: await pages<Entry>(`/v1/tenants/${tenant}/billing/ledger`),
      records: await pages<Record_>(`/v1/tenants/${tenant}/usage`)
    }
  }

  private async tokenOf(who: Person, tenant: string): Promise<string> {
    const { client_id, issuer } = this.computer.world
    const issued = bodyOf(await this.world.ask(`${issuer}/token`, { json: { email: who.email } }))
    const signedIn = bodyOf(await this.world.ask("/v1/auth/google", { json: { id_token: issued.id_token, client_id } }))
    const { refresh_token } = signedIn.result.token_response
    const refreshed = await this.world.ask("/v1/auth/token", {
      json: { client_id, grant_type: "refresh_token", refresh_token, tenant_id: tenant }
    })
    return bodyOf(refreshed).result.access_token
  }

  private books(): void {
    const records = new Map(
      [...this.tenants.values()].flatMap(({ records }) => records.map((one) => [one.id, one] as const))
    )
    const charged = new Map<string, bigint>()
    for (const { credits, entries, giftable, held, id, name } of this.tenants.values()) {
      let balance = 0n
      for (const entry of entries.toReversed()) {
        balance += entry.type === "credit" ? nano(entry.amount) : -nano(entry.amount)
        if (balance < 0n) this.find(`the balance of ${name} was below zero`)
        if (balance !== nano(entry.balance)) {
          this.find(
            `an entry of ${name} states the balance ${entry.balance}, but the entries sum to ${Number(balance) / 1e9}`
          )
          break
        }
        if (entry.type !== "debit" || entry.source !== undefined || !entry.reference_id.startsWith("use_")) continue
        const record = records.get(entry.reference_id)
        if (record === undefined) this.find(`${name} was charged for ${entry.reference_id}, which has no record`)
        else if (record.billing_source_tenant_id !== id)
          this.find(`${name} was charged for a call that someone else paid for`)
        if (charged.has(entry.reference_id)) this.find(`${entry.reference_id} was charged twice`)
        charged.set(entry.reference_id, nano(entry.amount))
      }
      if (balance !== credits)
        this.find(`${name} has ${Number(credits) / 1e9}, but its entries sum to ${Number(balance) / 1e9}`)
      if (giftable > credits) this.find(`${name} could send more credit than exists`)
      this.gifts(this.tenants.get(id)!)
      if (held !== 0n) this.find(`${name} has held credits a month later`)
      for (const [source, amount] of [
        ["signup_grant", 40_000_000n],
        ["registration_bonus", 10_000_000n]
      ] as const) {
        const found = entries.filter((entry) => entry.source === source).map((entry) => nano(entry.amount))
        const due = id === this.world.team.tenant ? [] : [amount]
        if (String(found) !== String(due)) this.find(`${name} got a ${source} of ${found.join(", ") || "nothing"}`)
      }
    }
    for (const record of records.values()) {
      if ((charged.get(record.id) ?? 0n) !== nano(record.cost))
        this.find(
          `${record.id} costs ${record.cost}, but ${Number(charged.get(record.id) ?? 0n) / 1e9} was charged for it`
        )
      // A broken stream is charged for the usage reported so far. `messages` reports some usage in its first event. If a stream ends without a
      // report, the service counts its usage.
      if (!record.success && record.cost > 0 && record.endpoint !== "messages" && record.usage_source === undefined)
        this.find(`${record.id} failed but cost ${record.cost}`)
    }
    for (const who of this.world.people) {
      const count = [...records.values()].filter(
        (one) =>
          one.account_id === who.account &&
          !one.success &&
          one.cost > 0 &&
          one.usage_source !== undefined &&
          one.endpoint !== "messages"
      ).length
      const most = this.world.calls.filter(
        (call) => call.who === who && call.seen.some(({ manner }) => endsInMidst(call, manner.kind))
      ).length
      if (count > most)
        this.find(`${who.name} was charged for ${count} failed calls, but only ${most} streams had ended midway`)
    }
  }

  // ---- model calls ----------------------------------------------------------------------------------------------------

  private calls(): void {
    const records = [...this.tenants.values()]
      .flatMap(({ records }) => records)
      .filter(({ endpoint, success }) => modelEndpoints.has(endpoint) && success)
    const estimated = new Map<string, number>()
    const exact = new Map<number, Array<Record_>>()
    for (const record of records) {
      const { account_id, completion_tokens, cost, model, prompt_tokens, uncollected = 0, usage_source } = record
      const due = priceOf(model as Call["deed"]["model"], prompt_tokens, completion_tokens)
      if (nano(cost) + nano(uncollected) !== due)
        this.find(
          `a call of ${model} with ${prompt_tokens} and ${completion_tokens} tokens cost ${cost}, not ${Number(due) / 1e9}`
        )
      if (usage_source !== undefined) {
        estimated.set(account_id, (estimated.get(account_id) ?? 0) + 1)
        if (prompt_tokens === 0) this.find(`a call of ${model} without figures was charged for no prompt`)
        if (prompt_tokens > contextLength || completion_tokens > 8_192)
          this.find(`${prompt_tokens} and ${completion_tokens} tokens were accepted`)
      } else exact.set(prompt_tokens, [...(exact.get(prompt_tokens) ?? []), record])
    }
    const spent = new Map<Person, bigint>()
    for (const call of this.world.calls) {
      const found = exact.get(call.words) ?? []
      exact.delete(call.words)
      this.call(call, found)
      if (call.deed.limited)
        spent.set(call.who, (spent.get(call.who) ?? 0n) + found.reduce((sum, { cost }) => sum + nano(cost), 0n))
    }
    for (const [who, cost] of spent)
      if (cost > nano(who.limited.most))
        this.find(`the key of ${who.name} with a limit of ${who.limited.most} spent ${Number(cost) / 1e9}`)
    for (const [words, found] of exact)
      for (const { cost } of found) this.find(`${cost} was charged for a call of ${words} tokens that no one made`)
    for (const who of this.world.people) {
      const mine = this.world.calls.filter((call) => call.who === who)
      const count = estimated.get(who.account) ?? 0
      const least = mine.filter((call) => isFigureless(call) && call.heard.some(isWhole)).length
      const most = mine.filter((call) => isFigureless(call) || mayBeEstimated(call)).length
      if (count < least)
        this.find(`${least} responses without figures went to ${who.name}, but ${count} estimates were charged`)
      if (count > most) this.find(`${who.name} was charged for ${count} estimates, but at most ${most} were possible`)
    }
  }

  private call(call: Call, found: ReadonlyArray<Record_>): void {
    const { deed, id, key, seen, words } = call
    const whole = call.heard.some(isWhole)
    if (found.length > 1 && !call.old) this.find(`call ${id} was charged ${found.length} times`)
    const asked = deed.model === "sandbox-failover" ? 2 : 1
    if (seen.length > asked && !call.old)
      this.find(`call ${id} reached a vendor ${seen.length} times${key === undefined ? "" : " with one key"}`)
    if (seen.length === 0) {
      if (whole) this.find(`call ${id} got a response although no vendor was called`)
      if (found.length > 0) this.find(`call ${id} was charged although no vendor was called`)
      return
    }
    if (seen.every(({ manner }) => manner.kind === "refuses") && found.length > 0)
      this.find(`call ${id} was charged although every vendor refused it`)
    if (seen.every(({ manner }) => manner.kind === "cut" || manner.kind === "stops") && found.length > 0)
      this.find(`call ${id} was charged although its vendor stopped before it reported usage`)
    if (whole && seen.every(({ manner }) => isFailing.has(manner.kind)))
      this.find(`call ${id} got a complete response, but no vendor sent one`)
    const [record] = found
    if (record?.billing_source_tenant_id === this.world.team.tenant && wasRemoved(call))
      this.find(`call ${id} was paid by a team that ${call.who.name} has left`)
    if (record !== undefined && record.completion_tokens > Math.min(words, limitIn(deed) ?? words))
      this.find(`call ${id} was charged for ${record.completion_tokens} tokens of a response`)
    if (isFigureless(call)) return
    // Another call can spend the credit of a released call before that call settles.
    if (record?.uncollected !== undefined && !this.mayBeReleased(call))
      this.find(`call ${id} cost more than its reservation`)
    if (whole && record === undefined) this.find(`call ${id} got a response but was not charged`)
    if (whole && record !== undefined) {
      const told = usageIn(call.heard.find(isWhole)!.text)
      if (
        told !== undefined &&
        (told.prompt_tokens !== record.prompt_tokens || told.completion_tokens !== record.completion_tokens)
      )
        this.find(
          `call ${id} received ${told.completion_tokens} tokens but was charged for ${record.completion_tokens}`
        )
    }
    const last = seen.at(-1)!
    const end = this.computer.ends.get(last.life) ?? Number.POSITIVE_INFINITY
    const late = last.manner.kind === "late" ? last.manner.millis : 0
    // After a disconnect, the service reads a stream for ten more seconds, and any other response to its end.
    const isServed =
      last.manner.kind === "well" ||
      (last.manner.kind === "late" && (late <= 8_000 || !deed.stream)) ||
      (last.manner.kind === "long" && deed.leaves === undefined)
    if (isServed && end > last.at + late + 2 * minute && record === undefined)
      this.find(`call ${id} was served by its vendor but not charged`)
  }

  private mayBeReleased({ asked }: Call): boolean {
    return this.world.lapses.some((lapse) => asked.some(({ from }) => from <= lapse))
  }

  /** Checks that only the owning account and key can access a job or a stored response. */
  private async strangers(): Promise<void> {
    let done = false
    void this.askAsStrangers().then(() => (done = true))
    await this.computer.machine.run(() => done, 30 * minute)
  }

  private async askAsStrangers(): Promise<void> {
    const { world } = this
    const other = (who: Person) => world.people.find((one) => one !== who && one.key !== "")
    for (const { id, who } of world.jobs.filter((job) => job.id !== undefined).slice(0, askedAsStrangers)) {
      for (const token of [who.limited.key, other(who)?.key ?? ""].filter((key) => key !== "")) {
        const { status } = await world.ask(`/v1/tools/media/status?request_id=${id}`, { token })
        if (status !== 404) this.find(`a video of ${who.name} is shown to a key that did not order it: ${status}`)
      }
    }
    const answered = world.calls.flatMap(({ deed, heard, who }) =>
      deed.protocol === "responses"
        ? heard.filter(({ status }) => status === 200).map(({ text }) => ({ text, who }))
        : []
    )
    for (const { text, who } of answered.slice(0, askedAsStrangers)) {
      const previous_response_id = /"id":"(resp[^"]*)"/.exec(text)?.[1]
      const token = other(who)?.key
      if (previous_response_id === undefined || token === undefined) continue
      const json = { model: "sandbox-small", input: "go on", max_output_tokens: 16, previous_response_id }
      // A stranger without credit can get a 402 instead.
      const { status } = await world.ask("/v1/responses", { token, json })
      if (status !== 404 && status !== 402) this.find(`a response of ${who.name} is continued by a stranger: ${status}`)
    }
  }

  // ---- other calls ----------------------------------------------------------------------------------------------------

  private async jobs(): Promise<void> {
    const known = this.world.jobs.filter(({ id }) => id !== undefined)
    let done = false
    const charged = new Map<Person, bigint>()
    const askAll = async () => {
      for (const job of known) {
        const heard = await this.world.asPerson(job.who, `/v1/tools/media/status?request_id=${job.id}`)
        const { cost_usd, settled } = bodyOf(heard) ?? {}
        if (heard.status !== 200 || settled !== true)
          this.find(`a video of ${job.who.name} is not settled: ${heard.text.slice(0, 200)}`)
        else charged.set(job.who, (charged.get(job.who) ?? 0n) + nano(cost_usd))
      }
    }
    void askAll().then(() => (done = true))
    await this.computer.machine.run(() => done, 30 * minute)
    await this.listedJobs()
    for (const who of this.world.people) {
      const cost = this.costOf(who, "media")
      const least = charged.get(who) ?? 0n
      const unsure = this.world.jobs
        .filter((job) => job.who === who && job.id === undefined && job.seen.length > 0)
        .reduce((sum, job) => sum + nano(job.cost), 0n)
      if (cost < least || cost > least + unsure)
        this.find(
          `the videos of ${who.name} cost ${Number(cost) / 1e9}, at least ${Number(least) / 1e9} and at most ${Number(unsure) / 1e9} more are due`
        )
    }
  }

  /** Checks that each user's list contains all acknowledged jobs, and no more jobs than were not rejected. */
  private async listedJobs(): Promise<void> {
    for (const who of this.world.people) {
      const mine = this.world.jobs.filter((job) => job.who === who)
      let listed: ReadonlyArray<{ readonly request_id: string }> | undefined
      void this.world
        .asPerson(who, "/v1/tools/media/jobs?per_page=100")
        .then((heard) => (listed = bodyOf(heard)?.records ?? []))
      await this.computer.machine.run(() => listed !== undefined, 15 * minute)
      const ids = new Set((listed ?? []).map(({ request_id }) => request_id))
      for (const { id } of mine)
        if (id !== undefined && !ids.has(id)) this.find(`a video of ${who.name} was acknowledged but is not listed`)
      const refused = mine.filter(
        ({ heard, seen }) => heard?.complete === true && seen.some(({ manner }) => manner.kind === "refuses")
      )
      if (ids.size > mine.length - refused.length)
        this.find(
          `${who.name} sees ${ids.size} videos, but of ${mine.length} requested ones ${refused.length} were refused`
        )
    }
  }

  /** Returns the total cost of a user's calls to an endpoint, in nano-USD. With `owed`, includes uncollected amounts. */
  private costOf(who: Person, endpoint: string, owed = false): bigint {
    const { records } = this.tenants.get(who.tenant) ?? { records: [] }
    return records
      .filter((one) => one.account_id === who.account && one.endpoint.includes(endpoint))
      .reduce((sum, { cost, uncollected = 0 }) => sum + nano(cost) + (owed ? nano(uncollected) : 0n), 0n)
  }

  private counted(): void {
    for (const who of this.world.people) {
      const mine = this.world.searches.filter((search) => search.who === who)
      const price = 5_000_000n
      // If a search was released, its credit can be spent before it settles.
      const count = this.costOf(who, "search", this.world.lapses.length > 0) / price
      const least = mine.filter(({ heard }) => heard?.complete === true && heard.status === 200).length
      const most = mine.filter(({ seen }) =>
        seen.some(({ manner }) => manner.kind !== "refuses" && manner.kind !== "cut")
      ).length
      if (count < least || count > most)
        this.find(`${who.name} was charged for ${count} searches, got ${least}, and ${most} were made`)
      for (const tool of tools) this.used(who, tool)
    }
  }

  private used(who: Person, tool: Tool): void {
    const [endpoint, cost] = toolCosts[tool]
    const mine = this.world.uses.filter((used) => used.who === who && used.tool === tool)
    const { records } = this.tenants.get(who.tenant) ?? { records: [] }
    const charged = records.filter((one) => one.account_id === who.account && one.endpoint === endpoint && one.success)
    const least = mine.filter(({ heard }) => heard?.complete === true && heard.status === 200).length
    const most = mine.filter(({ seen }) => seen.some(({ manner }) => !isFailing.has(manner.kind))).length
    if (charged.length < least || charged.length > most)
      this.find(`${who.name} was charged for ${tool} ${charged.length} times, got it ${least} times, ${most} were made`)
    for (const record of charged)
      if (nano(record.cost) + nano(record.uncollected ?? 0) !== cost)
        this.find(`${tool} cost ${record.cost}, not ${Number(cost) / 1e9}`)
  }

  // ---- transfers ------------------------------------------------------------------------------------------------------

  private async transfers(): Promise<void> {
    for (const who of this.world.people) {
      let listed: ReadonlyArray<{ id: string; status: string; amount: number }> | undefined
      void this.world
        .asPerson(who, `/v1/tenants/${who.tenant}/billing/transfers?per_page=100`)
        .then((heard) => (listed = bodyOf(heard)?.result?.records ?? []))
      await this.computer.machine.run(() => listed !== undefined, 15 * minute)
      const known = new Map((listed ?? []).map((one) => [one.id, one]))
      for (const sent of this.world.sent.filter(({ from }) => from === who)) {
        const found = known.get(sent.id)
        if (found === undefined && known.size < 100) this.find(`a transfer of ${who.name} was acknowledged but is gone`)
        if (found !== undefined && sent.status !== "pending" && found.status !== sent.status)
          this.find(`a transfer of ${who.name} was ${sent.status} but is now ${found.status}`)
      }
      for (const { amount, id, status } of known.values()) this.transfer(who, id, status, amount)
    }
    const purchased = (source: string) =>
      [...this.tenants.values()]
        .flatMap(({ entries }) => entries)
        .filter((entry) => entry.source === source)
        .reduce((sum, entry) => sum + nano(entry.amount), 0n)
    const [escrowed, ended] = [
      purchased("transfer_escrow"),
      purchased("transfer_release") + purchased("transfer_return")
    ]
    if (escrowed !== ended) this.find(`${Number(escrowed) / 1e9} went into escrow, but ${Number(ended) / 1e9} came out`)
  }

  /** Checks that credit granted by the operator stays with its recipient. */
  private gifts({ entries, name }: Tenant): void {
    let giftable = 0n
    for (const { amount, source, type } of entries.toReversed()) {
      if (type === "credit" && source !== "signup_grant" && source !== "registration_bonus") giftable += nano(amount)
      if (source === "transfer_escrow") giftable -= nano(amount)
      if (giftable < 0n) return this.find(`${name} has sent credit that cannot be given away`)
    }
  }

  private transfer(who: Person, id: string, status: string, amount: number): void {
    const entries = [...this.tenants.values()].flatMap((tenant) =>
      tenant.entries.filter(({ reference_id }) => reference_id === id).map((entry) => ({ ...entry, tenant }))
    )
    const of = (source: string) => entries.filter((entry) => entry.source === source)
    if (status === "pending") this.find(`a transfer of ${who.name} is pending after a month`)
    if (of("transfer_escrow").length !== 1)
      this.find(`a transfer of ${who.name} was escrowed ${of("transfer_escrow").length} times`)
    const [paid, other] =
      status === "accepted" ? ["transfer_release", "transfer_return"] : ["transfer_return", "transfer_release"]
    if (of(paid!).length !== 1 || of(other!).length !== 0)
      this.find(
        `a transfer that is ${status} was released ${of("transfer_release").length} times and returned ${of("transfer_return").length} times`
      )
    for (const entry of entries)
      if (nano(entry.amount) !== nano(amount)) this.find(`a transfer of ${amount} moved ${entry.amount}`)
  }

  // ---- payments -------------------------------------------------------------------------------------------------------

  private payments(): void {
    const objects = this.world.events.map(({ body, type }) => ({ type, object: JSON.parse(body).data.object }))
    const paid = new Map(
      objects
        .filter(({ type }) => type === "payment_intent.succeeded")
        .map(({ object }) => [object.id as string, object])
    )
    const booked = [...this.tenants.values()].flatMap(({ entries, id }) => entries.map((entry) => ({ entry, id })))
    /** The refunds and disputes, each with its payment. */
    const movements = new Map(
      objects
        .filter(({ object }) => object.payment_intent !== undefined)
        .map(({ object }) => [object.id as string, object.payment_intent as string])
    )
    for (const { entry } of booked) {
      const { reference_id, source } = entry
      const isKnown = reference_id.startsWith("sandbox_") || paid.has(reference_id) || movements.has(reference_id)
      if (source === "purchase" && !isKnown) this.find(`${entry.amount} was credited for a payment that does not exist`)
    }
    for (const [payment, object] of paid) {
      const mine = booked.filter(
        ({ entry: { reference_id } }) => reference_id === payment || movements.get(reference_id) === payment
      )
      const credited = mine.filter(({ entry }) => entry.type === "credit" && entry.reference_id === payment).length
      if (credited > 1) this.find(`a payment of ${object.amount / 100} was credited ${credited} times`)
      if (mine.length === 0) {
        this.find(`a payment of ${object.amount / 100} was never credited`)
        continue
      }
      const net = mine.reduce((sum, { entry }) => sum + (entry.type === "credit" ? 1n : -1n) * nano(entry.amount), 0n)
      const amount = BigInt(object.amount) * 10_000_000n
      const due = amount - this.returned(payment, amount, objects)
      const [{ id }] = mine as [(typeof mine)[0]]
      const [newest] = this.tenants.get(id)!.entries
      if (id !== `ten_${String(object.metadata.tenant_id).slice(4)}`)
        this.find("a payment was credited to the wrong tenant")
      // If an amount could not be recovered, the tenant owes it and has no credit. The service may have deleted an event that arrived long before
      // its payment.
      if (this.world.farAt === undefined && net !== due && !(net > due && newest!.balance === 0))
        this.find(
          `a payment of ${object.amount / 100} resulted in ${Number(net) / 1e9}, but ${Number(due) / 1e9} is due`
        )
    }
  }

  /** Returns a payment's refunded amount, in nano-USD. */
  private returned(
    payment: string,
    amount: bigint,
    objects: ReadonlyArray<{ type: string; object: { id: string; amount: number; payment_intent?: string } }>
  ): bigint {
    const refunds = new Map<string, bigint>()
    let disputed = 0n
    for (const { object, type } of objects) {
      if (object.payment_intent !== payment) continue
      const cents = () => BigInt(object.amount) * 10_000_000n
      if (type === "refund.created") refunds.set(object.id, cents())
      if (type === "refund.failed") refunds.set(object.id, 0n)
      if (type === "charge.dispute.funds_withdrawn") disputed = cents()
    }
    // Reinstated money remains reinstated, in any order of the events.
    if (
      objects.some(
        ({ object, type }) => type === "charge.dispute.funds_reinstated" && object.payment_intent === payment
      )
    )
      disputed = 0n
    const sum = disputed + [...refunds.values()].reduce((sum, one) => sum + one, 0n)
    return sum > amount ? amount : sum
  }

  /** Checks the state of every auto-reload, and that no tenant is charged twice within ten minutes. */
  private async reloads(): Promise<void> {
    for (const who of this.world.people) {
      let found: Reload | undefined
      void this.world
        .asPerson(who, `/v1/tenants/${who.tenant}/billing/auto-reload`)
        .then((heard) => (found = bodyOf(heard)?.result?.auto_reload ?? { state: "unknown" }))
      await this.computer.machine.run(() => found !== undefined, 15 * minute)
      this.reload(who, found ?? { state: "unknown" })
    }
    if (this.jumped) return
    const last = new Map<string, number>()
    for (const { body, type } of this.world.events) {
      const { created, metadata } = JSON.parse(body).data.object
      if (type !== "payment_intent.succeeded" || metadata?.kind !== "auto_reload") continue
      const before = last.get(metadata.tenant_id)
      if (before !== undefined && created - before < 590)
        this.find(`a tenant was charged twice within ${created - before} s`)
      last.set(metadata.tenant_id, created)
    }
  }

  private reload(who: Person, { enabled, last_error, payment_method_id, state, threshold_usd }: Reload): void {
    if (state === "in_flight" || state === "unknown")
      return this.find(`the auto-reload of ${who.name} is ${state} after a month`)
    const settings = this.world.reloading.get(who)
    if (settings === undefined || !settings.sure) return
    if (threshold_usd !== settings.threshold || payment_method_id !== settings.card)
      this.find(`auto-reload of ${who.name} was set to ${settings.threshold} but is ${threshold_usd}`)
    // After a declined card, auto-reload does not retry.
    if (enabled !== true || last_error !== null || settings.card !== "pm_card_visa" || !settings.wasAbove) return
    const { credits = 0n } = this.tenants.get(who.tenant) ?? {}
    if (credits < nano(settings.threshold))
      this.find(`${who.name} has ${Number(credits) / 1e9}, below ${settings.threshold}, but is not reloaded`)
  }

  // ---- expected events ----------------------------------------------------------------------------------------------------

  private letters(rows: ReturnType<Computer["query"]>): void {
    const met = (fault: string) => [...this.world.met.keys()].some((one) => one.startsWith(fault))
    for (const { at, to } of this.world.sent) {
      // Each email contains its own token, so two equal texts mean that one email was sent twice.
      const texts = this.world.letters.filter((letter) => letter.to === to).map(({ text }) => text)
      if (new Set(texts).size < texts.length) this.find(`an email was sent to ${String(to)} twice`)
      if (typeof to !== "string" || this.world.letters.some((letter) => letter.to === to)) continue
      const { status } = rows.find(({ recipient }) => recipient === to) ?? {}
      const { farAt } = this.world
      if (status === undefined && farAt !== undefined && at <= farAt) continue
      // If the process ended or the connection broke during delivery, the outcome is unknown.
      if (status === "unknown" && (this.computer.lives > 1 || met("mail "))) continue
      if (status === "failed" && (met("mail ") || farAt !== undefined)) continue
      this.find(
        `no email to ${to}, who was sent credit: the email is ${status === undefined ? "missing" : String(status)}`
      )
    }
  }

  private count(from: string): number {
    const [row] = this.computer.query(`SELECT count(*) AS count FROM ${from}`)
    return Number(row!["count"])
  }

  private leftovers(): void {
    const left = (what: string, from: string) => {
      const count = this.count(from)
      if (count !== 0) this.find(`${count} ${what} are left in a quiet world`)
    }
    left("reservations", "tollgate_ledger_reservations")
    left("emails", lettersLeft)
    left(
      "budgets with reservations",
      "tollgate_ledger_budgets WHERE reserved <> 0 OR tokens_reserved <> 0 OR open <> 0"
    )
    const [reserved] = this.computer.query("SELECT COALESCE(sum(reserved), 0) AS sum FROM tollgate_ledger_amounts")
    if (reserved!["sum"] !== 0) this.find(`${Number(reserved!["sum"]) / 1e9} is reserved in a quiet world`)
  }
}

const lettersLeft = "tollgate_mail_outbox WHERE status IN ('waiting', 'sending')"

/** The vendor behaviors that produce no complete response. */
const isFailing: ReadonlySet<string> = new Set(["refuses", "cut", "stops"])

/** Returns whether the caller had been removed from the team before every attempt. */
const wasRemoved = ({ asked, who }: Call): boolean =>
  who.removed !== undefined && asked.every(({ from }) => from > who.removed!)

const isWhole = ({ complete, status, text }: Call["heard"][number]): boolean => {
  if (!complete || status !== 200) return false
  if (text.startsWith("data:")) return text.trimEnd().endsWith("data: [DONE]") && !text.includes('data: {"error"')
  return !text.startsWith("event:") || /^event: (message_stop|response\.(completed|incomplete))$/m.test(text)
}

/** Returns whether the service can charge for a failed stream, because its vendor ended it midway, or cut it after `messages` reported the prompt. */
const endsInMidst = ({ deed }: Call, kind: Manner["kind"]): boolean =>
  kind === "stops" || (kind === "cut" && deed.protocol === "messages")

/** Returns whether the call's vendor reported no plausible figures. */
const isFigureless = ({ seen }: Call): boolean =>
  seen.some(({ manner }) => manner.kind === "absurd" || manner.kind === "uncounted")

/** Returns whether the client may have disconnected during the call. If so, the service may have estimated the usage. */
const mayBeEstimated = ({ deed, heard, seen }: Call): boolean =>
  seen.some(({ manner }) => manner.kind === "paced" || manner.kind === "late" || manner.kind === "long") &&
  deed.leaves !== undefined &&
  !heard.some(isWhole)

const usageIn = (text: string): { readonly prompt_tokens: number; readonly completion_tokens: number } | undefined => {
  const [, prompt, completion] = /"usage":\{"prompt_tokens":(\d+),"completion_tokens":(\d+)/.exec(text) ?? []
  return prompt === undefined ? undefined : { prompt_tokens: Number(prompt), completion_tokens: Number(completion) }
}
