/** The join of metered calls with a bill: the sums are exact for any two lists, and each planted difference has its cause. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { hour, parse, toDay } from "../../../src/kernel/Moment.ts"
import { join } from "../../../src/operations/reconciliation/Join.ts"
import type { Cause, Joined, Metered, MeteredCall } from "../../../src/operations/reconciliation/Reconciliation.ts"
import { nanoOf } from "../../../src/operations/reconciliation/Reconciliation.ts"
import type { BilledKind, BilledLine } from "../../../src/upstream/billing/Bill.ts"

const days = ["2026-03-01", "2026-03-02", "2026-03-03"] as const
const window = { first: days[0], last: days[2] }
const prices = { input: 150n, cached_input: 75n, cache_write: 190n, cache_write_1h: 300n, output: 600n } as const
type Kind = keyof typeof prices
const nano = 1_000_000_000n

const priced = (kind: Kind, quantity: number) => ({ quantity, atto: BigInt(quantity) * prices[kind] * nano })

const meteredAt = (
  at: number,
  tokens: { readonly [K in Kind]?: number },
  more: Partial<Metered> = {},
  model = "m"
): Metered => ({
  hour: at,
  model,
  kinds: Object.fromEntries(Object.entries(tokens).map(([kind, n]) => [kind, priced(kind as Kind, n)])),
  requests: 2,
  failed: 0,
  cut: 0,
  retries: 0,
  charged: 0n,
  ...more
})

/** The bill that a faithful vendor makes of these hours: one line per day, model and kind. */
const billOf = (metered: ReadonlyArray<Metered>, shift = 0, isCounting = true): ReadonlyArray<BilledLine> => {
  const lines = new Map<string, BilledLine>()
  for (const one of metered) {
    const day = toDay(one.hour - shift * hour)
    const counted = Object.entries(one.kinds)
    for (const [i, [kind, expected]] of counted.entries()) {
      const key = `${day} ${one.model} ${kind}`
      const before = lines.get(key)
      const requests = i === 0 && isCounting ? { requests: (before?.requests ?? 0) + one.requests } : {}
      lines.set(key, {
        day,
        model: one.model,
        kind: kind as BilledKind,
        quantity: (before?.quantity ?? 0) + expected.quantity,
        amount: (before?.amount ?? 0n) + nanoOf(expected.atto),
        resolution: 1n,
        ...(before?.requests !== undefined && { requests: before.requests }),
        ...requests
      })
    }
  }
  return [...lines.values()]
}

const steady = (more: Partial<Metered> = {}): ReadonlyArray<Metered> =>
  days.flatMap((day) =>
    [3, 12, 23].map((h) =>
      meteredAt(parse(day)! + h * hour, { input: 10_000 + h, cached_input: 4_000, output: 2_000 + 7 * h }, more)
    )
  )

const changed = (
  lines: ReadonlyArray<BilledLine>,
  kind: BilledKind,
  change: (line: BilledLine) => Partial<BilledLine>
): ReadonlyArray<BilledLine> =>
  lines.map((line) => (line.kind === kind && line.day === days[1] ? { ...line, ...change(line) } : line))

const sumOf = (amounts: ReadonlyArray<bigint>): bigint => amounts.reduce((sum, amount) => sum + amount, 0n)

const causesOf = ({ differences }: Joined): ReadonlyArray<Cause> =>
  [...new Set(differences.map(({ cause }) => cause))].toSorted()

const balances = ({ compared, differences }: Joined): void => {
  for (const { billed, day, expected, model } of compared) {
    const own = differences.filter((one) => one.day === day && one.model === model)
    expect(sumOf(own.map(({ amount }) => amount))).toBe(billed - expected)
  }
}

