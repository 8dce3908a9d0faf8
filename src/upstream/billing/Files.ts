/**
 * Reads vendors' bills from CSV files: AWS's Cost and Usage Report 2.0, FOCUS, and Google's billing export. The header determines the format. Lines
 * are summed by UTC day, model, kind and tier.
 *
 * Where the specification is silent:
 * - A line belongs to the UTC day on which its period starts. A time without a zone is in UTC.
 * - Discounts, credits, taxes, fees and refunds are separate lines that belong to no model. In Google's export, credits are in a separate column.
 * - A quantity in thousands or millions of tokens is converted to tokens by its unit.
 */
import type { Readable } from "node:stream"
import { parse as instantOf, toDay } from "../../kernel/Moment.ts"
import { fromDecimal } from "../../kernel/Money.ts"
import { amountIn, inUsd, NoBill } from "./Bill.ts"
import type { Amount, BilledKind, BilledLine } from "./Bill.ts"

export const billFormats = ["cur", "focus", "google"] as const
export type BillFormat = (typeof billFormats)[number]

/** Reads a field of a record by its column name. */
type Fields = (name: string) => string

interface Reader {
  /** The columns that identify the format. */
  readonly columns: ReadonlyArray<string>
  /** Returns the lines of a record; none if the record is not about a vendor of models. */
  readonly lines: (field: Fields) => ReadonlyArray<BilledLine>
}

const recordMax = 200_000
/** A group is a combination of day, model, kind and tier. */
const groupsMax = 200_000

const dayOf = (text: string): string => {
  const plain = text.trim().replace(/ UTC$/, "").replace(" ", "T")
  const zoned = /T\d{2}:\d{2}(:\d{2}(\.\d+)?)?$/.test(plain) ? `${plain}Z` : plain
  const instant = instantOf(zoned)
  if (instant === undefined) throw new NoBill(`${JSON.stringify(text.slice(0, 40))} is not a time`)
  return toDay(instant)
}

/** Finds the kind of token in a usage type or SKU. Specific words are tested before general ones. */
const kindIn = (text: string): BilledKind | undefined => {
  const words = text.toLowerCase().replaceAll(/[^a-z0-9]+/g, " ")
  if (/cache ?write|cache creation/.test(words)) return /1 ?h(our)?\b/.test(words) ? "cache_write_1h" : "cache_write"
  if (/cache ?read|cached|caching/.test(words)) return "cached_input"
  if (/\b(output|response|completion|generated)\b/.test(words)) return "output"
  if (/\b(input|prompt)\b/.test(words)) return "input"
  return undefined
}

const tierIn = (text: string): { readonly tier?: string } => {
  const found = /\b(batch|priority|flex|provisioned)\b/i.exec(text.replaceAll(/[^a-z]+/gi, " "))
  return found === null ? {} : { tier: found[1]!.toLowerCase() }
}

/** Returns the number of tokens in a unit, such as `1K tokens` or `1M tokens`; 1 for any other unit. */
const factorOf = (unit: string): number => {
  const plain = unit.toLowerCase()
  if (/\b1?k\b|thousand|1000\b/.test(plain)) return 1_000
  return /\b1?m\b|million|1000000\b/.test(plain) ? 1_000_000 : 1
}

const quantityIn = (text: string, unit: string): number | null => {
  const nano = text.length > 64 ? undefined : fromDecimal(text.trim(), 9)
  if (nano === undefined) return null
  const quantity = Math.round((Number(nano) * factorOf(unit)) / 1e9)
  if (!Number.isSafeInteger(quantity)) throw new NoBill(`${JSON.stringify(text)} is not a quantity`)
  return quantity
}

/** Removes a leading region and everything from the first word for a kind or tier, as in AWS's `USE1-Claude-input-tokens`. */
const modelIn = (usage: string): string =>
  usage
    .replace(/^[A-Z]{2,4}\d-/, "")
    .replace(/[-_ :](cache|cached|input|output|mantle|response|batch|priority|flex).*$/i, "")

const usageLine = (day: string, model: string, name: string, quantity: number | null, amount: Amount): BilledLine => ({
  day,
  model,
  kind: kindIn(name) ?? "other",
  quantity,
  ...tierIn(name),
  ...amount
})

const otherLine = (day: string, name: string, amount: Amount): BilledLine => ({
  day,
  model: name,
  kind: "other",
  quantity: null,
  ...amount
})

