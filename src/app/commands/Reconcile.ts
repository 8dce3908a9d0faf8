/** `tollgate reconcile`: compares a vendor's bill with the metered calls. */
import { Command, Options } from "@effect/cli"
import { Console, Effect, Layer, Option } from "effect"
import { createReadStream, existsSync } from "node:fs"
import { parse, toDay } from "../../kernel/Moment.ts"
import { toDecimal } from "../../kernel/Money.ts"
import { Reconciliations } from "../../operations/reconciliation/Reconciliations.ts"
import type { ReconciliationLine } from "../../operations/reconciliation/Reconciliation.ts"
import { causes } from "../../operations/reconciliation/Reconciliation.ts"
import * as Settings from "../../operations/reconciliation/Settings.ts"
import * as Config from "../Config.ts"
import * as CommandLine from "./CommandLine.ts"
import { database } from "./Database.ts"
import { json, printed } from "./Options.ts"
import { fromEnvironment, refuse } from "./Report.ts"

const options = {
  config: Options.text("config").pipe(Options.withDescription("the configuration file that contains `reconciliation`")),
  vendor: Options.text("vendor").pipe(Options.withDescription("the vendor's name in `reconciliation`")),
  from: Options.text("from").pipe(Options.withDescription("the first UTC day, such as 2027-01-01")),
  to: Options.text("to").pipe(Options.withDescription("the last UTC day")),
  file: Options.text("file").pipe(
    Options.withDescription(
      "the bill as CSV (AWS Cost and Usage Report 2.0, FOCUS or Google's billing export); without this option, the command queries the vendor's API"
    ),
    Options.optional
  ),
  json
}

const dayOf = (flag: string, text: string) =>
  /^\d{4}-\d{2}-\d{2}$/.test(text) && parse(text) !== undefined
    ? Effect.succeed(toDay(parse(text)!))
    : refuse(`${flag} ${CommandLine.printable(text)}: must be a date such as 2027-01-31`)

const shown = ({ billed, causes: found, charged, coverage, day, drift, expected }: ReconciliationLine): string =>
  [
    `${day}: billed ${toDecimal(billed)} USD, expected ${toDecimal(expected)}, charged ${toDecimal(charged)}, drift ${toDecimal(drift)}, coverage ${(100 * coverage).toFixed(2)} %`,
    ...found.map(
      ({ amount, cause, lines }) => `  ${cause} ${toDecimal(amount)} USD in ${lines} lines: ${causes[cause]}`
    )
  ].join("\n")

const inJson = ({ billed, causes: found, charged, drift, expected, ...line }: ReconciliationLine) => ({
  ...line,
  billed: toDecimal(billed),
  expected: toDecimal(expected),
  charged: toDecimal(charged),
  drift: toDecimal(drift),
  causes: found.map(({ amount, ...cause }) => ({ ...cause, amount: toDecimal(amount) }))
})

export const command = Command.make("reconcile", options, ({ config, file, from, json, to, vendor }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const settings = yield* Config.readFile(config)
    const window = { first: yield* dayOf("--from", from), last: yield* dayOf("--to", to) }
    const path = Option.getOrUndefined(file)
    if (path !== undefined && !existsSync(path))
      return yield* refuse(`--file ${CommandLine.printable(path)}: file not found`)
    const layer = Reconciliations.layer.pipe(
      Layer.provide([Settings.layer(settings), Config.calls(settings)]),
      Layer.provide(database(facts))
    )
    const days = yield* Effect.flatMap(Reconciliations, ({ reconcile, reconcileFile }) =>
      path === undefined ? reconcile(vendor, window) : reconcileFile(vendor, window, () => createReadStream(path))
    ).pipe(
      Effect.catchTags({
        CannotReconcile: ({ message }) => refuse(message),
        BillUnavailable: ({ message }) => refuse(message)
      }),
      Effect.provide(layer)
    )
    if (json) return yield* printed({ vendor, reconciliations: days.map(inJson) })
    yield* Effect.forEach(days, (day) => Console.log(shown(day)), { discard: true })
  })
).pipe(
  Command.withDescription(
    "Compare a vendor's bill with the metered calls for each UTC day, and list differences by cause. A later run replaces earlier results"
  )
)
