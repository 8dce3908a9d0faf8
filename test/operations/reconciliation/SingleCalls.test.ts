/** Single calls of a vendor whose bill lists none: which are requested, and what they explain. */
import { Either } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { parse } from "../../../src/kernel/Moment.ts"
import { coverageOf, nanoOf } from "../../../src/operations/reconciliation/Reconciliation.ts"
import type { Compared, Difference, MeteredCall } from "../../../src/operations/reconciliation/Reconciliation.ts"
import { chosenCalls, explainedByCalls, keyOf, withReason } from "../../../src/operations/reconciliation/SingleCalls.ts"
import type { BilledLine } from "../../../src/upstream/billing/Bill.ts"

const day = "2026-03-02"
const model = "m"
const nano = 1_000_000_000n
/** The prices in nano-USD per token. */
const prices = { input: 150n, output: 600n }

interface Tokens {
  readonly input: number
  readonly output: number
}
const usual: Tokens = { input: 1_000, output: 200 }
const costOf = ({ input, output }: Tokens): bigint => BigInt(input) * prices.input + BigInt(output) * prices.output
const usualCost = costOf(usual)

const callOf = (n: number, more: Partial<MeteredCall> = {}, { input, output }: Tokens = usual): MeteredCall => ({
  hour: parse(day)!,
  model,
  kinds: {
    input: { quantity: input, atto: BigInt(input) * prices.input * nano },
    output: { quantity: output, atto: BigInt(output) * prices.output * nano }
  },
  requests: 1,
  failed: 0,
  cut: 0,
  retries: 0,
  charged: 0n,
  usage_id: `use_${n}`,
  call: `gen-${n}`,
  retried: [],
  ...more
})

const failed: Partial<MeteredCall> = { kinds: {}, requests: 0, failed: 1 }

/** What the vendor says about a call, with its own name of the model and on its own day. */
const described = (id: string, tokens: Tokens = usual, amount = costOf(tokens)): ReadonlyArray<BilledLine> => {
  const shared = { day: "2026-03-03", model: "vendor/m", call: id, amount: null, resolution: 1n }
  return [
    { ...shared, kind: "input", quantity: tokens.input, requests: 1 },
    { ...shared, kind: "output", quantity: tokens.output },
    { ...shared, kind: "all", quantity: null, amount }
  ]
}

/** The vendor's sums of a day and model, made of its calls. */
const billOf = (calls: ReadonlyArray<BilledLine>, more = 0n): ReadonlyArray<BilledLine> => {
  const shared = { day, model: "vendor/m", amount: null, resolution: 1n }
  const tokens = (kind: string) => calls.reduce((sum, line) => sum + (line.kind === kind ? (line.quantity ?? 0) : 0), 0)
  return [
    { ...shared, kind: "input", quantity: tokens("input"), requests: new Set(calls.map(({ call }) => call)).size },
    { ...shared, kind: "output", quantity: tokens("output") },
    { ...shared, kind: "all", quantity: null, amount: sumOf(calls.map(({ amount }) => amount ?? 0n)) + more }
  ]
}

const sumOf = (amounts: ReadonlyArray<bigint>): bigint => amounts.reduce((sum, amount) => sum + amount, 0n)

const comparedOf = (calls: ReadonlyArray<MeteredCall>, bill: ReadonlyArray<BilledLine>): Compared => ({
  day,
  model,
  billed: sumOf(bill.map(({ amount }) => amount ?? 0n)),
  expected: nanoOf(sumOf(calls.flatMap(({ kinds }) => Object.values(kinds).map(({ atto }) => atto)))),
  charged: 0n,
  requests: calls.length
})

const explain = (
  calls: ReadonlyArray<MeteredCall>,
  bill: ReadonlyArray<BilledLine>,
  lines: ReadonlyArray<BilledLine>
) => explainedByCalls(comparedOf(calls, bill), bill, calls, lines)

const coverageIn = (billed: bigint, differences: ReadonlyArray<Difference>): number =>
  coverageOf(
    billed,
    [...new Set(differences.map(({ cause }) => cause))].map((cause) => ({
      cause,
      amount: sumOf(differences.filter((one) => one.cause === cause).map(({ amount }) => amount)),
      lines: 1
    }))
  )

