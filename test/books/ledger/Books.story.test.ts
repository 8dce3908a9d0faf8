/**
 * The books under random histories: several transactions at once, some refused, some broken. The same stories are told to the
 * rules alone, to the writer over real SQLite, and to the writer's thread on a file. The notebook knows nothing of drafts,
 * batches or tables; it has purses, open calls, and a line for whatever happened.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Cause, Clock, Context, Effect, Exit, Layer, ManagedRuntime, Option } from "effect"
import fc from "fast-check"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { accountsTable } from "../../../src/books/ledger/rows/Rows.ts"
import * as Books from "../../../src/books/ledger/rules/Books.ts"
import { verify } from "../../../src/app/Checks.ts"
import { balanceOf } from "../../../src/books/ledger/rules/Transaction.ts"
import type {
  CallFacts,
  CreditSource,
  Entry,
  Outcome,
  Posting,
  Refusal,
  Reservation,
  Result,
  Source,
  Statement,
  Transaction,
  UsageRecord
} from "../../../src/books/ledger/rules/Transaction.ts"
import type { BooksUnavailable } from "../../../src/books/ledger/rules/Problems.ts"
import { RollupLagMax, tails } from "../../../src/books/ledger/rows/RollupLag.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { tell } from "../../support/story.ts"
import type { Step } from "../../support/story.ts"
import * as TestDatabase from "../../support/database.ts"

// ---- the notebook -----------------------------------------------------------------------------------------------------------

interface Purse {
  readonly gift: bigint
  readonly grant: bigint
  readonly status: "active" | "suspended" | "closed"
  readonly funded: boolean
}

interface OpenCall {
  readonly purse: string
  readonly kind: "own" | "team"
  readonly caller: string
  readonly model: string
  readonly amount: bigint
}

interface Move {
  readonly purse: string
  readonly move: bigint
  readonly balance: bigint
  readonly gift: bigint
  readonly source: string
  readonly at: number
}

interface EndedCall extends OpenCall {
  readonly cost: bigint
  readonly uncollected: bigint
  readonly good: boolean
  readonly at: number
}

interface Notebook {
  now: number
  /** When something was last booked: time does not go back in the books, whatever the clock does. */
  booked: number
  /** How many calls have been admitted, and how many transactions handed in. */
  calls: number
  asked: number
  purses: ReadonlyMap<string, Purse>
  open: ReadonlyMap<string, OpenCall>
  moves: ReadonlyArray<Move>
  ended: ReadonlyMap<string, EndedCall>
  /** What the statements of committed transactions have left. */
  left: ReadonlyArray<string>
}

const blank = (): Notebook => ({
  now: Date.UTC(2026, 0, 1, 20),
  booked: 0,
  calls: 0,
  asked: 0,
  purses: new Map(),
  open: new Map(),
  moves: [],
  ended: new Map(),
  left: []
})

const sum = (amounts: ReadonlyArray<bigint>): bigint => amounts.reduce((a, b) => a + b, 0n)

const setAside = ({ open }: Notebook, purse: string): bigint =>
  sum([...open.values()].filter((call) => call.purse === purse).map(({ amount }) => amount))

const freeOf = (notebook: Notebook, who: string): bigint => {
  const { gift, grant } = notebook.purses.get(who)!
  return gift + grant - setAside(notebook, who)
}

