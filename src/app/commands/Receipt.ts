/** `tollgate receipt verify`: checks receipts and proofs of liabilities in files, without a database or a network. */
import { Args, Command, Options } from "@effect/cli"
import { Console, Effect, Option } from "effect"
import { readFileSync } from "node:fs"
import { gunzipSync } from "node:zlib"
import { toIso } from "../../kernel/Moment.ts"
import { toDecimal } from "../../kernel/Money.ts"
import { otherBodies } from "../../money/receipts/BodyVerifier.ts"
import { gaps } from "../../money/receipts/GapVerifier.ts"
import { contradictions, readLiability, verifyLiability } from "../../money/receipts/LiabilityVerifier.ts"
import type { VerifiedLiability } from "../../money/receipts/LiabilityVerifier.ts"
import { read, ReceiptInvalid, verify } from "../../money/receipts/Verifier.ts"
import type { VerifiedReceipt } from "../../money/receipts/Verifier.ts"
import * as CommandLine from "./CommandLine.ts"
import { json, printed } from "./Options.ts"
import { refuse } from "./Report.ts"

const files = Args.text({ name: "file" }).pipe(
  Args.withDescription(
    "a receipt or a proof of liabilities, as returned by the service, plain or compressed with gzip"
  ),
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

const bodyFile = (name: "request" | "answer") =>
  Options.text(name).pipe(
    Options.withDescription(`a file with the body of the call's ${name}; compares its hash with the receipt`),
    Options.optional
  )

interface Checked {
  readonly file: string
  readonly receipt?: VerifiedReceipt
  readonly liability?: VerifiedLiability
  /** Why the file proves nothing. */
  readonly problem?: string
}

/** The maximum length of a file's text. A receipt takes a few kB. */
const textMax = 1024 * 1024

/** Reads a file, which may be compressed with gzip. */
const textOf = (file: string): string => {
  const bytes = readFileSync(file)
  const isCompressed = bytes[0] === 0x1f && bytes[1] === 0x8b
  return (isCompressed ? gunzipSync(bytes, { maxOutputLength: textMax }) : bytes).toString("utf8")
}

const verified = async (file: string, trusted: ReadonlyArray<string>, witnesses: number): Promise<Checked> => {
  const text = textOf(file)
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

interface BodyFiles {
  readonly request: Option.Option<string>
  readonly answer: Option.Option<string>
}

const bodyIn = (flag: string, file: Option.Option<string>) =>
  Effect.forEach(Option.toArray(file), (name) =>
    Effect.try({
      try: () => readFileSync(name),
      catch: (error) => refuse(`${flag} ${name}: the file could not be read (${String(error)})`)
    })
  ).pipe(Effect.map(([body]) => body))

/** Compares the bodies with the only receipt. Returns sentences about the result and about differences. */
const compared = Effect.fnUntraced(function* (checked: ReadonlyArray<Checked>, files: BodyFiles) {
  const bodies = {
    request: yield* bodyIn("--request", files.request),
    answer: yield* bodyIn("--answer", files.answer)
  }
  const names = (["request", "answer"] as const).filter((name) => bodies[name] !== undefined)
  if (names.length === 0) return { same: [], different: [] }
  const [one, ...others] = checked
  if (others.length > 0) return yield* refuse("--request and --answer are compared with one receipt: give one FILE")
  const { file, receipt } = one!
  if (receipt === undefined) return { same: [], different: [`${file}: there is no valid receipt to compare with`] }
  const different = yield* Effect.promise(() => otherBodies(receipt.entry, bodies))
  const same = different.length > 0 ? [] : [`${file}: the receipt is for this ${names.join(" and this ")}`]
  return { same, different: different.map((sentence) => `${file}: ${sentence}`) }
})

const options = { files, keys, witnesses, request: bodyFile("request"), answer: bodyFile("answer"), json }

const verifyCommand = Command.make("verify", options, ({ answer, files, json, keys, request, witnesses }) =>
  Effect.gen(function* () {
    const checked = yield* Effect.forEach(files, (file) => check(file, keys, witnesses))
    const { different, same } = yield* compared(checked, { request, answer })
    const receipts = checked.flatMap(({ receipt }) => receipt ?? [])
    const missing = [
      ...gaps(receipts),
      ...contradictions(
        receipts,
        checked.flatMap(({ liability }) => liability ?? [])
      )
    ]
    yield* json
      ? printed({ receipts: checked.map(documentOf), gaps: missing, different })
      : Effect.forEach(
          [...checked.map(sentenceOf), ...same, ...different, ...missing],
          (line) => Console.log(CommandLine.printable(line, 1_000)),
          { discard: true }
        )
    const wrong = checked.filter(({ problem }) => problem !== undefined).length
    if (wrong > 0) return yield* refuse(`${wrong} of ${checked.length} files prove nothing`)
    if (different.length > 0) return yield* refuse("the receipt does not prove these bodies")
    if (missing.length > 0) return yield* refuse("receipts are missing or contradict each other")
  })
).pipe(
  Command.withDescription(
    "Check that receipts are in the log and balances in a day's total, signed by keys that you trust, that the receipts' entry numbers have no gaps, and that a receipt is for a request and an answer"
  )
)

export const subcommands = [verifyCommand] as const

export const command = Command.make("receipt").pipe(
  Command.withDescription("Verify receipts, the proofs that ledger entries are in the log of charges"),
  Command.withSubcommands(subcommands)
)
