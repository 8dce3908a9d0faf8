/** Exports of charged calls from the books: they contain each charge of the period once, and add up to the ledger's debits. */
import { describe, expect, it } from "@effect/vitest"
import { SqlClient } from "@effect/sql/SqlClient"
import { parse } from "csv-parse/sync"
import { Effect, Exit, Layer, TestClock } from "effect"
import fc from "fast-check"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { firstEntryAt } from "../../../src/books/ledger/rows/EntriesInOrder.ts"
import type { Source } from "../../../src/books/ledger/rules/Transaction.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { priced } from "../../../src/books/prices/Lines.ts"
import type { PriceLine } from "../../../src/books/prices/Lines.ts"
import { PriceVersions } from "../../../src/books/prices/PriceVersions.ts"
import * as Ids from "../../../src/kernel/Ids.ts"
import type { TenantId } from "../../../src/kernel/Ids.ts"
import { fromDecimal } from "../../../src/kernel/Money.ts"
import type { Nano } from "../../../src/kernel/Money.ts"
import { parse as instantOf, toIso } from "../../../src/kernel/Moment.ts"
import type { UnitPrice } from "../../../src/kernel/Price.ts"
import { ServiceInfo } from "../../../src/kernel/ServiceInfo.ts"
import { InsufficientRole } from "../../../src/people/tenants/Problems.ts"
import { Tenants } from "../../../src/people/tenants/Tenants.ts"
import type { ExportFormat } from "../../../src/money/exports/Export.ts"
import { Exports, pageSize } from "../../../src/money/exports/Exports.ts"
import type { Window } from "../../../src/money/usage/Window.ts"
import { isPostgres } from "../../support/database.ts"
import * as Scene from "../usage/Scene.ts"
import { acme, ada, bob, other } from "../usage/Scene.ts"
import { datasetFaults, rowFaults } from "./FocusRules.ts"

/** Whether the next look at a tenant's name fails. */
let fails = false

/** Ada is the only manager of every tenant. */
const managers = Layer.effect(
  Tenants,
  Effect.map(Tenants, (tenants) => ({
    ...tenants,
    nameOf: (tenant) =>
      Effect.suspend(() => {
        if (!fails) return tenants.nameOf(tenant)
        fails = false
        return Effect.dieMessage("no database")
      }),
    mayManage: ({ account_id, tenant_id }) => (account_id === ada ? Effect.void : new InsufficientRole({ tenant_id }))
  }))
)

const layer = Exports.layer.pipe(
  Layer.provide(managers),
  Layer.provideMerge(PriceVersions.layer),
  Layer.provide(
    ServiceInfo.layer({ service_name: "Tollgate", key_prefix: "svc", public_url: "http://127.0.0.1:8787" })
  ),
  Layer.provideMerge(Scene.layerOf(13))
)

const lines: ReadonlyArray<PriceLine> = [
  { quantity: "prompt_tokens", unit: "token", price: 37_500_000_000n as UnitPrice },
  { quantity: "completion_tokens", unit: "token", price: 150_000_000_001n as UnitPrice },
  { quantity: "cached_tokens", unit: "token", price: 3_750_000_001n as UnitPrice }
]

interface Made {
  readonly at: number
  readonly tenant_id: TenantId
  readonly payer: TenantId
  readonly account_id: typeof ada
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly cached: number
  /** Whether the call's price version is known. */
  readonly isPriced: boolean
  readonly tags: string
}

/** Makes a call at its time. */
const make = Effect.fnUntraced(function* (one: Made) {
  const { submit } = yield* Writer
  yield* TestClock.setTime(one.at)
  const price = yield* (yield* PriceVersions).of(lines)
  const figures = {
    prompt_tokens: one.prompt_tokens,
    completion_tokens: one.completion_tokens,
    units: one.prompt_tokens + one.completion_tokens,
    token_details: { cached_tokens: Math.min(one.cached, one.prompt_tokens) }
  }
  const cost = priced(lines, { ...figures, requests: 1 })
  const call = Ids.at("call", one.at)
  const isOwn = one.payer === one.tenant_id
  const source: Source = {
    billing_account_id: Ids.billingAccountOf(one.payer),
    tenant_id: one.payer,
    kind: isOwn ? "own" : "team",
    why: isOwn ? "own" : "fall_through"
  }
  const facts = {
    account_id: one.account_id,
    tenant_id: one.tenant_id,
    application_id: null,
    usage_type: "inference",
    endpoint: "chat/completions",
    model: "small",
    provider: "here",
    ...(one.isPriced && { price }),
    ...(one.tags !== "" && { tags: one.tags })
  } as const
  yield* submit({
    postings: [{ _tag: "Reserve", call, sources: [source], least: 0n, most: cost, run: "run", facts }],
    statements: []
  })
  const ended = { success: true, error_type: null, usage_source: "provider", latency_ms: 10 } as const
  yield* submit({ postings: [{ _tag: "Settle", call, outcome: { cost, ...figures, ...ended } }], statements: [] })
})