const anyTokens = fc.record(
  { input: fc.nat(5_000), cached_input: fc.nat(5_000), cache_write: fc.nat(99), output: fc.nat(5_000) },
  { requiredKeys: [] }
)
const anyMetered = fc.array(
  fc
    .record({
      at: fc.integer({ min: -24, max: 95 }),
      tokens: anyTokens,
      counts: fc.record({ requests: fc.nat(5), failed: fc.nat(2), cut: fc.nat(2), retries: fc.nat(2) }),
      model: fc.constantFrom("m", "n", "o")
    })
    .map(({ at, counts, model, tokens }) => meteredAt(parse(days[0])! + at * hour, tokens, counts, model)),
  { maxLength: 12 }
)
const anyBilled: fc.Arbitrary<ReadonlyArray<BilledLine>> = fc.array(
  fc.record({
    day: fc.constantFrom(...days),
    model: fc.constantFrom("m", "n-2026-03-01", "unknown"),
    kind: fc.constantFrom<BilledKind>("input", "cached_input", "output", "request", "other", "all"),
    quantity: fc.option(fc.nat(9_000)),
    amount: fc.option(fc.bigInt({ min: -1_000n, max: 10_000_000n })),
    resolution: fc.constantFrom(1n, 1_000n),
    requests: fc.option(fc.nat(9), { nil: undefined }),
    tier: fc.option(fc.constant("batch"), { nil: undefined })
  }),
  { maxLength: 12 }
)

