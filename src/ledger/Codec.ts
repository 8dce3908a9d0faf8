/**
 * Transactions and outcomes as text, to cross to the writer's thread and back. One string costs a fraction of a structured clone
 * of the same objects, and this is done twice for every call. What a call does is written by position; the rest is rare and
 * written as it is, with money as `{ nano: "…" }` and bytes as `{ bytes: "…" }`.
 *
 * Who pays and what is called are the same few objects again and again. Such a term crosses once, and by its number from then on.
 */
import type { CallFacts, Outcome, Posting, Result, Source, Transaction, UsageSource } from "./Transaction.ts"

type Coded = ReadonlyArray<unknown> | object

export type Answered = Outcome | { readonly _tag: "Broken"; readonly reason: string }

export interface Sender<A> {
  readonly encode: (items: ReadonlyArray<A>) => string
}

/** Reads what one sender wrote, in the order in which it did. */
export interface Receiver<A> {
  readonly decode: (text: string) => ReadonlyArray<A>
}

/** A message: the number of the first new term, the new terms, the items. */
type Message = readonly [first: number, terms: ReadonlyArray<object>, items: ReadonlyArray<Coded>]

/** How many terms are numbered before it begins anew. */
const termsMax = 4_096

const makeSender = <A>(code: (item: A, numberOf: (term: object) => number) => Coded): Sender<A> => {
  const numbers = new Map<object, number>()
  let terms: Array<object> = []
  const numberOf = (term: object): number => {
    let number = numbers.get(term)
    if (number === undefined) {
      number = numbers.size
      numbers.set(term, number)
      terms.push(term)
    }
    return number
  }
  return {
    encode: (items) => {
      if (numbers.size >= termsMax) numbers.clear()
      const first = numbers.size
      terms = []
      const coded = items.map((item) => code(item, numberOf))
      return JSON.stringify([first, terms, coded] satisfies Message)
    }
  }
}

const makeReceiver = <A>(read: (coded: Coded, terms: ReadonlyArray<object>) => A): Receiver<A> => {
  const terms: Array<object> = []
  return {
    decode: (text) => {
      const [first, fresh, items] = JSON.parse(text) as Message
      if (first > terms.length) throw new Error("a message went missing")
      terms.length = first
      for (const term of fresh) terms.push(term)
      return items.map((item) => read(item, terms))
    }
  }
}

export const transactionSender = (): Sender<Transaction> => makeSender(codeTransaction)
export const transactionReceiver = (): Receiver<Transaction> => makeReceiver(readTransaction)
export const outcomeSender = (): Sender<Answered> => makeSender(codeOutcome)
export const outcomeReceiver = (): Receiver<Answered> => makeReceiver(readOutcome)

const numberMax = BigInt(Number.MAX_SAFE_INTEGER)

/** Money as what `BigInt` reads again: mostly a number, which is made and read faster than text. */
const money = (amount: bigint): number | string =>
  amount <= numberMax && amount >= -numberMax ? Number(amount) : amount.toString()

const codeTransaction = (transaction: Transaction, numberOf: (term: object) => number): Coded => {
  const { postings, statements } = transaction
  const [posting] = postings
  if (postings.length !== 1 || statements.length !== 0 || posting === undefined) return spelled(transaction)
  switch (posting._tag) {
    case "Reserve":
      return [
        "R",
        posting.call,
        numberOf(posting.sources),
        money(posting.least),
        money(posting.most),
        posting.run,
        numberOf(posting.facts)
      ]
    case "Settle": {
      const { outcome } = posting
      return [
        "S",
        posting.call,
        money(outcome.cost),
        outcome.prompt_tokens,
        outcome.completion_tokens,
        outcome.units,
        outcome.provider ?? null,
        outcome.success,
        outcome.error_type,
        outcome.usage_source,
        outcome.latency_ms
      ]
    }
    default:
      return spelled(transaction)
  }
}

const readTransaction = (coded: Coded, terms: ReadonlyArray<object>): Transaction => {
  if (!Array.isArray(coded)) return read(coded) as Transaction
  const posting: Posting =
    coded[0] === "R"
      ? {
          _tag: "Reserve",
          call: coded[1],
          sources: terms[coded[2]] as ReadonlyArray<Source>,
          least: BigInt(coded[3]),
          most: BigInt(coded[4]),
          run: coded[5],
          facts: terms[coded[6]] as CallFacts
        }
      : {
          _tag: "Settle",
          call: coded[1],
          outcome: {
            cost: BigInt(coded[2]),
            prompt_tokens: coded[3],
            completion_tokens: coded[4],
            units: coded[5],
            provider: coded[6],
            success: coded[7],
            error_type: coded[8],
            usage_source: coded[9] as UsageSource,
            latency_ms: coded[10]
          }
        }
  return { postings: [posting], statements: [] }
}

const codeOutcome = (outcome: Answered, numberOf: (term: object) => number): Coded => {
  if (outcome._tag === "Committed" && outcome.results.length === 1) {
    const result = outcome.results[0]!
    if (result._tag === "Reserved") return ["R", numberOf(result.source), money(result.amount)]
    if (result._tag === "Settled") return ["S", result.usage_id, money(result.collected), money(result.balance)]
  }
  return spelled(outcome)
}

const readOutcome = (coded: Coded, terms: ReadonlyArray<object>): Answered => {
  if (!Array.isArray(coded)) return read(coded) as Answered
  const result: Result =
    coded[0] === "R"
      ? { _tag: "Reserved", source: terms[coded[1]] as Source, amount: BigInt(coded[2]) }
      : { _tag: "Settled", usage_id: coded[1], collected: BigInt(coded[2]), balance: BigInt(coded[3]) }
  return { _tag: "Committed", results: [result] }
}

/** The value with each bigint and each piece of bytes spelled out. */
const spelled = (value: unknown): object =>
  JSON.parse(
    // `this`, since a buffer has been made into something else by the time it is handed over.
    JSON.stringify(value, function (this: Record<string, unknown>, key, part) {
      const raw = this[key]
      if (raw instanceof Uint8Array) return { bytes: Buffer.from(raw).toString("base64") }
      return typeof part === "bigint" ? { nano: `${part}` } : part
    })
  ) as object

const read = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(read)
  const entries = Object.entries(value)
  if (entries.length === 1) {
    const [name, text] = entries[0]!
    if (name === "nano") return BigInt(text as string)
    if (name === "bytes") return Buffer.from(text as string, "base64")
  }
  return Object.fromEntries(entries.map(([key, part]) => [key, read(part)]))
}
