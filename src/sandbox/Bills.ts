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

type Tier = "batch" | "priority" | undefined

/** A call with its day on the bill. */
export interface BilledCall extends Billed {
  readonly day: string
  readonly tier: Tier
}

/** The billed tokens and requests of a model on a day. */
export interface BillRow {
  readonly day: string
  readonly model: string
  input: number
  cached: number
  output: number
  requests: number
  readonly tier: Tier
}

export interface Bills {
  readonly note: (call: Billed) => void
  /** Adds this mistake to the bill, or corrects the bill. */
  readonly setMistake: (mistake: Mistake | undefined) => void
  readonly mistake: () => Mistake | undefined
  /** Returns the rows by day and model, including the mistake. */
  readonly rows: () => ReadonlyArray<BillRow>
  /** Returns one call as billed, including the mistake. */
  readonly call: (id: string) => BilledCall | undefined
}

const callsMax = 100_000

const rowsOf = (calls: ReadonlyArray<BilledCall>): ReadonlyArray<BillRow> => {
  const rows = new Map<string, BillRow>()
  for (const { cached, day, input, model, output, tier } of calls) {
    const key = `${day}\n${model}`
    let row = rows.get(key)
    if (row === undefined) rows.set(key, (row = { day, model, input: 0, cached: 0, output: 0, requests: 0, tier }))
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

/** Changes the tokens of the first call of a day and model. */
const changed = (call: BilledCall, mistake: Mistake | undefined): BilledCall => {
  switch (mistake) {
    case "more_input":
      return { ...call, input: call.input + 100 }
    case "fewer_input":
      return { ...call, input: call.input - 5 }
    case "more_output":
      return { ...call, output: call.output + 100 }
    case "fewer_output":
      return { ...call, output: call.output - 5 }
    case "uncached":
      return { ...call, input: call.input - 5, cached: call.cached + 5 }
    default:
      return call
  }
}

const shiftOf = (mistake: Mistake | undefined): number => (mistake === "behind" ? 8 : mistake === "ahead" ? -2 : 0)

/** Returns the calls as billed. */
const billedCalls = (calls: ReadonlyArray<Billed>, mistake: Mistake | undefined): ReadonlyArray<BilledCall> => {
  const tier = mistake === "batch" || mistake === "priority" ? mistake : undefined
  const begun = new Set<string>()
  return chosen(calls, mistake).map((call) => {
    const day = toDay(call.at - shiftOf(mistake) * hour)
    const key = `${day}\n${call.model}`
    const isFirst = !begun.has(key)
    begun.add(key)
    return isFirst ? changed({ ...call, day, tier }, mistake) : { ...call, day, tier }
  })
}

export const make = (): Bills => {
  const calls: Array<Billed> = []
  let mistake: Mistake | undefined
  /** The calls as billed, by id, since the last change. */
  let billed: ReadonlyMap<string, BilledCall> | undefined
  return {
    note: (call) => {
      // Drop a tenth at a time, because each drop moves the entire array.
      if (calls.length === callsMax) calls.splice(0, callsMax / 10)
      calls.push(call)
      billed = undefined
    },
    setMistake: (next) => {
      mistake = next
      billed = undefined
    },
    mistake: () => mistake,
    rows: () => rowsOf(billedCalls(calls, mistake)),
    call: (id) => {
      billed ??= new Map(billedCalls(calls, mistake).map((call) => [call.id, call]))
      return billed.get(id)
    }
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
