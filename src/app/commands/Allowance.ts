/** `tollgate allowance`: sets, shows and ends a tenant's allowance, the credit that it receives each week or month. */
import { Command, Options } from "@effect/cli"
import { Console, Duration, Effect, Layer, Option } from "effect"
import { toDecimal } from "../../kernel/Money.ts"
import { amountOf as exactAmountOf } from "../../kernel/Amount.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import { toIso } from "../../kernel/Moment.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import { Allowances } from "../../money/allowances/Allowances.ts"
import type { Allowance, NewAllowance, Rollover } from "../../money/allowances/Allowance.ts"
import { Plans } from "../../money/allowances/Settings.ts"
import { plansReadEvery } from "../../money/allowances/TenantPlans.ts"
import * as Config from "../Config.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import { audited } from "./Audited.ts"
import { database } from "./Database.ts"
import { amountOf, json, noTenant, printed, tenantOption } from "./Options.ts"
import { fromEnvironment, refuse } from "./Report.ts"

const config = Options.text("config").pipe(
  Options.withDescription("the service's configuration file, which defines the plans"),
  Options.optional
)

const allowancesOf = (facts: EnvironmentFacts, file: Option.Option<string>) =>
  Allowances.layer.pipe(
    Layer.provide(
      Layer.effect(
        Plans,
        Option.match(file, {
          onNone: () => Effect.succeed({}),
          onSome: (path) => Effect.map(Config.readFile(path), ({ plans }) => plans)
        })
      )
    ),
    Layer.provideMerge(Ledger.layer),
    Layer.provideMerge(database(facts))
  )

const rolloverInWords = (rollover: Allowance["rollover"]): string =>
  typeof rollover === "string" ? rollover : `up to ${toDecimal(rollover.up_to_usd)} USD`

const print = (allowance: Allowance, asJson: boolean) => {
  const { amount_usd, granted_at, granted_usd, period, plan, renews_at, rollover, tenant_id, unused_usd } = allowance
  if (!asJson)
    return Console.log(
      `${tenant_id} receives ${toDecimal(amount_usd)} credits per ${period}${plan === null ? "" : ` (plan ${plan})`}, rollover ${rolloverInWords(rollover)}; ` +
        `${toDecimal(unused_usd)} credits are unused. The next period begins at ${toIso(renews_at)}`
    )
  return printed({
    tenant_id,
    plan,
    amount_usd: toDecimal(amount_usd),
    period,
    rollover: typeof rollover === "string" ? rollover : { up_to_usd: toDecimal(rollover.up_to_usd) },
    granted_usd: granted_usd === null ? null : toDecimal(granted_usd),
    granted_at: granted_at === null ? null : toIso(granted_at),
    unused_usd: toDecimal(unused_usd),
    renews_at: toIso(renews_at)
  })
}

const rolloverOf = (text: string): Effect.Effect<Rollover, ReturnType<typeof refuse>> => {
  if (text === "none" || text === "all") return Effect.succeed(text)
  const up_to_usd = exactAmountOf(text)
  return up_to_usd === undefined
    ? refuse("--rollover: must be none, all, or the maximum number of credits to carry over")
    : Effect.succeed({ up_to_usd })
}

/** Reads the allowance's terms from the options: either a plan, or an amount and a period. */
const termsOf = Effect.fnUntraced(function* (asked: {
  readonly amount: Option.Option<string>
  readonly period: Option.Option<"week" | "month">
  readonly plan: Option.Option<string>
  readonly rollover: Option.Option<string>
}) {
  const { amount, period, plan, rollover } = asked
  if (Option.isSome(plan)) {
    if (Option.isSome(amount) || Option.isSome(period) || Option.isSome(rollover))
      return yield* refuse("--plan already sets the amount, the period and the rollover; omit those options")
    return { plan: plan.value } satisfies NewAllowance
  }
  if (Option.isNone(amount) || Option.isNone(period))
    return yield* refuse("pass --amount and --period, or --plan and --config")
  return {
    amount_usd: yield* amountOf(amount.value),
    period: period.value,
    rollover: yield* rolloverOf(Option.getOrElse(rollover, () => "none"))
  } satisfies NewAllowance
})