const put = <K, V>(map: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> => new Map([...map, [key, value]])

const without = <K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> =>
  new Map([...map].filter(([other]) => other !== key))

/** What moves a purse: its new contents, and a line. */
const move = (notebook: Notebook, who: string, gift: bigint, grant: bigint, source: string): void => {
  const purse = notebook.purses.get(who)!
  const balance = purse.gift + purse.grant + gift + grant
  const after = { ...purse, gift: purse.gift + gift, grant: purse.grant + grant }
  notebook.purses = put(notebook.purses, who, after)
  notebook.moves = [
    ...notebook.moves,
    { purse: who, move: gift + grant, balance, gift: after.gift, source, at: at(notebook) }
  ]
}

const at = ({ booked, now }: Notebook): number => Math.max(booked, now)

/** What the books must hold, in sentences. */
const booksOf = (notebook: Notebook): BooksTold => {
  const of = (who: string) => notebook.moves.filter(({ purse }) => purse === who)
  return {
    purses: [...notebook.purses].map(([id, { funded, gift, grant, status }]) =>
      purseTold({
        id,
        status,
        giftable: gift,
        granted: grant,
        reserved: setAside(notebook, id),
        funded,
        entries: of(id).length
      })
    ),
    moves: notebook.moves.map(({ at, balance, gift, move, purse, source }, i) =>
      moveTold(
        purse,
        notebook.moves.slice(0, i + 1).filter((other) => other.purse === purse).length,
        move,
        balance,
        gift,
        source,
        at
      )
    ),
    open: [...notebook.open].map(([call, { amount, purse }]) => `${call}: ${amount} of ${purse}`),
    ended: [...notebook.ended].map(([call, one], i, all) =>
      endedTold({ ...one, call, number: all.slice(0, i + 1).filter(([, { caller }]) => caller === one.caller).length })
    )
  }
}

interface BooksTold {
  readonly purses: ReadonlyArray<string>
  readonly moves: ReadonlyArray<string>
  readonly open: ReadonlyArray<string>
  readonly ended: ReadonlyArray<string>
}

const inOrder = ({ ended, moves, open, purses }: BooksTold): BooksTold => ({
  purses: [...purses].sort(),
  moves,
  open: [...open].sort(),
  ended
})

interface PurseTold {
  readonly id: string
  readonly status: string
  readonly giftable: bigint | string
  readonly granted: bigint | string
  readonly reserved: bigint | string
  readonly funded: boolean | number
  readonly entries: number
}

const purseTold = ({ entries, funded, giftable, granted, id, reserved, status }: PurseTold): string =>
  `${id} is ${status}: ${giftable} to give, ${granted} granted, ${reserved} set aside, ${entries} entries` +
  (Number(funded) === 1 ? ", funded" : "")

const moveTold = (
  purse: string,
  number: number,
  move: bigint | string,
  balance: bigint | string,
  gift: bigint | string,
  source: string | null,
  at: number
): string => `${purse} #${number}: ${move} (${source ?? "charge"}) leaves ${balance}, ${gift} to give, at ${hourOf(at)}`

const endedTold = (ended: {
  readonly call: string
  readonly number: number
  readonly caller: string
  readonly purse: string
  readonly kind: string
  readonly cost: bigint | string
  readonly uncollected: bigint | string
  readonly amount: bigint | string
  readonly good: boolean
  readonly at: number
}): string =>
  `${ended.call} is #${ended.number} of ${ended.caller}: ${ended.cost} and not ${ended.uncollected}, ${ended.amount} set aside, ` +
  `by ${ended.kind} ${ended.purse}, ${ended.good ? "good" : "failed"}, at ${hourOf(ended.at)}`

const hour = 3_600_000
const day = 24 * hour
const hourOf = (at: number): string => new Date(at).toISOString().slice(0, 16)

/** What is kept beside the books, in sentences: sums of calls by day and hour, and where rows are. */
const sumsOf = (notebook: Notebook): ReadonlyArray<string> => {
  const sums = new Map<string, { calls: number; good: number; cost: bigint }>()
  const count = (name: string, { cost, good }: EndedCall) => {
    const before = sums.get(name) ?? { calls: 0, good: 0, cost: 0n }
    sums.set(name, { calls: before.calls + 1, good: before.good + Number(good), cost: before.cost + cost })
  }
  for (const one of notebook.ended.values()) {
    const today = one.at - (one.at % day)
    const payer = `${one.purse} for acc_caller by ${one.kind} on ${hourOf(today)}`
    count(`tenant ${one.caller} at ${one.good ? "q" : "p"} on ${hourOf(today)}`, one)
    count(`caller ${one.caller} ${one.model} in ${day} from ${hourOf(today)}`, one)
    count(`caller ${one.caller} ${one.model} in ${hour} from ${hourOf(one.at - (one.at % hour))}`, one)
    count(`payer ${payer}`, one)
  }
  const spans = (kind: string, owners: ReadonlyArray<string>) =>
    [...new Set(owners)].map((owner) => `${kind} of ${owner}: 1 to ${owners.filter((one) => one === owner).length}`)
  const ended = [...notebook.ended.values()]
  return [
    ...[...sums].map(([name, { calls, cost, good }]) => sumTold(name, calls, good, `${cost}`)),
    ...spans(
      "entries",
      notebook.moves.map(({ purse }) => purse)
    ),
    ...spans(
      "records",
      ended.map(({ caller }) => caller)
    ),
    ...notebook.left.map((id) => `${id} is left`)
  ].sort()
}

/** Each call has 2 and 3 tokens, 5 units, and takes 7 ms. */
const sumTold = (name: string, calls: number, good: number, cost: string, of = [2, 3, 5, 7].map((n) => n * calls)) =>
  `${name}: ${calls} calls, ${good} good, ${cost}, ${of.join("/")}`

// ---- worlds -----------------------------------------------------------------------------------------------------------------

interface World {
  /** Hands them all in at once; answers in their order. */
  readonly submit: (now: number, transactions: ReadonlyArray<Transaction>) => Promise<ReadonlyArray<string>>
  readonly books: () => Promise<BooksTold>
  /** What a database keeps beside the books; the rules alone keep nothing. */
  readonly sums: (() => Promise<ReadonlyArray<string>>) | undefined
  readonly findings: () => Promise<ReadonlyArray<string>>
  readonly close: () => Promise<void>
}

const said = (results: ReadonlyArray<Result>): string =>
  results
    .map((result) => {
      switch (result._tag) {
        case "Credited":
          return `Credited, ${result.balance} now`
        case "Reserved":
          return `Reserved ${result.amount} of ${result.source.billing_account_id}`
        case "Settled":
          return `Settled ${result.usage_id} for ${result.collected}, ${result.balance} left`
        default:
          return result._tag
      }
    })
    .join(", ")

const refusalTold = (refusal: Refusal | BooksUnavailable): string => {
  switch (refusal._tag) {
    case "BooksUnavailable":
      return "the books are unavailable"
    case "InsufficientCredits":
      return `InsufficientCredits, ${refusal.available} there`
    case "InsufficientGiftable":
      return `InsufficientGiftable, ${refusal.giftable} there`
    case "LimitReached":
      return `LimitReached, ${refusal.available} there`
    case "BudgetReached":
      return `BudgetReached, ${refusal.left} left`
    case "Conflict":
      return `Conflict at ${refusal.statement}`
    default:
      return `${refusal._tag} ${refusal.account}`
  }
}

const entryTold = (entry: Entry): string =>
  moveTold(
    entry.billing_account_id,
    entry.number,
    entry.type === "credit" ? entry.amount : -entry.amount,
    entry.balance,
    entry.giftable,
    entry.source,
    entry.at
  )

const recordTold = (r: UsageRecord): string =>
  endedTold({
    call: `call_${r.id.slice(4)}`,
    number: r.number,
    caller: r.dimensions.tenant_id,
    purse: r.dimensions.billing_account_id,
    kind: r.dimensions.billing_source_kind,
    cost: r.cost,
    uncollected: r.uncollected,
    amount: r.reserved,
    good: r.success,
    at: r.at
  })

/** Limits of keys have stories of their own (`Limits.story.test.ts`). */
const noLimits = new Map<string, never>()

/** The rules alone. A draft a step, laid over what the steps before have left. */
const rules = async (): Promise<World> => {
  const accounts: Books.Books["accounts"] = new Map()
  const reservations = new Map<string, Reservation>()
  const records = new Map<string, number>()
  const entries: Array<Entry> = []
  const usage: Array<UsageRecord> = []
  const outcome = (one: Outcome) => (one._tag === "Committed" ? said(one.results) : refusalTold(one.refusal))
  return {
    submit: async (now, transactions) => {
      const booked = Math.max(0, ...entries.map(({ at }) => at), ...usage.map(({ at }) => at))
      const at = Math.max(now, booked)
      const draft = new Books.Draft({
        accounts,
        reservations,
        records,
        budgets: noLimits,
        anchors: noLimits,
        spending: noLimits,
        at
      })
      const outcomes = transactions.map(({ postings }) => outcome(Books.commit(draft, postings)))
      for (const [id, account] of draft.accounts) accounts.set(id, account)
      for (const call of draft.released) reservations.delete(call)
      for (const [call, reservation] of draft.reserved) reservations.set(call, reservation)
      for (const [tenant, count] of draft.records) records.set(tenant, count)
      entries.push(...draft.entries)
      usage.push(...draft.usage)
      return outcomes
    },
    books: async () => ({
      purses: [...accounts.values()].map(purseTold),
      moves: entries.map(entryTold),
      open: [...reservations.values()].map(
        ({ amount, dimensions, id }) => `${id}: ${amount} of ${dimensions.billing_account_id}`
      ),
      ended: usage.map(recordTold)
    }),
    sums: undefined,
    findings: async () =>
      [...accounts.values()].flatMap((account) =>
        account.giftable < 0n || account.granted < 0n || account.reserved < 0n || account.reserved > balanceOf(account)
          ? [`${account.id} is out of bounds`]
          : []
      ),
    close: async () => {}
  }
}

/** A clock that shows what it is told. */
const stopped = () => {
  const shown = { now: 0 }
  const clock = Object.assign(Object.create(Clock.make()) as Clock.Clock, {
    currentTimeMillis: Effect.sync(() => shown.now),
    unsafeCurrentTimeMillis: () => shown.now
  })
  return { shown, layer: Layer.setClock(clock) }
}

/** The writer, over a database. */
const written =
  (layer: Layer.Layer<Writer | SqlClient, unknown>, beside = async () => {}) =>
  async (): Promise<World> => {
    const clock = stopped()
    const runtime = ManagedRuntime.make(Layer.provide(layer, clock.layer))
    const context = await runtime.runPromise(Effect.context<Writer | SqlClient>())
    const writer = Context.get(context, Writer)
    const sql = Context.get(context, SqlClient)
    const rows = (text: string) => runtime.runPromise(sql.unsafe<Record<string, string | number | null>>(text))
    // PostgreSQL's function of this kind has another name, and one way to show things.
    const formatted = (text: string) =>
      sql.onDialectOrElse({
        pg: () => text.replaceAll("printf(", "format(").replaceAll("%d", "%s"),
        orElse: () => text
      })
    const told = (text: string) => rows(formatted(text)).then((found) => found.map(({ told }) => `${told}`))
    await runtime.runPromise(
      writer.submit({
        postings: [],
        statements: [{ text: "CREATE TABLE beside (id TEXT PRIMARY KEY)", params: [] }]
      })
    )
    const answer = (exit: Exit.Exit<ReadonlyArray<Result>, Refusal | BooksUnavailable>) =>
      Exit.match(exit, {
        onSuccess: said,
        onFailure: (cause) => Option.match(Cause.failureOption(cause), { onNone: () => "broken", onSome: refusalTold })
      })
    const time = (column: string) =>
      sql.onDialectOrElse({
        pg: () => `to_char(to_timestamp(${column} / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI')`,
        orElse: () => `strftime('%Y-%m-%dT%H:%M', ${column} / 1000, 'unixepoch')`
      })
    return {
      submit: async (now, transactions) => {
        clock.shown.now = now
        const exits = Effect.forEach(transactions, (one) => Effect.exit(writer.submit(one)), {
          concurrency: "unbounded"
        })
        return (await runtime.runPromise(exits)).map(answer)
      },
      books: async () => ({
        purses: (
          await rows(
            `SELECT id, status, CAST(giftable AS TEXT) giftable, CAST(granted AS TEXT) granted,
             CAST(reserved AS TEXT) reserved, funded, entries FROM ${accountsTable}`
          )
        ).map((row) => purseTold(row as unknown as PurseTold)),
        moves: await told(
          `SELECT printf('%s #%d: %d (%s) leaves %d, %d to give, at %s', billing_account_id, number,
           CASE type WHEN 'credit' THEN amount ELSE -amount END, COALESCE(source, 'charge'), balance, giftable,
           ${time("at")}) told FROM tollgate_ledger_entries ORDER BY seq`
        ),
        open: await told(
          `SELECT printf('%s: %d of %s', id, amount, billing_account_id) told
           FROM tollgate_ledger_reservations r JOIN tollgate_usage_dimensions d ON d.number = r.dimensions ORDER BY id`
        ),
        ended: (
          await rows(
            `SELECT d.*, r.*, CAST(cost AS TEXT) cost, CAST(uncollected AS TEXT) uncollected, CAST(reserved AS TEXT) reserved
           FROM tollgate_usage_records r JOIN tollgate_usage_dimensions d ON d.number = r.dimensions ORDER BY seq`
          )
        ).map((row) => recordTold({ ...row, dimensions: row } as unknown as UsageRecord))
      }),
      sums: async () => {
        // As readers have it: what the rollups hold, and the tails behind it.
        const columns = "requests, successes, prompt_tokens, completion_tokens, units, cost, latency_ms"
        const own = "1, r.success, r.prompt_tokens, r.completion_tokens, r.units, r.cost, r.latency_ms"
        const everyTail = tails("SELECT id FROM tollgate_usage_tenants")
        const summed = (told: string, table: string, keys: string, ownKeys: string, beside = "") =>
          `SELECT ${told} name, SUM(requests) requests, SUM(successes) successes, CAST(SUM(cost) AS TEXT) cost,
             SUM(prompt_tokens) prompt_tokens, SUM(completion_tokens) completion_tokens, SUM(units) units, SUM(latency_ms) latency_ms
           FROM (SELECT ${keys}, ${columns} FROM ${table} UNION ALL SELECT ${ownKeys}, ${own} FROM ${everyTail} ${beside})
           GROUP BY 1`
        const ownDay = "r.at - r.at % 86400000"
        const tables = [
          summed(
            `printf('tenant %s at %s on %s', tenant_id, provider, ${time("start")})`,
            "tollgate_usage_by_tenant",
            "tenant_id, provider, start",
            `r.tenant_id, d.provider, ${ownDay}`
          ),
          summed(
            `printf('caller %s %s in %d from %s', tenant_id, model, grain, ${time("start")})`,
            "tollgate_usage_by_caller",
            "tenant_id, model, grain, start",
            "r.tenant_id, d.model, g.grain, r.at - r.at % g.grain",
            "CROSS JOIN (SELECT 86400000 grain UNION ALL SELECT 3600000) g ON true"
          ),
          summed(
            `printf('payer %s for %s by %s on %s', billing_account_id, account_id, billing_source_kind, ${time("start")})`,
            "tollgate_usage_by_payer",
            "billing_account_id, account_id, billing_source_kind, start",
            `d.billing_account_id, d.account_id, d.billing_source_kind, ${ownDay}`
          )
        ]
        return [
          ...(await Promise.all(tables.map((text) => rows(formatted(text))))).flat().map((row) =>
            sumTold(
              String(row["name"]),
              Number(row["requests"]),
              Number(row["successes"]),
              String(row["cost"]),
              ["prompt_tokens", "completion_tokens", "units", "latency_ms"].map((column) => Number(row[column]))
            )
          ),
          ...(await told(
            `SELECT printf('entries of %s: 1 to %d', id, entries) told FROM ${accountsTable} WHERE newest IS NOT NULL`
          )),
          ...(await told(
            `SELECT printf('records of %s: 1 to %d', id, records) told
           FROM tollgate_usage_heads JOIN tollgate_usage_tenants ON number = tenant WHERE records > 0`
          )),
          ...(await told("SELECT printf('%s is left', id) told FROM beside"))
        ].sort()
      },
      findings: () =>
        runtime.runPromise(Effect.provide(verify, context)).then((found) => found.map(({ message }) => message)),
      close: async () => {
        await runtime.dispose()
        await beside()
      }
    }
  }

/** So few that a story leaves both: records that the rollups hold, and tails behind them. */
const tailMax = Layer.succeed(RollupLagMax, 3)

const inMemory = written(TestDatabase.writer.pipe(Layer.provide(tailMax), Layer.provideMerge(TestDatabase.sql)))

const onThread = (): Promise<World> => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-story-"))
  const file = join(folder, "books.db")
  const layer = TestDatabase.writerAt(file).pipe(Layer.provide(tailMax), Layer.provideMerge(TestDatabase.sqlAt(file)))
  return written(layer, async () => {
    await TestDatabase.drop(folder)
    rmSync(folder, { recursive: true })
  })()
}

