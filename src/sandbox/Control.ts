/** The levers of a sandbox, over HTTP: any client's test can reach every state. */
import { Effect, Either, ParseResult, Schema } from "effect"
import { fromDecimal } from "../kernel/Money.ts"
import { toIso } from "../kernel/Moment.ts"
import type { LeversContract } from "./Levers.ts"
import { json, services } from "./Outside.ts"
import type { Exchange, Outside } from "./Outside.ts"
import type { SteeredClock } from "./SteeredClock.ts"

const Millis = Schema.Int.pipe(Schema.between(0, 3_600_000))

const FaultRequest = Schema.Struct({
  service: Schema.Literal(...services),
  status: Schema.optional(Schema.Int.pipe(Schema.between(200, 599))),
  body: Schema.optional(Schema.Unknown),
  headers: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.String })),
  delay_ms: Schema.optional(Millis),
  chunk_delay_ms: Schema.optional(Millis),
  drop: Schema.optional(Schema.Boolean),
  times: Schema.optionalWith(Schema.Int.pipe(Schema.positive()), { default: () => 1 })
})

const ClockRequest = Schema.Struct({ advance_ms: Schema.Int.pipe(Schema.between(0, 400 * 86_400_000)) })

const CreditRequest = Schema.Struct({
  tenant_id: Schema.String,
  amount: Schema.JsonNumber.pipe(Schema.positive()),
  source: Schema.Literal(
    "purchase",
    "registration_bonus",
    "signup_grant",
    "admin",
    "transfer_escrow",
    "transfer_release",
    "transfer_return"
  )
})

const TenantRequest = Schema.Struct({ billing_status: Schema.Literal("active", "suspended", "closed") })

export interface ControlOptions {
  readonly outside: Outside
  readonly clock: SteeredClock
  /** The service's own levers, once it is up. */
  readonly levers: () => LeversContract | undefined
}

/** Answers a call to a path below `/control`. */
export const control = async (path: string, exchange: Exchange, { clock, levers, outside }: ControlOptions): Promise<void> => {
  const { body, method, query, response } = exchange
  const withBody = async <A, I>(schema: Schema.Schema<A, I>, use: (asked: A) => Promise<void> | void): Promise<void> => {
    const decoded = Schema.decodeUnknownEither(schema, { onExcessProperty: "error" })(body)
    if (Either.isRight(decoded)) return use(decoded.right)
    const [issue] = ParseResult.ArrayFormatter.formatErrorSync(decoded.left)
    json(response, 400, { error: `${issue?.path.join(".") ?? "the body"}: ${issue?.message ?? "does not fit"}` })
  }
  const pull = async (pulled: (levers: LeversContract) => Effect.Effect<boolean>): Promise<void> => {
    const there = levers()
    if (there === undefined) return json(response, 503, { error: "the service is not up yet" })
    return (await Effect.runPromise(Effect.withClock(pulled(there), clock.clock)))
      ? json(response, 200, { ok: true })
      : json(response, 404, { error: "there is no such tenant" })
  }

  switch (`${method} ${path}`) {
    case "POST /faults":
      return withBody(FaultRequest, (fault) => {
        outside.strike({ ...fault } as Parameters<Outside["strike"]>[0])
        json(response, 200, { ok: true })
      })
    case "DELETE /faults":
      outside.forgetFaults()
      return json(response, 200, { ok: true })
    case "GET /calls":
      return json(response, 200, outside.listCalls(query.get("service") ?? undefined, Number(query.get("limit") ?? 100)))
    case "DELETE /calls":
      outside.forgetCalls()
      return json(response, 200, { ok: true })
    case "POST /clock":
      return withBody(ClockRequest, ({ advance_ms }) => {
        clock.advance(advance_ms)
        json(response, 200, { now: toIso(clock.now()) })
      })
    case "POST /credit":
      return withBody(CreditRequest, ({ amount, source, tenant_id }) => {
        const nano = fromDecimal(String(amount), 9) ?? 0n
        return pull((levers) => levers.credit(tenant_id, nano, source))
      })
  }
  const tenant = /^POST \/tenants\/([^/]+)$/.exec(`${method} ${path}`)?.[1]
  if (tenant !== undefined) {
    return withBody(TenantRequest, ({ billing_status }) => pull((levers) => levers.setBillingStatus(tenant, billing_status)))
  }
  return json(response, 404, { error: `${method} ${path}: no such lever` })
}
