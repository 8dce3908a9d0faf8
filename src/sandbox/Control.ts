/** The sandbox's levers over HTTP. They control faults, received calls, the clock, media jobs and the state of tenants. */
import { Schema } from "effect"
import type { Effect } from "effect"
import { toIso } from "../kernel/Moment.ts"
import { amountMax, toJson, Usd } from "../kernel/Money.ts"
import type { AccountStatus, CreditSource } from "../books/ledger/rules/Transaction.ts"
import type { Calls } from "./Calls.ts"
import { Fault, queued } from "./Faults.ts"
import type { Faults } from "./Faults.ts"
import type { LeversContract } from "./Levers.ts"
import { json, parseMoney, reader, Refusal, wrong } from "./Outside.ts"
import type { Answer, JobMove, Lever, Moved } from "./Outside.ts"
import { serviceNames } from "./World.ts"
import type { ServiceName } from "./World.ts"
import { latest } from "./SteeredClock.ts"
import type { SteeredClock } from "./SteeredClock.ts"

interface Parts {
  readonly calls: Calls
  readonly faults: Faults
  readonly clock: SteeredClock
  readonly moveJob: (vendor_id: string, move: JobMove) => Moved | undefined
  /** Returns the service's levers, or `undefined` until the service has started. */
  readonly levers: () => LeversContract | undefined
  readonly run: <A>(effect: Effect.Effect<A>) => Promise<A>
}

const keysOf = <K extends string>(record: Record<K, true>) => Object.keys(record) as Array<K>

const sources = keysOf<CreditSource>({
  purchase: true,
  registration_bonus: true,
  signup_grant: true,
  admin: true,
  allowance: true,
  voucher: true,
  transfer_escrow: true,
  transfer_release: true,
  transfer_return: true
})

const statuses = keysOf<AccountStatus>({ active: true, suspended: true, closed: true })

const oneOf = <const T extends string>(values: ReadonlyArray<T>) =>
  Schema.Literal(...values).annotations({ message: () => `must be one of ${values.join(", ")}` })

const Advance = Schema.Struct({
  advance_ms: Schema.Int.pipe(
    Schema.nonNegative({ message: () => "must be a whole number of milliseconds, zero or more" })
  )
})

const Credit = Schema.Struct({
  tenant_id: Schema.NonEmptyString,
  amount: Usd,
  source: oneOf(sources)
})

const TenantChange = Schema.Struct({
  billing_status: Schema.optional(oneOf(statuses)),
  plan: Schema.optional(oneOf(["none", "team"])),
  plan_status: Schema.optional(oneOf(["active", "past_due", "canceled"]))
})

const Move = Schema.Struct({
  request_id: Schema.NonEmptyString,
  status: Schema.optional(oneOf(["IN_PROGRESS", "COMPLETED", "FAILED"])),
  duration: Schema.optional(Schema.Number)
})

const readMove = reader(Move)
const readFault = reader(Fault)
const readAdvance = reader(Advance)
const readCredit = reader(Credit, parseMoney)
const readTenantChange = reader(TenantChange)

export const routes = (parts: Parts): ReadonlyArray<Lever> => [
  ...faultLevers(parts.faults),
  ...callLevers(parts.calls),
  clockLever(parts),
  jobLever(parts),
  creditLever(parts),
  tenantLever(parts)
]

/** Returns the service's levers. Refuses the request until the service has started. */
const connected = ({ levers }: Pick<Parts, "levers">): LeversContract => {
  const found = levers()
  if (found === undefined) throw new Refusal(json(503, { error: "the service has not started yet" }))
  return found
}

const forgotten = (count: number): Answer => json(200, { forgotten: count })

const faultLevers = (faults: Faults): ReadonlyArray<Lever> => [
  {
    method: "POST",
    path: "/control/faults",
    does:
      "Makes the next `times` calls to a service of the outside world fail: with your own status, body (body_base64 for bytes) and headers, late " +
      `(delay_ms, chunk_delay_ms), or cut off (drop: true). Services: ${serviceNames.join(", ")}`,
    body: { service: "chat", status: 503, body: { error: { message: "overloaded" } }, times: 1 },
    answer: ({ body }) => {
      const fault = readFault(body)
      faults.add(fault)
      return queued(fault)
    }
  },
  {
    method: "DELETE",
    path: "/control/faults",
    does: "Clears the faults that no call has used up yet, and releases delayed calls",
    answer: () => forgotten(faults.clear())
  }
]

