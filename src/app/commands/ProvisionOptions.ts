/** The options that commands for people and tenants share. */
import { Options } from "@effect/cli"
import { Effect, Option, Schema } from "effect"
import { Email } from "../../kernel/Email.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { Terms } from "../../money/allowances/Allowance.ts"
import * as CommandLine from "./CommandLine.ts"
import { amountOf, oneLine } from "./Options.ts"
import { refuse } from "./Report.ts"

/** Refuses with the service's own message. */
export const worded = (problem: { readonly message: string }) => refuse(problem.message)

export const emailOf = (text: string, flag = "--email") =>
  Effect.mapError(Schema.decode(Email)(text), () =>
    refuse(`${flag} ${CommandLine.printable(text)}: must be an email address`)
  )

export const externalIdOption = Options.text("external-id").pipe(
  Options.withDescription("your own id for it; running the command again with this id updates the values"),
  Options.optional
)

export const externalIdOf = (given: Option.Option<string>) =>
  Option.isNone(given) ? Effect.succeed(undefined) : oneLine("--external-id", given.value)

export const allowanceOptions = {
  allowance: Options.text("allowance").pipe(Options.withDescription("credit per period, in USD"), Options.optional),
  period: Options.choice("period", ["week", "month"]).pipe(
    Options.withDescription("the period of the allowance"),
    Options.withDefault("month" as const)
  )
}

export const termsOf = (amount_usd: Nano | undefined, period: Terms["period"]): Terms | undefined =>
  amount_usd === undefined ? undefined : { amount_usd, period, rollover: "none" }

export const givenAmount = (text: Option.Option<string>, flag: string) =>
  Option.isNone(text) ? Effect.succeed(undefined) : amountOf(text.value, flag)