describe("a day and model explained by its calls", () => {
  const anyTokens = fc.record({ input: fc.integer({ min: 1, max: 9_000 }), output: fc.nat(900) })
  const anyCall = fc.record({
    own: anyTokens,
    theirs: fc.option(anyTokens),
    outcome: fc.constantFrom({}, {}, { cut: 1 }, failed),
    isNamed: fc.boolean(),
    retry: fc.option(anyTokens)
  })
  type Any = typeof anyCall extends fc.Arbitrary<infer A> ? A : never

  const sidesOf = (any: ReadonlyArray<Any>) => ({
    calls: any.map(({ isNamed, outcome, own, retry }, n) => {
      const call = isNamed || !("failed" in outcome) ? `gen-${n}` : undefined
      const kinds = "failed" in outcome ? {} : callOf(n, {}, own).kinds
      return callOf(n, { ...outcome, kinds, call, retried: retry === null ? [] : [`gen-${n}-first`] }, own)
    }),
    lines: any.flatMap(({ isNamed, outcome, retry, theirs }, n) => [
      ...(theirs === null || (!isNamed && "failed" in outcome) ? [] : described(`gen-${n}`, theirs)),
      ...(retry === null ? [] : described(`gen-${n}-first`, retry))
    ])
  })

  it("adds up exactly for any calls and any bill", () => {
    fc.assert(
      fc.property(
        fc.array(anyCall, { maxLength: 8 }),
        fc.array(anyTokens),
        fc.bigInt(-5_000n, 5_000n),
        (any, others, fee) => {
          const { calls, lines } = sidesOf(any)
          const bill = billOf([...lines, ...others.flatMap((tokens, n) => described(`other-${n}`, tokens))], fee)
          const compared = comparedOf(calls, bill)
          const found = explain(calls, bill, lines)
          if (Either.isLeft(found)) return
          expect(sumOf(found.right.map(({ amount }) => amount))).toBe(compared.billed - compared.expected)
          expect(found.right.every((one) => one.day === day && one.model === model)).toBe(true)
        }
      ),
      { numRuns: 500 }
    )
  })

  it("covers exactly the described calls of a bill, if the vendor knows each of them", () => {
    fc.assert(
      fc.property(fc.array(anyCall, { minLength: 1, maxLength: 8 }), fc.array(anyTokens), (any, others) => {
        const { calls, lines } = sidesOf(
          any.map((one) => ({ ...one, isNamed: true, theirs: one.theirs ?? { input: 7, output: 7 } }))
        )
        const unknown = others.flatMap((tokens, n) => described(`other-${n}`, tokens))
        const bill = billOf([...lines, ...unknown])
        const { billed } = comparedOf(calls, bill)
        const found = Either.getOrThrow(explain(calls, bill, lines))
        const known = sumOf(lines.map(({ amount }) => amount ?? 0n))
        expect(coverageIn(billed, found)).toBeCloseTo(Number(known) / Number(billed), 9)
      }),
      { numRuns: 300 }
    )
  })

  const known = [1, 2, 3].map((n) => callOf(n))
  const knownLines = known.flatMap(({ call }) => described(call!))
  const rest = (calls: ReadonlyArray<MeteredCall>, bill: ReadonlyArray<BilledLine>, lines = knownLines) =>
    Either.getOrThrow(explain(calls, bill, lines)).map(({ amount, call, cause, note, quantity }) => ({
      amount,
      call,
      cause,
      note,
      quantity
    }))

  it("has the tokens and requests that the service does not know", () => {
    const bill = billOf([...knownLines, ...described("other-1"), ...described("other-2")])
    expect(rest(known, bill)).toEqual([
      {
        amount: 2n * usualCost,
        call: null,
        cause: "coverage",
        note: "5 billed requests, 3 described calls",
        quantity: 2_400
      }
    ])
  })

  it.each([
    ["failed here without an id", [callOf(4, { ...failed, call: undefined })], "failed_here"],
    ["failed here with an id that the vendor does not know", [callOf(4, failed)], "failed_here"],
    ["were retried under an id that the vendor does not know", [callOf(3, { retried: ["edge"] })], "retry"]
  ] as const)("knows the calls that %s, as long as the bill has no more of them", (_, more, cause) => {
    const calls = [...known.slice(0, more[0].usage_id === "use_3" ? 2 : 3), ...more]
    const one = billOf([...knownLines, ...described("other-1")])
    expect(rest(calls, one)).toMatchObject([{ amount: usualCost, cause }])
    const two = billOf([...knownLines, ...described("other-1"), ...described("other-2")])
    expect(rest(calls, two)).toMatchObject([{ amount: 2n * usualCost, cause: "coverage" }])
  })

  it.each([5_000n, -5_000n])("leaves %s nano-USD without requests unexplained", (fee) => {
    expect(rest(known, billOf(knownLines, fee))).toMatchObject([{ amount: fee, cause: "unexplained", quantity: 0 }])
  })

  it("finds a cheap unknown call within the vendor's rounding", () => {
    const coarse = (lines: ReadonlyArray<BilledLine>) => lines.map((line) => ({ ...line, resolution: 10_000_000n }))
    const cheap = described("other-1", { input: 10, output: 1 })
    const bill = coarse(billOf([...knownLines, ...cheap]))
    expect(rest(known, bill, coarse(knownLines))).toMatchObject([{ amount: 2_100n, cause: "coverage" }])
    expect(rest(known, coarse(billOf(knownLines, 2_100n)), coarse(knownLines))).toMatchObject([
      { amount: 2_100n, cause: "rounding" }
    ])
  })

  it("has a call that neither the vendor nor its bill knows", () => {
    const lines = knownLines.filter(({ call }) => call !== "gen-2")
    expect(rest(known, billOf(lines), lines)).toMatchObject([
      { amount: -usualCost, call: "gen-2", cause: "not_billed" }
    ])
  })

  it("is left alone if the bill may have a call under another id", () => {
    const lines = knownLines.filter(({ call }) => call !== "gen-2")
    const bill = billOf([...lines, ...described("another-id")])
    expect(explain(known, bill, lines)).toEqual(Either.left("the vendor does not know 1 of 3 calls"))
  })
})