describe("the join by day, model and kind", () => {
  it("adds up exactly for any metered hours and any bill", () => {
    fc.assert(
      fc.property(anyMetered, anyBilled, (metered, billed) => {
        const joined = join(metered, billed, window)
        balances(joined)
        expect(sumOf(joined.compared.map((one) => one.billed))).toBe(sumOf(billed.map(({ amount }) => amount ?? 0n)))
        const within = metered.filter((one) => toDay(one.hour) >= days[0] && toDay(one.hour) <= days[2])
        expect(joined.compared.reduce((sum, { requests }) => sum + requests, 0)).toBe(
          within.reduce((sum, { requests }) => sum + requests, 0)
        )
      }),
      { numRuns: 500 }
    )
  })

  it("finds nothing in the bill of a faithful vendor, but for its rounding", () => {
    fc.assert(
      fc.property(anyMetered, (metered) => {
        const within = metered.filter(
          (one) => toDay(one.hour) >= days[0] && toDay(one.hour) <= days[2] && one.requests > 0
        )
        expect(join(within, billOf(within), window).differences).toEqual([])
      })
    )
  })

  const bill = billOf(steady())
  const more = (kind: BilledKind, tokens: number) =>
    changed(bill, kind, ({ amount, quantity }) => ({
      quantity: quantity! + tokens,
      amount: amount! + BigInt(tokens) * prices[kind as Kind]
    }))
  const withRequests = (lines: ReadonlyArray<BilledLine>, requests: number) =>
    lines.map((line) =>
      line.requests === undefined || line.day !== days[1] ? line : { ...line, requests: line.requests + requests }
    )
  const other: BilledLine = { day: days[1], model: "x", kind: "input", quantity: 5, amount: 750n, resolution: 1n }
  const planted: ReadonlyArray<readonly [string, ReadonlyArray<Metered>, ReadonlyArray<BilledLine>, Cause]> = [
    ["an unknown model", steady(), [...bill, other], "coverage"],
    ["unknown requests of a known model", steady(), withRequests(more("input", 500), 3), "coverage"],
    ["failed calls", steady({ failed: 1 }), withRequests(more("input", 500), 2), "failed_here"],
    ["retried attempts", steady({ retries: 1 }), withRequests(more("input", 500), 2), "retry"],
    ["a missing day", steady(), bill.filter(({ day }) => day !== days[1]), "not_billed"],
    ["fewer requests", steady(), withRequests(more("input", -500), -1), "not_billed"],
    ["the rest of a cut stream", steady({ cut: 1 }), more("output", 300), "cut_stream"],
    ["more input tokens", steady(), more("input", 300), "quantity"],
    ["fewer output tokens", steady(), more("output", -300), "quantity"],
    [
      "a raised price",
      steady(),
      changed(bill, "output", ({ amount }) => ({ amount: (amount! * 102n) / 100n })),
      "price"
    ],
    ["a lowered price", steady(), changed(bill, "input", ({ amount }) => ({ amount: amount! / 2n })), "price"],
    [
      "a batch tier",
      steady(),
      changed(bill, "output", ({ amount }) => ({ amount: amount! / 2n, tier: "batch" })),
      "kind"
    ],
    [
      "whole cents",
      steady(),
      bill.map((line) => ({ ...line, amount: ((line.amount! + 5_000n) / 10_000n) * 10_000n, resolution: 10_000n })),
      "rounding"
    ],
    ["a tax", steady(), [...bill, { ...other, model: "tax", kind: "other", quantity: null }], "not_usage"],
    [
      "an amount without a count",
      steady(),
      bill.map((line) => ({ ...line, quantity: null, requests: undefined, amount: line.amount! + 5_000n })),
      "unexplained"
    ]
  ]

  it.each(planted)("names the cause of %s", (_, metered, billed, cause) => {
    const joined = join(metered, billed, window)
    balances(joined)
    expect(causesOf(joined)).toEqual([cause])
  })

  it("names the kind of tokens that were billed as another kind", () => {
    const moved = changed(more("input", 900), "cached_input", ({ amount, quantity }) => ({
      quantity: quantity! - 900,
      amount: amount! - 900n * prices.cached_input
    }))
    const joined = join(steady(), moved, window)
    balances(joined)
    expect(causesOf(joined)).toEqual(["kind"])
    expect(sumOf(joined.differences.map(({ amount }) => amount))).toBe(900n * 75n)
  })

  it.each([-8, -1, 5, 7])("names another time zone: a day that begins at %i:00", (shift) => {
    const around = Array.from({ length: 5 * 24 }, (_, i) =>
      meteredAt(parse(days[0])! + (i - 24) * hour, { input: 100 + i * i, output: 10 + i })
    )
    const billed = billOf(around, shift).filter(({ day }) => day >= days[0] && day <= days[2])
    const joined = join(around, billed, window)
    balances(joined)
    expect(causesOf(joined)).toEqual(["time_zone"])
    expect(joined.differences[0]!.note).toContain(`${shift < 0 ? shift + 24 : shift}:00 UTC`)
  })

  it.each([
    ["gpt-5-2026-02-11", "gpt-5"],
    ["openai/gpt-5", "gpt-5"],
    ["anthropic.claude-sonnet-5-20260101-v1:0", "anthropic.claude-sonnet-5"],
    ["claude-sonnet-5@20260101", "claude-sonnet-5"]
  ])("knows the model in the name %s", (name, model) => {
    const metered = steady().map((one) => ({ ...one, model }))
    const joined = join(metered, billOf(metered.map((one) => ({ ...one, model: name }))), window)
    expect([joined.differences, joined.compared[0]!.model]).toEqual([[], model])
  })

  it("keeps two known versions of a model apart", () => {
    const both = ["gpt-5-2026-02-11", "gpt-5-2026-01-01"].flatMap((model) => steady().map((one) => ({ ...one, model })))
    expect(join(both, billOf(both), window).differences).toEqual([])
  })
})

// ---- by call ------------------------------------------------------------------------------------------------------------

const callAt = (n: number, more: Partial<MeteredCall> = {}): MeteredCall => ({
  ...meteredAt(parse(days[1])! + n * hour, { input: 1_000, output: 200 }),
  requests: 1,
  usage_id: `use_${n}`,
  call: `gen-${n}`,
  retried: [],
  ...more
})

const listed = (
  call: string,
  tokens: { readonly [K in Kind]?: number } = { input: 1_000, output: 200 },
  amount?: bigint
): ReadonlyArray<BilledLine> => {
  const due = sumOf(Object.entries(tokens).map(([kind, n]) => BigInt(n) * prices[kind as Kind]))
  const shared = { day: days[1], model: "m", call, resolution: 1n }
  return [
    ...Object.entries(tokens).map(([kind, quantity]) => ({
      ...shared,
      kind: kind as BilledKind,
      quantity,
      amount: null
    })),
    { ...shared, kind: "all" as const, quantity: null, amount: amount ?? due }
  ]
}

