/**
 * Reads a vendor's invoice in CSV (RFC 4180). The column names identify the columns for the day, model and amount. The reader sums lines by day and
 * model, adds amounts with all their digits and rounds each sum once. It reports and skips a line with unreadable fields. An unclosed quote makes
 * everything after it unreadable, so the reader rejects the entire invoice.
 */
import { Readable } from "node:stream"
import { setImmediate as immediate } from "node:timers/promises"
import { parse as instantOf, toDay } from "../../kernel/Moment.ts"
import { divideHalfUp, fromDecimal } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"

export interface Columns {
  readonly day: string
  readonly model: string
  readonly amount: string
  readonly quantity: string | null
}

export interface InvoiceLine {
  readonly day: string
  readonly model: string
  readonly amount: Nano
  /** A decimal number; null if the invoice contains no quantities. */
  readonly quantity: string | null
}

export interface BadLine {
  readonly line: number
  readonly why: string
}

export interface Invoice {
  readonly columns: Columns
  /** The sums, one per day and model. */
  readonly lines: ReadonlyArray<InvoiceLine>
  readonly bad_lines: ReadonlyArray<BadLine>
  readonly bad_lines_total: number
}

/** Thrown for text that is not a readable invoice. */
export class NoInvoice extends Error {}

export const linesMax = 50_000
const badLinesMax = 100
/** Limits on the characters in a record, the columns, the pairs of day and model, and the characters in a model's name. */
const recordMax = 20_000
const columnsMax = 200
const groupsMax = 20_000
const modelMax = 200
/** Decimal places in sums. */
const places = 24
const pieceSize = 64 * 1024

/** The column names that vendors use, most likely first. Case and separators do not matter. */
const names = {
  day: ["date", "day", "usagedate", "usageday", "billingdate", "startdate", "starttime", "starttimeiso", "timestamp"],
  model: ["model", "modelname", "modelid", "modelslug", "modelpermaslug", "lineitem", "sku", "product"],
  amount: [
    "costusd",
    "amountusd",
    "usd",
    "cost",
    "totalcost",
    "totalcostusd",
    "amount",
    "amountvalue",
    "spend",
    "charge",
    "total"
  ],
  quantity: ["quantity", "totaltokens", "tokens", "usage", "usagequantity", "units", "requests"],
  currency: ["currency", "amountcurrency", "costcurrency"]
} as const

const bare = (name: string): string => name.toLowerCase().replace(/[^a-z]/g, "")

const placeOf = (header: ReadonlyArray<string>, kind: keyof typeof names): number => {
  const bares = header.map(bare)
  for (const name of names[kind]) {
    const place = bares.indexOf(name)
    if (place !== -1) return place
  }
  return -1
}

const required = (header: ReadonlyArray<string>, kind: "day" | "model" | "amount"): number => {
  const place = placeOf(header, kind)
  if (place !== -1) return place
  throw new NoInvoice(`there is no column for the ${kind}; the column's name must be one of ${names[kind].join(", ")}`)
}

interface Places {
  readonly day: number
  readonly model: number
  readonly amount: number
  readonly quantity: number
  readonly currency: number
}

interface Sum {
  readonly day: string
  readonly model: string
  amount: bigint
  quantity: bigint | undefined
}

/** Picks the candidate that occurs most often in the header. */
const delimiterOf = (text: string): string => {
  const [header = ""] = text.slice(0, recordMax).split(/\r?\n/, 1)
  const count = (mark: string): number => header.split(mark).length
  return [",", ";", "\t"].toSorted((a, b) => count(b) - count(a))[0]!
}

async function* pieces(text: string): AsyncGenerator<string> {
  for (let from = 0; from < text.length; from += pieceSize) {
    yield text.slice(from, from + pieceSize)
    // Let other work on the event loop run.
    await immediate()
  }
}

interface Parsed {
  readonly info: { readonly lines: number }
  readonly record: ReadonlyArray<string>
}

