/**
 * The bill that the sandbox's model vendor records for its calls, independently of the service's records. A lever can add mistakes to it. `Billing`
 * serves the bill in the vendors' formats.
 */
import { hour, toDay } from "../kernel/Moment.ts"

/** A call that the vendor served, whether or not its response arrived. */
export interface Billed {
  readonly id: string
  readonly at: number
  readonly model: string
  readonly input: number
  readonly cached: number
  readonly output: number
}

export const mistakes = {
  unknown_model: "adds calls of a model that was never called",
  unknown_calls: "adds calls of a model that was called",
  unbilled_calls: "omits the first call",
  unbilled_model: "omits the model of the first call",
  more_input: "counts 100 more input tokens for each model",
  fewer_input: "counts 5 fewer input tokens for each model",
  more_output: "counts 100 more output tokens for each model",
  fewer_output: "counts 5 fewer output tokens for each model",
  input_price: "raises the price of input by a tenth",
  lower_input_price: "lowers the price of input by a tenth",
  output_price: "raises the price of output by a tenth",
  lower_output_price: "lowers the price of output by a tenth",
  doubled_price: "doubles every price",
  batch: "bills everything as a batch, at half the price",
  priority: "bills everything with priority, at twice the price",
  uncached: "counts some input tokens as cached",
  behind: "begins its days eight hours late",
  ahead: "begins its days two hours early",
  cents: "rounds each amount to a hundredth of a cent",
  tax: "adds a tax",
  credit: "deducts a credit"
} as const
export type Mistake = keyof typeof mistakes
export const mistakeNames = Object.keys(mistakes) as ReadonlyArray<Mistake>

/** The billed tokens and requests of a model on a day. */
export interface BillRow {
  readonly day: string
  readonly model: string
  input: number
  cached: number
  output: number
  requests: number
  tier: "batch" | "priority" | undefined
}

export interface Bills {
  readonly note: (call: Billed) => void
  /** Adds this mistake to the bill, or corrects the bill. */
  readonly setMistake: (mistake: Mistake | undefined) => void
  readonly mistake: () => Mistake | undefined
  /** Returns the rows by day and model, including the mistake. */
  readonly rows: () => ReadonlyArray<BillRow>
}

const callsMax = 100_000

const rowsOf = (calls: ReadonlyArray<Billed>, shift: number): ReadonlyArray<BillRow> => {
  const rows = new Map<string, BillRow>()
  for (const { at, cached, input, model, output } of calls) {
    const day = toDay(at - shift * hour)
    const key = `${day}\n${model}`
    let row = rows.get(key)
    if (row === undefined)
      rows.set(key, (row = { day, model, input: 0, cached: 0, output: 0, requests: 0, tier: undefined }))
    row.input += input
    row.cached += cached
    row.output += output
    row.requests += 1
  }
  return [...rows.values()]
}

const chosen = (calls: ReadonlyArray<Billed>, mistake: Mistake | undefined): ReadonlyArray<Billed> => {
  const one = calls[0]
  if (one === undefined) return calls
  const more = Array.from({ length: 3 }, (_, i) => ({ ...one, id: `unknown-${i}`, input: 400, output: 40 }))
  switch (mistake) {
    case "unknown_model":
      return [...calls, ...more.map((call) => ({ ...call, model: "vendor-secret" }))]
    case "unknown_calls":
      return [...calls, ...more]
    case "unbilled_calls":
      return calls.slice(1)
    case "unbilled_model":
      return calls.filter(({ model }) => model !== one.model)
    default:
      return calls
  }
}

const changed = (row: BillRow, mistake: Mistake | undefined): BillRow => {
  switch (mistake) {
    case "more_input":
      return { ...row, input: row.input + 100 }
    case "fewer_input":
      return { ...row, input: row.input - 5 }
    case "more_output":
      return { ...row, output: row.output + 100 }
    case "fewer_output":
      return { ...row, output: row.output - 5 }
    case "uncached":
      return { ...row, input: row.input - 5, cached: row.cached + 5 }
    case "batch":
    case "priority":
      return { ...row, tier: mistake }
    default:
      return row
  }
}

const shiftOf = (mistake: Mistake | undefined): number => (mistake === "behind" ? 8 : mistake === "ahead" ? -2 : 0)

export const make = (): Bills => {
  const calls: Array<Billed> = []
  let mistake: Mistake | undefined
  return {
    note: (call) => {
      // Drop a tenth at a time, because each drop moves the entire array.
      if (calls.length === callsMax) calls.splice(0, callsMax / 10)
      calls.push(call)
    },
    setMistake: (next) => {
      mistake = next
    },
    mistake: () => mistake,
    rows: () => rowsOf(chosen(calls, mistake), shiftOf(mistake)).map((row) => changed(row, mistake))
  }
}

/** Returns a price per token in 10^-18 USD, including the mistake. */
export const priceWith = (mistake: Mistake | undefined, kind: "input" | "cached" | "output", price: bigint): bigint => {
  switch (mistake) {
    case "input_price":
      return kind === "output" ? price : (price * 11n) / 10n
    case "lower_input_price":
      return kind === "output" ? price : (price * 9n) / 10n
    case "output_price":
      return kind === "output" ? (price * 11n) / 10n : price
    case "lower_output_price":
      return kind === "output" ? (price * 9n) / 10n : price
    case "doubled_price":
    case "priority":
      return price * 2n
    case "batch":
      return price / 2n
    default:
      return price
  }
}