/** The notebook and the books say the same. */
const compare = async (notebook: Notebook, world: World): Promise<void> => {
  expect(inOrder(await world.books())).toEqual(inOrder(booksOf(notebook)))
}

const end = async (notebook: Notebook, world: World): Promise<void> => {
  await compare(notebook, world)
  if (world.sums !== undefined) expect(await world.sums()).toEqual(sumsOf(notebook))
  expect(await world.findings()).toEqual([])
  // Credit is neither made nor lost, by the notebook alone.
  const cameIn = sum(notebook.moves.map(({ move }) => (move > 0n ? move : 0n)))
  const purses = sum([...notebook.purses.values()].map(({ gift, grant }) => gift + grant))
  expect(purses + sum([...notebook.ended.values()].map(({ cost }) => cost))).toBe(cameIn)
}

// ---- what can be asked, and what the bystander expects ----------------------------------------------------------------------

/** A posting, what it answers, and what the bystander writes down when it is done. */
interface Deed {
  readonly sentence: string
  readonly posting: (notebook: Notebook) => Posting
  /** The answer; of a refusal the text is marked, and nothing is written down. */
  readonly happen: (notebook: Notebook) => string | Refused
}

class Refused {
  readonly why: string
  constructor(why: string) {
    this.why = why
  }
}