/** Reads an export to its end. Returns its rows and how many pages it had. */
const read = Effect.fnUntraced(function* (tenant_id: TenantId, format: ExportFormat, window: Window) {
  const { close, next } = yield* (yield* Exports).open({ caller: { account_id: ada, tenant_id }, format, window })
  let text = ""
  let pages = 0
  for (let page = yield* next; page !== undefined; page = yield* next) {
    expect(page).not.toBe("")
    text += page
    pages++
  }
  expect(yield* next).toBeUndefined()
  close()
  const rows = parse(text, { columns: true, record_delimiter: "\r\n" }) as ReadonlyArray<
    Readonly<Record<string, string>>
  >
  return { text, pages, rows }
})

/** The ledger's debits for calls in a period, oldest first. */
const debits = Effect.fnUntraced(function* (tenant: TenantId, { end, start }: Window) {
  const ledger = yield* Ledger
  const all = []
  for (let page = 1; ; page++) {
    const found = yield* ledger.entries(Ids.billingAccountOf(tenant), { page, per_page: 200 })
    all.push(...found.records)
    if (page >= found.total_pages) break
  }
  return all
    .filter(
      ({ at, source, type }) => type === "debit" && source === null && at >= (start ?? 0) && at < (end ?? Infinity)
    )
    .toReversed()
})

const sumOf = (amounts: ReadonlyArray<string | undefined>): Nano =>
  amounts.reduce((sum, text) => sum + fromDecimal(text!, 9)!, 0n)

const unknown = "ten_unknown" as TenantId
const caller = { account_id: ada, tenant_id: acme }
const all: Window = { start: null, end: null }
const begin = instantOf("2026-01-31T12:00:00Z")!

const some = (i: number): Made => ({
  at: begin + i * 977,
  tenant_id: acme,
  payer: acme,
  account_id: ada,
  prompt_tokens: 1 + (i % 50),
  completion_tokens: i % 7,
  cached: i % 3,
  isPriced: true,
  tags: i % 2 === 0 ? "project=atlas" : ""
})

const opened = Effect.gen(function* () {
  yield* TestClock.setTime(begin - 1_000)
  yield* Scene.tenant(acme)
  yield* Scene.tenant(other)
})