const factorsNoticed = `a running service applies the plan's new price factor within ${Duration.toSeconds(plansReadEvery)} s and charges the previous price until then`

const allowanceSet = Command.make(
  "set",
  {
    tenant: tenantOption,
    amount: Options.text("amount").pipe(Options.withDescription("in credits (1 credit is 1 USD)"), Options.optional),
    period: Options.choice("period", ["week", "month"]).pipe(
      Options.withDescription("weeks begin on Monday, in UTC"),
      Options.optional
    ),
    rollover: Options.text("rollover").pipe(
      Options.withDescription("how much unused credit is carried over: none (the default), all, or a maximum amount"),
      Options.optional
    ),
    plan: Options.text("plan").pipe(Options.withDescription("a plan from the configuration"), Options.optional),
    config,
    json
  },
  ({ config, json, tenant, ...asked }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      const terms = yield* termsOf(asked)
      const { amount_usd, period, plan } = terms as NewAllowance
      const entry = yield* audited({
        action: "allowance.set",
        tenant_id: tenant,
        details: { amount_usd, period, plan }
      })
      const made = yield* Effect.flatMap(Allowances, (allowances) =>
        allowances.set(tenant as TenantId, terms, [entry])
      ).pipe(
        Effect.mapError((problem) =>
          refuse(
            problem._tag === "BillingAccountNotFound"
              ? noTenant(tenant)
              : problem._tag === "AllowancePlanUnknown"
                ? `--plan ${problem.plan}: no plan with this name and an allowance is configured`
                : problem.message
          )
        ),
        Effect.provide(allowancesOf(facts, config))
      )
      yield* print(made, json)
      if (!json) yield* Console.error(factorsNoticed)
    })
).pipe(
  Command.withDescription(
    `Give a tenant credit each week or month, starting now. The first credit is available immediately; ${factorsNoticed}`
  )
)

const none = (tenant: string) =>
  refuse(`--tenant ${tenant}: this tenant has no allowance (to see the allowance of its plan, pass --config)`)

const allowanceShow = Command.make("show", { tenant: tenantOption, config, json }, ({ config, json, tenant }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const found = yield* Effect.flatMap(Allowances, (allowances) => allowances.find(tenant as TenantId)).pipe(
      Effect.mapError(() => none(tenant)),
      Effect.provide(allowancesOf(facts, config))
    )
    yield* print(found, json)
  })
).pipe(Command.withDescription("Show a tenant's allowance"))

const allowanceEnd = Command.make(
  "end",
  {
    tenant: tenantOption,
    takeBack: Options.boolean("take-back").pipe(Options.withDescription("also take back the unused credit"))
  },
  ({ takeBack, tenant }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      const details = { take_back: takeBack }
      const entry = yield* audited({ action: "allowance.end", tenant_id: tenant, details })
      const { taken_usd } = yield* Effect.flatMap(Allowances, (allowances) =>
        allowances.end(tenant as TenantId, takeBack, [entry])
      ).pipe(
        Effect.mapError((problem) => (problem._tag === "AllowanceNotFound" ? none(tenant) : refuse(problem.message))),
        Effect.provide(allowancesOf(facts, Option.none()))
      )
      yield* Console.log(`ended the allowance of ${tenant} and took back ${toDecimal(taken_usd)} credits`)
    })
).pipe(Command.withDescription("End a tenant's allowance"))

export const subcommands = [allowanceSet, allowanceShow, allowanceEnd] as const

export const command = Command.make("allowance").pipe(
  Command.withDescription("Manage the credit that a tenant receives each week or month"),
  Command.withSubcommands(subcommands)
)