const names = ["ada", "bob", "cyd"] as const
/** The purses that every story begins with come up more often. */
const name = fc.constantFrom(...names, ...names.slice(0, 2), "ada" as const)
const tenantOf = (purse: string) => `ten_${purse}`
/** Mostly small, so that purses run dry; now and then absurd. */
const mostly = (small: fc.Arbitrary<bigint>, absurd: fc.Arbitrary<bigint>) =>
  fc.oneof({ weight: 9, arbitrary: small }, { weight: 1, arbitrary: absurd })

const opens = (who: string): Deed => ({
  sentence: `${who} opens a purse`,
  posting: () => ({ _tag: "Open", account: who, tenant: tenantOf(who) }),
  happen: (notebook) => {
    if (notebook.purses.has(who)) return new Refused(`AccountExists ${who}`)
    notebook.purses = put(notebook.purses, who, { gift: 0n, grant: 0n, status: "active", funded: false })
    return "Opened"
  }
})

const spentOnly = ["registration_bonus", "signup_grant", "admin"] as const satisfies ReadonlyArray<CreditSource>
const sources = [...spentOnly, "purchase"] as const

const gets = (who: string, amount: bigint, source: CreditSource): Deed => ({
  sentence: `${who} gets ${amount} by ${source}`,
  posting: () => ({
    _tag: "Credit",
    account: who,
    amount,
    source,
    reference: "r",
    description: "d"
  }),
  happen: (notebook) => {
    const purse = notebook.purses.get(who)
    if (purse === undefined) return new Refused(`AccountMissing ${who}`)
    const balance = purse.gift + purse.grant + amount
    if (amount <= 0n || balance > 10n ** 18n) return new Refused(`BalanceTooLarge ${who}`)
    const granted = spentOnly.some((one) => one === source)
    move(notebook, who, granted ? 0n : amount, granted ? amount : 0n, source)
    if (source === "purchase") {
      notebook.purses = put(notebook.purses, who, { ...notebook.purses.get(who)!, funded: true })
    }
    return `Credited, ${balance} now`
  }
})