const cur: Reader = {
  columns: [
    "line_item_usage_start_date",
    "line_item_usage_type",
    "line_item_unblended_cost",
    "line_item_line_item_type"
  ],
  lines: (field) => {
    const product = `${field("line_item_product_code")} ${field("product_servicecode")} ${field("product_product_family")}`
    if (!/bedrock/i.test(product)) return []
    inUsd(field("line_item_currency_code") || "USD")
    const day = dayOf(field("line_item_usage_start_date"))
    const amount = amountIn(field("line_item_unblended_cost"))
    const type = field("line_item_line_item_type")
    if (!/^(Usage|DiscountedUsage|SavingsPlanCoveredUsage)$/.test(type)) return [otherLine(day, type, amount)]
    const usage = field("line_item_usage_type")
    const quantity = quantityIn(field("line_item_usage_amount"), field("pricing_unit"))
    const model = /model=([^,;}\s"]+)/.exec(field("product"))?.[1] ?? modelIn(usage)
    return [usageLine(day, model, usage, quantity, amount)]
  }
}

const focus: Reader = {
  columns: ["BilledCost", "BillingCurrency", "ChargePeriodStart", "ChargeCategory"],
  lines: (field) => {
    inUsd(field("BillingCurrency"))
    const day = dayOf(field("ChargePeriodStart"))
    const amount = amountIn(field("BilledCost"))
    const category = field("ChargeCategory")
    const name = field("ChargeDescription") || field("SkuId") || field("ServiceName")
    if (category !== "Usage") return [otherLine(day, `${category}: ${name}`, amount)]
    const quantity = quantityIn(field("ConsumedQuantity"), field("ConsumedUnit"))
    const sku = `${name} ${field("SkuMeter")} ${field("x_TokenType")}`
    const model = field("ResourceName") || field("ResourceId") || modelIn(name)
    return [usageLine(day, model, sku, quantity, amount)]
  }
}

const google: Reader = {
  columns: ["usage_start_time", "cost", "currency", "sku.description"],
  lines: (field) => {
    const service = field("service.description")
    if (!/vertex|gemini|generative/i.test(service)) return []
    inUsd(field("currency"))
    const day = dayOf(field("usage_start_time"))
    const amount = amountIn(field("cost"))
    const name = field("sku.description")
    const type = field("cost_type") || "regular"
    const credits = field("credits.amount")
    const credit = credits === "" ? [] : [otherLine(day, `credit: ${name}`, amountIn(credits))]
    if (type !== "regular") return [otherLine(day, `${type}: ${name}`, amount), ...credit]
    const quantity = quantityIn(field("usage.amount"), field("usage.unit"))
    return [usageLine(day, modelIn(name), name, quantity, amount), ...credit]
  }
}

const readers: { readonly [Format in BillFormat]: Reader } = { cur, focus, google }

const formatOf = (header: ReadonlyArray<string>): BillFormat => {
  const found = billFormats.find((format) => readers[format].columns.every((column) => header.includes(column)))
  if (found === undefined)
    throw new NoBill("the header must be that of a Cost and Usage Report 2.0, FOCUS or Google's billing export")
  return found
}

const sum = (one: BilledLine, other: BilledLine): BilledLine => ({
  ...one,
  quantity: one.quantity === null || other.quantity === null ? null : one.quantity + other.quantity,
  amount: one.amount === null || other.amount === null ? null : one.amount + other.amount,
  // Each line is rounded once, so the error of a sum is the sum of its lines' errors.
  resolution: one.resolution + other.resolution
})

/** Reads a bill. Rejects with `NoBill`, usually with the number of the invalid line. Memory use grows only with the number of groups. */
export const readBill = async (
  input: Readable
): Promise<{ readonly format: BillFormat; readonly lines: ReadonlyArray<BilledLine> }> => {
  // Loaded on demand, because most services never read a bill.
  const { parse } = await import("csv-parse")
  const parser = parse({
    bom: true,
    info: true,
    max_record_size: recordMax,
    relax_column_count: true,
    skip_empty_lines: true
  })
  const groups = new Map<string, BilledLine>()
  let header: ReadonlyArray<string> | undefined
  let format: BillFormat | undefined
  let at = 1
  try {
    for await (const { info, record } of input.pipe(parser) as AsyncIterable<{
      readonly info: { readonly lines: number }
      readonly record: ReadonlyArray<string>
    }>) {
      at = info.lines
      if (header === undefined || format === undefined) {
        header = record.map((name) => name.trim())
        format = formatOf(header)
        continue
      }
      const names = header
      for (const line of readers[format].lines((name) => record[names.indexOf(name)] ?? "")) {
        const key = JSON.stringify([line.day, line.model, line.kind, line.tier])
        const before = groups.get(key)
        groups.set(key, before === undefined ? line : sum(before, line))
        if (groups.size > groupsMax) throw new NoBill(`at most ${groupsMax} combinations of day, model and kind`)
      }
    }
  } catch (error) {
    if (error instanceof NoBill) throw new NoBill(`line ${at}: ${error.message}`)
    throw new NoBill(`line ${at} cannot be read as CSV`)
  }
  if (format === undefined) throw new NoBill("must contain a header line with column names, and lines below it")
  return { format, lines: [...groups.values()] }
}