describe("the calls to request", () => {
  const of = (name: string, on: string): Compared => ({ ...comparedOf([], []), day: on, model: name })
  const groups = [of("b", "2026-03-01"), of("a", "2026-03-02"), of("a", "2026-03-01"), of("c", "2026-03-01")]
  const few = (...numbers: ReadonlyArray<number>) => numbers.map((n) => callOf(n))
  const found = new Map<string, ReadonlyArray<MeteredCall>>([
    [keyOf(groups[0]!), few(3, 4, 5)],
    [keyOf(groups[1]!), few(6)],
    [keyOf(groups[2]!), few(1, 2)]
  ])
  const idsIn = (max: number, compared = groups) =>
    chosenCalls(compared, found, max).map(({ compared: one, ids }) => [
      `${one.day} ${one.model}`,
      Either.getOrElse(ids, (reason) => reason)
    ])

  it("are those of days, then of models, and never of a part of them", () => {
    expect(idsIn(6)).toEqual([
      ["2026-03-01 a", ["gen-1", "gen-2"]],
      ["2026-03-01 b", ["gen-3", "gen-4", "gen-5"]],
      ["2026-03-02 a", ["gen-6"]]
    ])
    expect(idsIn(4, groups.toReversed())).toEqual([
      ["2026-03-01 a", ["gen-1", "gen-2"]],
      ["2026-03-01 b", "at most 4 calls are requested per comparison"],
      ["2026-03-02 a", ["gen-6"]]
    ])
  })

  it("include failed attempts, and lack failed calls without an id", () => {
    const calls = [callOf(1, { retried: ["first"] }), callOf(2, { ...failed, call: undefined }), callOf(3, failed)]
    const [chosen] = chosenCalls(groups, new Map([[keyOf(groups[0]!), calls]]), 9)
    expect(chosen!.ids).toEqual(Either.right(["first", "gen-1", "gen-3"]))
  })

  it.each([
    ["a call without an id", [callOf(1), callOf(2, { call: undefined })]],
    ["nothing but failed calls without an id", [callOf(1, { ...failed, call: undefined })]]
  ])("are none for %s", (_, calls) => {
    const [chosen] = chosenCalls(groups, new Map([[keyOf(groups[0]!), calls]]), 9)
    expect(chosen!.ids).toEqual(Either.left("some calls have no id from the vendor"))
  })

  it("are none if only the first of too many calls were read, however few of them have an id", () => {
    const calls = [callOf(1), ...Array.from({ length: 9 }, (__, n) => callOf(n + 2, { ...failed, call: undefined }))]
    const [chosen] = chosenCalls(groups, new Map([[keyOf(groups[0]!), calls]]), 9)
    expect(chosen!.ids).toEqual(Either.left("at most 9 calls are requested per comparison"))
  })
})

describe("the reason to keep a difference", () => {
  const difference: Difference = {
    day,
    model,
    kind: "all",
    cause: "price",
    amount: 1n,
    quantity: null,
    note: null,
    call: null,
    usage_id: null
  }
  const reasons = new Map([[keyOf(difference), "why"]])

  it("follows the difference's own note", () => {
    expect(withReason(difference, reasons).note).toBe("why")
    expect(withReason({ ...difference, note: "5 requests" }, reasons).note).toBe("5 requests; why")
    expect(withReason({ ...difference, model: "other" }, reasons).note).toBeNull()
  })
})