const setStatus = fc
  .tuple(name, fc.constantFrom("active" as const, "active" as const, "suspended" as const, "closed" as const))
  .map(([who, status]): Deed => ({
    sentence: `${who} becomes ${status}`,
    posting: () => ({ _tag: "SetStatus", account: who, status }),
    happen: (notebook) => {
      const purse = notebook.purses.get(who)
      if (purse === undefined) return new Refused(`AccountMissing ${who}`)
      notebook.purses = put(notebook.purses, who, { ...purse, status })
      return "Changed"
    }
  }))

/** Admitted calls are numbered, so that a story is the same each time it is told. */
const callNamed = (number: number): string => `call_${String(number).padStart(4, "0")}`

const payer = fc.record({ who: name, kind: fc.constantFrom("own" as const, "team" as const) })

const reserve = fc
  .record({
    payers: fc.uniqueArray(payer, { minLength: 1, maxLength: 3, selector: ({ who }) => who }),
    least: mostly(fc.bigInt(0n, 20n), fc.bigInt(0n, 10n ** 18n)),
    more: mostly(fc.bigInt(0n, 20n), fc.bigInt(0n, 10n ** 18n)),
    enough: fc.option(mostly(fc.bigInt(0n, 40n), fc.bigInt(0n, 10n ** 18n)), { nil: undefined }),
    caller: name,
    model: fc.constantFrom("small", "large")
  })
  .map(({ caller, enough, least, model, more, payers }): Deed => {
    const facts: CallFacts = {
      account_id: "acc_caller",
      tenant_id: tenantOf(caller),
      application_id: null,
      usage_type: "inference",
      endpoint: "chat",
      model,
      provider: "p"
    }
    const asked = payers.map(({ kind, who }): Source => ({
      billing_account_id: who,
      tenant_id: tenantOf(who),
      kind,
      why: "own"
    }))
    return {
      sentence: `${caller} calls ${model}, for ${least} to ${least + more}${enough === undefined ? "" : `, rather ${enough}`} of ${payers.map(({ kind, who }) => `${kind} ${who}`).join(", else ")}`,
      posting: ({ calls }) => ({
        _tag: "Reserve",
        call: callNamed(calls),
        sources: asked,
        least,
        enough,
        most: least + more,
        run: "now",
        facts
      }),
      happen: (notebook) => {
        const call = callNamed(notebook.calls)
        const seen: Array<bigint> = []
        const unfit = payers.find(({ kind, who }) => kind === "own" && notebook.purses.get(who)?.status !== "active")
        // One's own decides, wherever it stands; a team that cannot is passed over.
        if (unfit !== undefined) {
          return new Refused(`${notebook.purses.has(unfit.who) ? "AccountInactive" : "AccountMissing"} ${unfit.who}`)
        }
        const affording = payers
          .filter(({ who }) => notebook.purses.get(who)?.status === "active")
          .map((payer) => ({ ...payer, free: freeOf(notebook, payer.who) }))
          .filter(({ free }) => {
            seen.push(free)
            return free >= least
          })
        // The first that affords enough; only where none does, the first that affords the least.
        const chosen = affording.find(({ free }) => free >= (enough ?? least)) ?? affording[0]
        if (chosen === undefined) {
          return new Refused(`InsufficientCredits, ${seen.reduce((a, b) => (a > b ? a : b), 0n)} there`)
        }
        const { free, kind, who } = chosen
        const taken = free < least + more ? free : least + more
        notebook.calls++
        notebook.open = put(notebook.open, call, { purse: who, kind, caller: tenantOf(caller), model, amount: taken })
        return `Reserved ${taken} of ${who}`
      }
    }
  })

