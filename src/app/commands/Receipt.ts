/** `tollgate receipt verify`: checks receipts in files, without a database or a network. */
import { Args, Command, Options } from "@effect/cli"
import { Console, Effect } from "effect"
import { readFileSync } from "node:fs"
import { toIso } from "../../kernel/Moment.ts"
import { toDecimal } from "../../kernel/Money.ts"
import { gaps, read, ReceiptInvalid, verify } from "../../money/receipts/Verifier.ts"
import type { VerifiedReceipt } from "../../money/receipts/Verifier.ts"
import * as CommandLine from "./CommandLine.ts"
import { json, printed } from "./Options.ts"
import { refuse } from "./Report.ts"

const files = Args.text({ name: "file" }).pipe(
  Args.withDescription("a receipt, as returned by the service"),
  Args.atLeast(1)
)

const keys = Options.text("key").pipe(
  Options.withDescription(
    "a verifier key that you trust, of the log (GET /v1/log/keys) or of a witness; may be repeated"
  ),
  Options.atLeast(1)
)

const witnesses = Options.integer("witnesses").pipe(
  Options.withDescription("the number of witnesses that must have cosigned the log"),
  Options.withDefault(0)
)

interface Checked {
  readonly file: string
  readonly receipt?: VerifiedReceipt
  /** The reason that the receipt proves nothing. */
  readonly problem?: string
}

const check = (file: string, trusted: ReadonlyArray<string>, least: number): Effect.Effect<Checked> =>
  Effect.tryPromise(() => verify(read(readFileSync(file, "utf8")), trusted, { witnesses: least })).pipe(
    Effect.match({
      onSuccess: (receipt): Checked => ({ file, receipt }),
      onFailure: ({ error }): Checked => ({
        file,
        problem: error instanceof ReceiptInvalid ? error.message : `the file could not be read (${String(error)})`
      })
    })
  )

const documentOf = ({ file, problem, receipt }: Checked) =>
  receipt === undefined
    ? { file, valid: false, problem }
    : {
        file,
        valid: true,
        ...receipt,
        entry: {
          ...receipt.entry,
          amount: toDecimal(receipt.entry.amount),
          balance: toDecimal(receipt.entry.balance),
          giftable: toDecimal(receipt.entry.giftable),
          time: toIso(receipt.entry.time)
        }
      }

const sentenceOf = ({ file, problem, receipt }: Checked): string => {
  if (receipt === undefined) return `${file}: not proven: ${problem}`
  const { entry, index, origin, signers, size } = receipt
  const what = entry.source === "call" ? "charge" : entry.type
  return (
    `${file}: the ${what} of ${toDecimal(entry.amount)} USD, entry ${entry.number} of ${entry.account}, is in the log ` +
    `${origin} at ${index} of ${size}, signed by ${signers.join(", ")}`
  )
}

const verifyCommand = Command.make("verify", { files, keys, witnesses, json }, ({ files, json, keys, witnesses }) =>
  Effect.gen(function* () {
    const checked = yield* Effect.forEach(files, (file) => check(file, keys, witnesses))
    const missing = gaps(checked.flatMap(({ receipt }) => receipt ?? []))
    yield* json
      ? printed({ receipts: checked.map(documentOf), gaps: missing })
      : Effect.forEach(
          [...checked.map(sentenceOf), ...missing],
          (line) => Console.log(CommandLine.printable(line, 1_000)),
          { discard: true }
        )
    const wrong = checked.filter(({ receipt }) => receipt === undefined).length
    if (wrong > 0) return yield* refuse(`${wrong} of ${checked.length} receipts prove nothing`)
    if (missing.length > 0) return yield* refuse("receipts are missing or contradict each other")
  })
).pipe(
  Command.withDescription(
    "Check that receipts are in the log and signed by keys that you trust, and that their entry numbers have no gaps"
  )
)

export const subcommands = [verifyCommand] as const

export const command = Command.make("receipt").pipe(
  Command.withDescription("Verify receipts, the proofs that ledger entries are in the log of charges"),
  Command.withSubcommands(subcommands)
)
