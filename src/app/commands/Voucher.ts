/** `tollgate voucher`: manages codes that can be redeemed for credit. */
import { Command, Options } from "@effect/cli"
import { Console, Effect, Layer, Option } from "effect"
import { toIso } from "../../kernel/Moment.ts"
import { toDecimal } from "../../kernel/Money.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import { countMax, usesMax } from "../../money/vouchers/Voucher.ts"
import type { Voucher, VoucherId } from "../../money/vouchers/Voucher.ts"
import { Vouchers } from "../../money/vouchers/Vouchers.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import { audited } from "./Audited.ts"
import * as CommandLine from "./CommandLine.ts"
import { database } from "./Database.ts"
import { amountOf, endOf, json, oneLine, printed } from "./Options.ts"
import { fromEnvironment, refuse } from "./Report.ts"

const vouchersOf = (facts: EnvironmentFacts) =>
  Vouchers.layer.pipe(Layer.provideMerge(Ledger.layer), Layer.provideMerge(database(facts)))

const within = (flag: string, count: number, max: number) =>
  count < 1 || count > max ? refuse(`${flag}: must be between 1 and ${max}`) : Effect.void

const shownOf = (voucher: Voucher) => ({
  id: voucher.id,
  code_prefix: voucher.code_prefix,
  amount_usd: toDecimal(voucher.amount_usd),
  uses: voucher.uses,
  uses_max: voucher.uses_max,
  status: voucher.status,
  description: voucher.description,
  created_at: toIso(voucher.created_at),
  expires_at: voucher.expires_at === null ? null : toIso(voucher.expires_at)
})

const voucherCreate = Command.make(
  "create",
  {
    amount: Options.text("amount").pipe(Options.withDescription("the value of each code, in credits")),
    uses: Options.integer("uses").pipe(
      Options.withDescription("the number of tenants that may redeem each code (1 by default)"),
      Options.withDefault(1)
    ),
    count: Options.integer("count").pipe(
      Options.withDescription("the number of codes to create (1 by default)"),
      Options.withDefault(1)
    ),
    expires: Options.text("expires").pipe(
      Options.withDescription("the codes' last valid day (2027-01-31), or an RFC 3339 time"),
      Options.optional
    ),
    note: Options.text("note").pipe(
      Options.withDescription("the description in the ledger of each tenant that redeems a code"),
      Options.withDefault("voucher")
    ),
    json
  },
  ({ amount, count, expires, json, note, uses }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      const amount_usd = yield* amountOf(amount)
      yield* within("--uses", uses, usesMax)
      yield* within("--count", count, countMax)
      const description = yield* oneLine("--note", note)
      const expires_at = Option.isNone(expires) ? undefined : yield* endOf(expires.value)
      const entry = yield* audited({ action: "voucher.create", details: { amount_usd, uses, count } })
      const made = yield* Effect.flatMap(Vouchers, (vouchers) =>
        vouchers.create({ amount_usd, uses, count, description, expires_at }, [entry])
      ).pipe(
        Effect.mapError(({ message }) => refuse(message)),
        Effect.provide(vouchersOf(facts))
      )
      if (json)
        return yield* printed({ vouchers: made.map((voucher) => ({ ...shownOf(voucher), code: voucher.code })) })
      for (const { code } of made) yield* Console.log(code)
    })
).pipe(Command.withDescription("Create codes that can be redeemed for credit; they are shown only once"))

const voucherList = Command.make(
  "list",
  {
    limit: Options.integer("limit").pipe(
      Options.withDescription("the maximum number of vouchers to show"),
      Options.withDefault(50)
    ),
    json
  },
  ({ json, limit }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      yield* within("--limit", limit, 1_000)
      const found = yield* Effect.flatMap(Vouchers, (vouchers) => vouchers.list(undefined, limit)).pipe(
        Effect.provide(vouchersOf(facts))
      )
      const vouchers = found.map(shownOf)
      if (json) return yield* printed({ vouchers })
      if (vouchers.length === 0) return yield* Console.log("there are no vouchers yet")
      const rows = vouchers.map((voucher) => [
        voucher.id,
        `${voucher.code_prefix}…`,
        `${voucher.amount_usd} USD`,
        `${voucher.uses} of ${voucher.uses_max}`,
        voucher.status,
        voucher.expires_at?.slice(0, 16) ?? "",
        CommandLine.printable(voucher.description)
      ])
      yield* Console.log(CommandLine.table([["ID", "CODE", "VALUE", "USED", "STATUS", "EXPIRES", "NOTE"], ...rows]))
    })
).pipe(Command.withDescription("List vouchers, newest first"))

const voucherEnd = Command.make("end", { id: Options.text("id") }, ({ id }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const entry = yield* audited({ action: "voucher.end", subject: id })
    const { uses } = yield* Effect.flatMap(Vouchers, (vouchers) => vouchers.end(id as VoucherId, [entry])).pipe(
      Effect.mapError((problem) =>
        refuse(problem._tag === "VoucherNotFound" ? `--id ${id}: there is no such voucher` : problem.message)
      ),
      Effect.provide(vouchersOf(facts))
    )
    yield* Console.log(`ended ${id} after ${uses} uses`)
  })
).pipe(Command.withDescription("End a voucher; tenants keep the credit that they redeemed"))

export const subcommands = [voucherCreate, voucherList, voucherEnd] as const

export const command = Command.make("voucher").pipe(
  Command.withDescription("Manage codes that can be redeemed for credit"),
  Command.withSubcommands(subcommands)
)