const settle = fc
  .tuple(fc.oneof(fc.nat(2), fc.nat(8)), mostly(fc.bigInt(0n, 40n), fc.bigInt(-(10n ** 30n), 10n ** 30n)), fc.boolean())
  .map(([back, cost, good]): Deed => ({
    sentence: `the call ${back === 0 ? "just made" : `${back} before the last`} ends at ${cost}${good ? "" : ", failed"}`,
    posting: (notebook) => ({
      _tag: "Settle",
      call: callBefore(notebook, back),
      outcome: {
        cost,
        prompt_tokens: 2,
        completion_tokens: 3,
        units: 5,
        provider: good ? "q" : null,
        success: good,
        error_type: good ? null : "upstream",
        usage_source: "provider",
        latency_ms: 7
      }
    }),
    happen: (notebook) => {
      const call = callBefore(notebook, back)
      const open = notebook.open.get(call)
      if (open === undefined) return "AlreadySettled"
      notebook.open = without(notebook.open, call)
      // No call costs more than a purse can hold.
      const asked = cost < 0n ? 0n : cost > 10n ** 18n ? 10n ** 18n : cost
      const free = freeOf(notebook, open.purse)
      const paid = asked < free ? asked : free
      const { grant } = notebook.purses.get(open.purse)!
      const granted = paid < grant ? paid : grant
      if (paid > 0n) move(notebook, open.purse, granted - paid, -granted, "charge")
      notebook.ended = put(notebook.ended, call, {
        ...open,
        cost: paid,
        uncollected: asked - paid,
        good,
        at: at(notebook)
      })
      const { gift, grant: left } = notebook.purses.get(open.purse)!
      return `Settled use_${call.slice(5)} for ${paid}, ${gift + left} left`
    }
  }))

