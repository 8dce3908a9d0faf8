/** The options that several commands share, with their error messages. */
import { Options } from "@effect/cli"
import { Console, Effect } from "effect"
import { amountMax, fromDecimal, toDecimal } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { ConfigProblem } from "../../kernel/Setting.ts"
import { day, parse } from "../../kernel/Moment.ts"
import * as CommandLine from "./CommandLine.ts"
import { refuse } from "./Report.ts"

/** The option that prints the output as one JSON document, for scripts. */
export const json = Options.boolean("json").pipe(Options.withDescription("print JSON"))

export const printed = (document: object) => Console.log(JSON.stringify(document))

export const tenantOption = Options.text("tenant").pipe(Options.withDescription("the tenant's id (ten_…)"))

/** Parses an amount of credit. Rejects amounts that would be rounded or that are too large for the ledger. */
export const amountOf = (text: string, flag = "--amount"): Effect.Effect<Nano, ConfigProblem> => {
  const nano = text.length > 40 ? undefined : fromDecimal(text, 9)
  return nano === undefined || nano <= 0n || nano > amountMax || fromDecimal(text, 18) !== nano * 1_000_000_000n
    ? refuse(
        `${flag} ${text.slice(0, 40)}: must be a decimal number above 0 and up to ${toDecimal(amountMax)}, with at most 9 places`
      )
    : Effect.succeed(nano)
}

export const noTenant = (tenant: string) =>
  `--tenant ${tenant}: there is no such tenant ("tollgate tenants" lists them)`

export const tooLarge = (amount: string) => `--amount ${amount}: the balance would exceed the ledger's maximum`

const textMax = 200

/** Checks a line of text for the ledger or for people, and trims it. */
export const oneLine = (flag: string, text: string): Effect.Effect<string, ConfigProblem> => {
  const trimmed = text.trim()
  return trimmed === "" || trimmed.length > textMax || CommandLine.printable(trimmed) !== trimmed
    ? refuse(`${flag}: must be 1 to ${textMax} characters on one line`)
    : Effect.succeed(trimmed)
}

/** Parses a day or a point in time. Returns Unix milliseconds; for a day, those of its end. */
export const endOf = (text: string, flag = "--expires"): Effect.Effect<number, ConfigProblem> => {
  const isDay = /^\d{4}-\d{2}-\d{2}$/.test(text)
  const at = parse(isDay ? `${text}T00:00:00Z` : text)
  return at === undefined
    ? refuse(
        `${flag} ${CommandLine.printable(text)}: must be a day (2027-01-31, to the end of that day in UTC) or an RFC 3339 time`
      )
    : Effect.succeed(isDay ? at + day : at)
}
