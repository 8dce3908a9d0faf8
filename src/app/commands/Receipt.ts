/** `tollgate receipt verify`: checks receipts and proofs of liabilities in files, without a database or a network. */
import { Args, Command, Options } from "@effect/cli"
import { Console, Effect } from "effect"
import { readFileSync } from "node:fs"
import { toIso } from "../../kernel/Moment.ts"
import { toDecimal } from "../../kernel/Money.ts"
import { gaps } from "../../money/receipts/Gaps.ts"
import { contradictions, readLiability, verifyLiability } from "../../money/receipts/LiabilityVerifier.ts"
import type { VerifiedLiability } from "../../money/receipts/LiabilityVerifier.ts"
import { read, ReceiptInvalid, verify } from "../../money/receipts/Verifier.ts"
import type { VerifiedReceipt } from "../../money/receipts/Verifier.ts"
import * as CommandLine from "./CommandLine.ts"
import { json, printed } from "./Options.ts"
import { refuse } from "./Report.ts"

const files = Args.text({ name: "file" }).pipe(
  Args.withDescription("a receipt or a proof of liabilities, as returned by the service"),
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
  readonly liability?: VerifiedLiability
  /** The reason that the file proves nothing. */
  readonly problem?: string
}

const verified = async (file: string, trusted: ReadonlyArray<string>, witnesses: number): Promise<Checked> => {
  const text = readFileSync(file, "utf8")
  const liability = readLiability(text)
  return liability === undefined
    ? { file, receipt: await verify(read(text), trusted, { witnesses }) }
    : { file, liability: await verifyLiability(liability, trusted) }
}

const check = (file: string, trusted: ReadonlyArray<string>, least: number): Effect.Effect<Checked> =>
  Effect.tryPromise(() => verified(file, trusted, least)).pipe(
    Effect.catchAll(({ error }) =>
      Effect.succeed({
        file,
        problem: error instanceof ReceiptInvalid ? error.message : `the file could not be read (${String(error)})`
      })
    )
  )

const documentOf = ({ file, liability, problem, receipt }: Checked) => {
  if (liability !== undefined) {
    const { balance, total } = liability
    return { file, valid: true, ...liability, balance: toDecimal(balance), total: toDecimal(total) }
  }
  return receipt === undefined
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
}

const sentenceOf = ({ file, liability, problem, receipt }: Checked): string => {
  if (liability !== undefined) {
    const { account, accounts, balance, day, entry, origin, total } = liability
    return (
      `${file}: the balance of ${toDecimal(balance)} USD of ${account} after entry ${entry} is in the total of ${toDecimal(total)} USD ` +
      `of ${accounts} accounts at the end of ${day}, signed by ${origin}`
    )
  }
  if (receipt === undefined) return `${file}: not proven: ${problem}`
  const { cosigned, entry, index, origin, signers, size } = receipt
  const own = signers.filter((signer) => !cosigned.some(({ name }) => name === signer))
  const witnesses = cosigned.map(({ name, time }) => `${name} at ${toIso(time)}`)
  const what = entry.source === "call" ? "charge" : entry.type
  const vendor = entry.vendor_requests === "" ? "" : ` for the vendor's request ${entry.vendor_requests}`
  return (
    `${file}: the ${what} of ${toDecimal(entry.amount)} USD${vendor}, entry ${entry.number} of ${entry.account}, is in the log ` +
    `${origin} at ${index} of ${size}, signed by ${own.join(", ")}` +
    (witnesses.length === 0 ? "" : `, cosigned by ${witnesses.join(", ")}`)
  )
}

const verifyCommand = Command.make("verify", { files, keys, witnesses, json }, ({ files, json, keys, witnesses }) =>
  Effect.gen(function* () {
    const checked = yield* Effect.forEach(files, (file) => check(file, keys, witnesses))
    const receipts = checked.flatMap(({ receipt }) => receipt ?? [])
    const missing = [
      ...gaps(receipts),
      ...contradictions(
        receipts,
        checked.flatMap(({ liability }) => liability ?? [])
      )
    ]
    yield* json
      ? printed({ receipts: checked.map(documentOf), gaps: missing })
      : Effect.forEach(
          [...checked.map(sentenceOf), ...missing],
          (line) => Console.log(CommandLine.printable(line, 1_000)),
          { discard: true }
        )
    const wrong = checked.filter(({ problem }) => problem !== undefined).length
    if (wrong > 0) return yield* refuse(`${wrong} of ${checked.length} files prove nothing`)
    if (missing.length > 0) return yield* refuse("receipts are missing or contradict each other")
  })
).pipe(
  Command.withDescription(
    "Check that receipts are in the log and balances in a day's total, signed by keys that you trust, and that the receipts' entry numbers have no gaps"
  )
)

export const subcommands = [verifyCommand] as const

export const command = Command.make("receipt").pipe(
  Command.withDescription("Verify receipts, the proofs that ledger entries are in the log of charges"),
  Command.withSubcommands(subcommands)
)