const callBefore = ({ calls }: Notebook, back: number): string => callNamed(Math.max(0, calls - 1 - back))

const credit = fc
  .tuple(name, mostly(fc.bigInt(1n, 20n), fc.bigInt(-3n, 10n ** 18n)), fc.constantFrom(...sources))
  .map((asked) => gets(...asked))

const deed = fc.oneof(
  { weight: 1, arbitrary: name.map(opens) },
  { weight: 3, arbitrary: credit },
  { weight: 1, arbitrary: setStatus },
  { weight: 6, arbitrary: reserve },
  { weight: 6, arbitrary: settle }
)

// ---- steps ------------------------------------------------------------------------------------------------------------------

/** What stands beside the postings: nothing, a guard that holds, one that does not, or a statement that breaks a rule. */
type Beside = "nothing" | "a guard that holds" | "a guard that fails" | "a broken statement"

const statementsOf = (beside: Beside, id: string): ReadonlyArray<Statement> => {
  const leave: Statement = { text: "INSERT INTO beside (id) VALUES (?) RETURNING id", params: [id], rows: 1 }
  switch (beside) {
    case "nothing":
      return []
    case "a guard that holds":
      return [leave]
    case "a guard that fails":
      return [leave, { text: "UPDATE beside SET id = id WHERE id = ? RETURNING id", params: ["nobody"], rows: 1 }]
    case "a broken statement":
      return [leave, leave]
  }
}

interface Asked {
  readonly deeds: ReadonlyArray<Deed>
  readonly beside: Beside
}

/** Every story begins with this; cyd comes later, if at all. */
const beginning: ReadonlyArray<Asked> = [
  { deeds: [opens("ada"), gets("ada", 30n, "signup_grant"), gets("ada", 20n, "purchase")], beside: "nothing" },
  { deeds: [opens("bob"), gets("bob", 25n, "purchase")], beside: "nothing" }
]

const askedTold = ({ beside, deeds }: Asked): string =>
  deeds.map((one) => one.sentence).join(" and ") + (beside === "nothing" ? "" : `, beside ${beside}`)

/** Writes one transaction into the notebook: all of its deeds or none. */
const witness = (
  notebook: Notebook,
  { beside, deeds }: Asked,
  id: string
): { readonly transaction: Transaction; readonly answer: string } => {
  const draft = { ...notebook }
  const postings: Array<Posting> = []
  const answers: Array<string> = []
  let refused: string | undefined
  for (const one of deeds) {
    postings.push(one.posting(draft))
    const answer = one.happen(draft)
    if (typeof answer === "string") answers.push(answer)
    else refused ??= answer.why
  }
  const transaction = { postings, statements: statementsOf(beside, id) }
  if (refused !== undefined) return { transaction, answer: refused }
  if (beside === "a guard that fails") return { transaction, answer: "Conflict at 1" }
  if (beside === "a broken statement") return { transaction, answer: "broken" }
  Object.assign(notebook, draft)
  if (beside === "a guard that holds") notebook.left = [...notebook.left, id]
  return { transaction, answer: answers.join(", ") }
}

type Told = Step<Notebook, World>

const besides = (withStatements: boolean): fc.Arbitrary<Beside> =>
  withStatements
    ? fc.oneof(
        { weight: 5, arbitrary: fc.constant<Beside>("nothing") },
        {
          weight: 1,
          arbitrary: fc.constantFrom<Beside>("a guard that holds", "a guard that fails", "a broken statement")
        }
      )
    : fc.constant("nothing")