describe("an export", () => {
  it.effect("adds up to the ledger's debits of its period, for any calls", () =>
    Effect.gen(function* () {
      const made = fc.record({
        after: fc.oneof(fc.constant(0), fc.nat(2), fc.nat(40_000_000)),
        isOther: fc.boolean(),
        isOtherPayer: fc.boolean(),
        isBob: fc.boolean(),
        prompt_tokens: fc.nat(3_000),
        completion_tokens: fc.nat(500),
        cached: fc.nat(3_000),
        isPriced: fc.integer({ min: 0, max: 9 }).map((n) => n > 0),
        tags: fc.constantFrom("", "project=atlas", "note==1+2\nproject=a,b"),
        isCredit: fc.integer({ min: 0, max: 9 }).map((n) => n === 0)
      })
      const stories = fc.record({
        calls: fc.array(made, { minLength: 1, maxLength: 150, size: "max" }),
        // An account that runs dry pays only a part of a call.
        credit: fc.constantFrom(1_000_000_000n, 1_000_000n, 20_000n),
        windows: fc.array(fc.tuple(fc.nat(1_000), fc.nat(1_000)), { minLength: 2, maxLength: 4 })
      })
      for (const story of fc.sample(stories, { numRuns: isPostgres ? 3 : 10, seed: 11 })) {
        yield* Effect.gen(function* () {
          yield* TestClock.setTime(begin)
          yield* Scene.tenant(acme, story.credit)
          yield* Scene.tenant(other, story.credit)
          let at = begin
          let credits = 1
          for (const { after, isBob, isCredit, isOther, isOtherPayer, ...figures } of story.calls) {
            at += after
            if (isCredit) {
              yield* TestClock.setTime(at)
              yield* Scene.credit(isOtherPayer ? other : acme, 500_000n, "admin", `pay_${++credits}`)
            }
            yield* Effect.ignore(
              make({
                ...figures,
                at,
                tenant_id: isOther ? other : acme,
                payer: isOtherPayer ? other : acme,
                account_id: isBob ? bob : ada
              })
            )
          }
          const instants = [begin, at, at + 1, ...story.calls.map((_, i) => begin + Math.floor(((at - begin) * i) / 7))]
          const windows: ReadonlyArray<Window> = [
            all,
            ...story.windows.map(([a, b]) => {
              const [one, two] = [instants[a % instants.length]!, instants[b % instants.length]!]
              return { start: Math.min(one, two), end: Math.max(one, two) }
            })
          ]
          for (const window of windows) {
            for (const tenant of [acme, other]) {
              const due = yield* debits(tenant, window)
              const total = due.reduce((sum, { amount }) => sum + amount, 0n)
              const csv = yield* read(tenant, "csv", window)
              expect(csv.rows.map((row) => [row["time"], row["usage_id"], fromDecimal(row["charge_usd"]!, 9)])).toEqual(
                due.map(({ amount, at, reference_id }) => [toIso(at), reference_id, amount])
              )
              const focus = yield* read(tenant, "focus", window)
              expect(sumOf(focus.rows.map((row) => row["BilledCost"]))).toBe(total)
              expect([...new Set(focus.rows.map((row) => row["x_UsageId"]))]).toEqual(
                due.map((one) => one.reference_id)
              )
              expect(focus.rows.flatMap(rowFaults)).toEqual([])
              expect(datasetFaults(focus.rows)).toEqual([])
            }
          }
        }).pipe(Effect.provide(layer))
      }
    })
  )

  it.effect("is read in pages of the ledger, and ignores calls after its start", () =>
    Effect.gen(function* () {
      yield* opened
      const count = 2 * pageSize + 10
      for (let i = 0; i < count; i++) yield* make(some(i))
      const { close, next } = yield* (yield* Exports).open({ caller, format: "csv", window: all })
      const first = (yield* next)!
      expect(first.split("\r\n")[0]).toContain("time,usage_id")
      // The first entry is the purchase.
      expect(first.trimEnd().split("\r\n")).toHaveLength(pageSize)
      for (let i = count; i < count + 20; i++) yield* make(some(i))
      const second = (yield* next)!
      const third = (yield* next)!
      expect(yield* next).toBeUndefined()
      close()
      const rows = [first, second, third].flatMap((page) => page.trimEnd().split("\r\n")).slice(1)
      expect(rows).toHaveLength(count)
      expect(new Set(rows).size).toBe(count)
      expect((yield* read(acme, "csv", all)).rows).toHaveLength(count + 20)
      expect((yield* read(other, "csv", all)).rows).toEqual([])
    }).pipe(Effect.provide(layer))
  )

  it.effect("includes the first instant of its period and excludes the last", () =>
    Effect.gen(function* () {
      yield* opened
      for (let i = 0; i < 200; i++) yield* make(some(i))
      const sql = yield* SqlClient
      const account = Ids.billingAccountOf(acme)
      for (const i of [0, 1, 62, 63, 64, 65, 127, 128, 199]) {
        const { at } = some(i)
        // The first entry is the purchase.
        expect(yield* firstEntryAt(sql, account, at)).toBe(i + 2)
        expect(yield* firstEntryAt(sql, account, at + 1)).toBe(i + 3)
        const { rows } = yield* read(acme, "csv", { start: at, end: at + 2 * 977 })
        expect(rows.map((row) => row["time"])).toEqual([i, i + 1].filter((n) => n < 200).map((n) => toIso(some(n).at)))
      }
      expect(yield* firstEntryAt(sql, account, 0)).toBe(1)
      expect(yield* firstEntryAt(sql, Ids.billingAccountOf(unknown), begin)).toBe(1)
    }).pipe(Effect.provide(layer))
  )

  it.effect("is one at a time for each tenant", () =>
    Effect.gen(function* () {
      yield* opened
      const exports = yield* Exports
      const asked = { caller, format: "csv", window: all } as const
      const first = yield* exports.open(asked)
      expect(yield* Effect.flip(exports.open(asked))).toMatchObject({ code: "export_in_progress", status: 429 })
      const beside = yield* exports.open({ ...asked, caller: { ...caller, tenant_id: other } })
      const member = yield* Effect.flip(exports.open({ ...asked, caller: { ...caller, account_id: bob } }))
      expect(member).toMatchObject({ code: "insufficient_role", status: 403 })
      first.close()
      const second = yield* exports.open(asked)
      // Closing the first again does not end the second.
      first.close()
      expect(Exit.isFailure(yield* Effect.exit(exports.open(asked)))).toBe(true)
      second.close()
      beside.close()
      const missing = yield* Effect.flip(exports.open({ ...asked, caller: { ...caller, tenant_id: unknown } }))
      expect(missing).toMatchObject({ code: "billing_account_not_found" })
    }).pipe(Effect.provide(layer))
  )

  it.effect("does not take a place if it cannot begin", () =>
    Effect.gen(function* () {
      yield* opened
      const exports = yield* Exports
      const asked = { caller, format: "csv", window: all } as const
      fails = true
      expect(Exit.isFailure(yield* Effect.exit(exports.open(asked)))).toBe(true)
      const second = yield* exports.open(asked)
      second.close()
    }).pipe(Effect.provide(layer))
  )
})