const callLevers = (calls: Calls): ReadonlyArray<Lever> => [
  {
    method: "GET",
    path: "/control/calls",
    does: "Lists the calls received by the outside world, newest first, with `service`, `path`, `body` and `aborted`",
    query: { service: "chat", limit: "10" },
    answer: ({ query }) => ({
      status: 200,
      headers: { "content-type": "application/json" },
      body: calls.list(serviceIn(query), limitIn(query))
    })
  },
  {
    method: "DELETE",
    path: "/control/calls",
    does: "Clears the list of calls",
    answer: () => forgotten(calls.clear())
  }
]

const clockLever = ({ clock, run }: Parts): Lever => ({
  method: "POST",
  path: "/control/clock",
  does: "Moves the service's clock forward, so that tokens and transfers expire, pauses end and loops run. The offset survives a restart",
  body: { advance_ms: 60_000 },
  answer: async ({ body }) => {
    const { advance_ms } = readAdvance(body)
    if (clock.now() + advance_ms > latest) throw wrong("advance_ms", `must not move the clock past ${toIso(latest)}`)
    return json(200, { now: toIso(await run(clock.advance(advance_ms))) })
  }
})

const jobLever = (parts: Parts): Lever => ({
  method: "POST",
  path: "/control/media",
  does: "Moves a media job to IN_PROGRESS, COMPLETED or FAILED; without this lever, a job completes after about a second",
  body: { request_id: "{media_request_id}", status: "COMPLETED", duration: 5 },
  answer: async (received) => {
    const move = readMove(received.body)
    const vendor_id = await parts.run(connected(parts).vendorId(move.request_id))
    if (vendor_id === undefined) return json(404, { error: "request_id: there is no such job" })
    const moved = parts.moveJob(vendor_id, move)
    return moved === undefined
      ? json(404, { error: "request_id: the vendor does not know this job" })
      : json(200, { request_id: move.request_id, ...moved })
  }
})

const creditLever = (parts: Parts): Lever => ({
  method: "POST",
  path: "/control/credit",
  does: `Books credit for a tenant from any source: ${sources.join(", ")}`,
  body: { tenant_id: "{tenant_id}", amount: 25, source: "purchase" },
  answer: async ({ body }) => {
    const { amount, source, tenant_id } = readCredit(body)
    if (amount <= 0n || amount > amountMax) {
      throw wrong("amount", `must be a number of USD above zero, at most ${toJson(amountMax)}`)
    }
    const booked = await parts.run(connected(parts).credit(tenant_id, amount, source))
    return booked ? json(200, { tenant_id, amount: toJson(amount), source }) : noTenant
  }
})

const tenantLever = (parts: Parts): Lever => ({
  method: "POST",
  path: "/control/tenants/{tenant_id}",
  does: `Sets a tenant's billing status (${statuses.join(", ")}), plan (none, team) and plan status (active, past_due, canceled)`,
  body: { billing_status: "active", plan: "team", plan_status: "active" },
  answer: async ({ body, params: { tenant_id = "" } }) => {
    const { billing_status, plan, plan_status } = readTenantChange(body)
    const { setBillingStatus, setPlan } = connected(parts)
    const changesPlan = plan !== undefined || plan_status !== undefined
    if (billing_status === undefined && !changesPlan) {
      throw wrong("billing_status", "requires at least one of billing_status, plan and plan_status")
    }
    if (billing_status !== undefined && !(await parts.run(setBillingStatus(tenant_id, billing_status)))) return noTenant
    if (changesPlan) {
      const change = {
        ...(plan !== undefined && { plan }),
        ...(plan_status !== undefined && { status: plan_status })
      }
      if (!(await parts.run(setPlan(tenant_id, change)))) return noTenant
    }
    return json(200, { tenant_id, billing_status, plan, plan_status })
  }
})

const noTenant = json(404, { error: "tenant_id: there is no such tenant" })

const serviceIn = (query: URLSearchParams): ServiceName | undefined => {
  const asked = query.get("service") || undefined
  const service = serviceNames.find((name) => name === asked)
  if (asked !== undefined && service === undefined) throw wrong("service", `must be one of ${serviceNames.join(", ")}`)
  return service
}

const limitIn = (query: URLSearchParams): number => {
  const asked = query.get("limit") || undefined
  if (asked === undefined) return Number.POSITIVE_INFINITY
  if (!/^\d{1,9}$/.test(asked) || Number(asked) === 0) throw wrong("limit", "must be a whole number of at least one")
  return Number(asked)
}