const transactions = (withStatements: boolean): fc.Arbitrary<Asked> =>
  fc.record({
    deeds: fc.oneof(
      { weight: 4, arbitrary: fc.tuple(deed) },
      { weight: 1, arbitrary: fc.array(deed, { minLength: 2, maxLength: 3 }) }
    ),
    beside: besides(withStatements)
  })

/** Several transactions handed in at once: they share a commit, and each is answered for itself. */
const atOnce = (
  withStatements: boolean,
  count: { readonly minLength: number; readonly maxLength: number }
): fc.Arbitrary<Told> =>
  fc.array(transactions(withStatements), count).map((several): Told => ({
    sentence: several.map(askedTold).join("; at once "),
    happen: async (notebook, world) => {
      await handIn(notebook, world, several)
      await compare(notebook, world)
    }
  }))

const handIn = async (notebook: Notebook, world: World, several: ReadonlyArray<Asked>): Promise<void> => {
  const { ended, moves, now } = notebook
  const witnessed = several.map((one) => witness(notebook, one, `left_${notebook.asked++}`))
  const transactions = witnessed.map(({ transaction }) => transaction)
  expect(await world.submit(now, transactions)).toEqual(witnessed.map(({ answer }) => answer))
  if (notebook.moves !== moves || notebook.ended !== ended) notebook.booked = at(notebook)
}

/** Over PostgreSQL time does not go back for an account and a tenant: of two that a batch does not join, one may be booked earlier. */
const hours = TestDatabase.isPostgres ? [1, 7, 30] : [-2, 1, 7, 30]

const timePasses = fc.constantFrom(...hours).map((hours): Told => ({
  sentence: hours < 0 ? `the clock goes back by ${-hours} hours` : `${hours} hours pass`,
  happen: async (notebook) => {
    notebook.now += hours * hour
  }
}))

const steps = (withStatements: boolean) => [
  atOnce(withStatements, { minLength: 1, maxLength: 1 }),
  atOnce(withStatements, { minLength: 2, maxLength: 6 }),
  timePasses
]

const telling = (world: () => Promise<World>, withStatements: boolean, stories: number) =>
  tell<Notebook, World>({
    begin: async () => {
      const begun = { notebook: blank(), world: await world() }
      for (const asked of beginning) await handIn(begun.notebook, begun.world, [asked])
      return begun
    },
    end,
    close: (world) => world.close(),
    steps: steps(withStatements),
    stories,
    length: 30
  })

describe("the books agree with a bystander's notebook in every story", () => {
  it("by the rules alone", () => telling(rules, false, 800))
  it("written to a database", () => telling(inMemory, true, TestDatabase.isPostgres ? 60 : 200))
  it("written by the thread to a file", () => telling(onThread, true, 10))
})

describe("a balance that affords three calls", () => {
  const three: ReadonlyArray<Transaction> = [
    { postings: [{ _tag: "Open", account: "ada", tenant: "ten_ada" }], statements: [] },
    {
      postings: [{ _tag: "Credit", account: "ada", amount: 35n, source: "purchase", reference: "r", description: "d" }],
      statements: []
    }
  ]
  const call = (number: number): Transaction => ({
    postings: [
      {
        _tag: "Reserve",
        call: callNamed(number),
        sources: [{ billing_account_id: "ada", tenant_id: "ten_ada", kind: "own", why: "own" }],
        least: 10n,
        most: 10n,
        run: "now",
        facts: {
          account_id: "acc_caller",
          tenant_id: "ten_ada",
          application_id: null,
          usage_type: "inference",
          endpoint: "chat",
          model: "small",
          provider: "p"
        }
      }
    ],
    statements: []
  })

  it.each([
    ["by the rules alone", rules],
    ["written to a database", inMemory],
    ["written by the thread to a file", onThread]
  ])("admits three of two hundred at once, %s", async (_, begin) => {
    const world = await begin()
    try {
      await world.submit(0, three)
      const answers = await world.submit(
        0,
        Array.from({ length: 200 }, (_, i) => call(i))
      )
      // Over PostgreSQL two batches at a time are written, and the later ones may come first.
      const inOrder = TestDatabase.isPostgres ? answers.toSorted().toReversed() : answers
      expect(inOrder.slice(0, 3)).toEqual(Array(3).fill("Reserved 10 of ada"))
      expect(inOrder.slice(3)).toEqual(Array(197).fill("InsufficientCredits, 5 there"))
      const books = await world.books()
      expect(books.purses).toEqual(["ada is active: 35 to give, 0 granted, 30 set aside, 1 entries, funded"])
      expect(books.open).toEqual(Array(3).fill(expect.stringMatching(/^call_\d{4}: 10 of ada$/)))
    } finally {
      await world.close()
    }
  })
})