/** Reads an invoice. Rejects with `NoInvoice`. */
export const read = async (text: string): Promise<Invoice> => {
  const bad: Array<BadLine> = []
  let badTotal = 0
  const refuse = (line: number, why: string): void => {
    badTotal += 1
    if (bad.length < badLinesMax) bad.push({ line, why })
  }
  // Loaded on demand, because most services never read an invoice.
  const { parse } = await import("csv-parse")
  const parser = parse({
    bom: true,
    delimiter: delimiterOf(text),
    info: true,
    max_record_size: recordMax,
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    trim: true
  })
  const sums = new Map<string, Sum>()
  let header: ReadonlyArray<string> | undefined
  let at: Places | undefined
  let count = 0
  try {
    for await (const { info, record } of Readable.from(pieces(text)).pipe(parser) as AsyncIterable<Parsed>) {
      if (record.length > columnsMax) throw new NoInvoice(`must contain at most ${columnsMax} columns`)
      if (at === undefined) {
        header = record
        at = {
          day: required(record, "day"),
          model: required(record, "model"),
          amount: required(record, "amount"),
          quantity: placeOf(record, "quantity"),
          currency: placeOf(record, "currency")
        }
        continue
      }
      count += 1
      if (count > linesMax) throw new NoInvoice(`must contain at most ${linesMax} lines`)
      const why = take(sums, record, at)
      if (why !== undefined) refuse(info.lines, why)
      if (sums.size > groupsMax) throw new NoInvoice(`must contain at most ${groupsMax} pairs of day and model`)
    }
  } catch (error) {
    if (error instanceof NoInvoice) throw error
    const { lines } = error as { readonly lines?: number }
    throw new NoInvoice(
      `line ${lines ?? count + 1} cannot be read as CSV: a quote is not closed, or a line is too long`
    )
  }
  if (header === undefined || at === undefined)
    throw new NoInvoice("must contain a header line with column names, followed by at least one line")
  return {
    columns: {
      day: header[at.day]!,
      model: header[at.model]!,
      amount: header[at.amount]!,
      quantity: at.quantity === -1 ? null : header[at.quantity]!
    },
    lines: [...sums.values()].map(({ amount, day, model, quantity }) => ({
      day,
      model,
      amount: rounded(amount),
      quantity: quantity === undefined ? null : decimalOf(quantity)
    })),
    bad_lines: bad,
    bad_lines_total: badTotal
  }
}

/** Adds a line to its sum. If the line cannot be read, returns the reason. */
const take = (sums: Map<string, Sum>, record: ReadonlyArray<string>, at: Places): string | undefined => {
  const day = dayOf(record[at.day] ?? "")
  if (day === undefined) return `${shown(record[at.day])} is not a date such as 2026-03-01`
  const model = record[at.model] ?? ""
  if (model === "" || model.length > modelMax) return "the model is missing"
  const currency = at.currency === -1 ? "" : (record[at.currency] ?? "")
  if (!/^(?:|usd|\$)$/i.test(currency)) return `${shown(currency)} is not USD`
  const amount = numberOf(record[at.amount] ?? "")
  if (amount === undefined) return `${shown(record[at.amount])} is not an amount`
  const quantity = at.quantity === -1 ? undefined : numberOf(record[at.quantity] ?? "")
  const key = `${day} ${model}`
  const sum = sums.get(key)
  if (sum === undefined) {
    sums.set(key, { day, model, amount, quantity })
    return undefined
  }
  sum.amount += amount
  if (quantity !== undefined) sum.quantity = (sum.quantity ?? 0n) + quantity
  return undefined
}

const shown = (text: string | undefined): string => JSON.stringify((text ?? "").slice(0, 40))

/** Returns the UTC day of a date, a timestamp, or Unix time in seconds. */
const dayOf = (text: string): string | undefined => {
  if (/^\d{10}$/.test(text)) return toDay(Number(text) * 1_000)
  const compact = /^(\d{4})(\d{2})(\d{2})$/.exec(text)
  const plain = compact === null ? text : `${compact[1]}-${compact[2]}-${compact[3]}`
  // A time without a zone counts as UTC.
  const zoned = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:\.\d+)?$/.test(plain) ? `${plain}Z` : plain
  const instant = instantOf(zoned)
  return instant === undefined ? undefined : toDay(instant)
}

/** Parses a decimal into units of 10^-`places`. Accepts a dollar sign and thousands separators. */
const numberOf = (text: string): bigint | undefined => {
  if (text.length > 60) return undefined
  const plain = text.replace(/^(-?)\$ ?/, "$1")
  const grouped = /^-?\d{1,3}(?:,\d{3})+(?:\.\d+)?$/.test(plain) ? plain.replaceAll(",", "") : plain
  const number = fromDecimal(grouped, places)
  return number === undefined || magnitudeOf(number) > numberMax ? undefined : number
}

const magnitudeOf = (number: bigint): bigint => (number < 0n ? -number : number)

/** An upper bound for amounts: 10^15, more than any invoice. */
const numberMax = 10n ** BigInt(places + 15)

const rounded = (amount: bigint): Nano => {
  const nano = divideHalfUp(magnitudeOf(amount), 10n ** BigInt(places - 9))
  return amount < 0n ? -nano : nano
}

const decimalOf = (number: bigint): string => {
  const unit = 10n ** BigInt(places)
  const magnitude = magnitudeOf(number)
  const fraction = (magnitude % unit).toString().padStart(places, "0").replace(/0+$/, "")
  return `${number < 0n ? "-" : ""}${magnitude / unit}${fraction === "" ? "" : `.${fraction}`}`
}