describe("the join by call", () => {
  const calls = [1, 2, 3].map((n) => callAt(n))
  const faithful = calls.flatMap(({ call }) => listed(call!))

  it("finds nothing if each call is billed as metered", () => {
    const joined = join(calls, faithful, window, calls)
    expect(joined.differences).toEqual([])
    expect(joined.compared).toEqual([
      { day: days[1], model: "m", billed: 810_000n, expected: 810_000n, charged: 0n, requests: 3 }
    ])
  })

  const planted: ReadonlyArray<
    readonly [string, ReadonlyArray<MeteredCall>, ReadonlyArray<BilledLine>, Cause, string, bigint]
  > = [
    ["an unknown call", calls, [...faithful, ...listed("gen-9")], "coverage", "gen-9", 270_000n],
    ["a call without a bill", calls, faithful.filter(({ call }) => call !== "gen-2"), "not_billed", "gen-2", -270_000n],
    [
      "a failed call",
      [...calls, callAt(4, { kinds: {}, requests: 0, failed: 1 })],
      [...faithful, ...listed("gen-4")],
      "failed_here",
      "gen-4",
      270_000n
    ],
    [
      "a retried attempt",
      [...calls, callAt(4, { retried: ["gen-8"] })],
      [...faithful, ...listed("gen-4"), ...listed("gen-8")],
      "retry",
      "gen-8",
      270_000n
    ],
    [
      "the rest of a cut stream",
      [...calls, callAt(4, { cut: 1 })],
      [...faithful, ...listed("gen-4", { input: 1_000, output: 250 })],
      "cut_stream",
      "gen-4",
      30_000n
    ],
    [
      "more tokens",
      [...calls, callAt(4)],
      [...faithful, ...listed("gen-4", { input: 1_100, output: 200 })],
      "quantity",
      "gen-4",
      15_000n
    ],
    [
      "tokens of another kind",
      [...calls, callAt(4)],
      [...faithful, ...listed("gen-4", { input: 600, cached_input: 400, output: 200 })],
      "kind",
      "gen-4",
      -30_000n
    ],
    [
      "another price",
      [...calls, callAt(4)],
      [...faithful, ...listed("gen-4", undefined, 300_000n)],
      "price",
      "gen-4",
      30_000n
    ],
    [
      "a last digit",
      [...calls, callAt(4)],
      [...faithful, ...listed("gen-4", undefined, 270_001n)],
      "rounding",
      "gen-4",
      1n
    ]
  ]

  it.each(planted)("names the cause of %s, and the call", (_, own, billed, cause, call, amount) => {
    const joined = join(own, billed, window, own)
    balances(joined)
    expect(joined.differences.map((one) => [one.cause, one.call, one.amount])).toEqual([[cause, call, amount]])
  })

  it("adds up exactly for any calls and any bill", () => {
    const anyCalls = fc
      .uniqueArray(fc.nat(20), { maxLength: 8 })
      .chain((ids) =>
        fc.tuple(
          ...ids.map((n) =>
            fc
              .record({ tokens: anyTokens, cut: fc.nat(1), failed: fc.nat(1) })
              .map(({ cut, failed, tokens }) => callAt(n, { kinds: meteredAt(0, tokens).kinds, cut, failed }))
          )
        )
      )
    const anyListed = fc
      .uniqueArray(fc.nat(20), { minLength: 1, maxLength: 8 })
      .chain((ids) =>
        fc.tuple(
          ...ids.map((n) =>
            fc
              .record({ tokens: anyTokens, amount: fc.bigInt({ min: 0n, max: 9_000_000n }) })
              .map(({ amount, tokens }) => listed(`gen-${n}`, tokens, amount))
          )
        )
      )
    fc.assert(
      fc.property(anyCalls, anyListed, (own, billed) => {
        const joined = join(own, billed.flat(), window, own)
        balances(joined)
        expect(sumOf(joined.compared.map((one) => one.billed))).toBe(
          sumOf(billed.flat().map(({ amount }) => amount ?? 0n))
        )
      })
    )
  })
})
