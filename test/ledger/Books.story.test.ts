/**
 * The books under random histories: through the real writer over real SQLite, several transactions at once, some refused, some
 * broken. The notebook knows nothing of entries, drafts or batches; it has purses and open calls.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Exit, Layer, ManagedRuntime } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { verify } from "../../src/ledger/Invariants.ts"
import type {
  CallOutcome,
  CreditSource,
  Posting,
  Source,
  Statement,
  Transaction
} from "../../src/ledger/Transaction.ts"
import { Writer } from "../../src/ledger/Writer.ts"
import * as Sql from "../../src/sql/Sql.ts"
import { tell } from "../support/story.ts"
import type { Step } from "../support/story.ts"

interface Purse {
  gift: bigint
  grant: bigint
  set: bigint
  status: "active" | "suspended" | "closed"
}

interface Notebook {
  readonly purses: Map<string, Purse>
  readonly open: Map<string, { readonly purse: string; readonly amount: bigint }>
  readonly charged: Map<string, bigint>
  /** What the statements of committed transactions have left. */
  readonly left: Set<string>
  calls: number
  came: bigint
}

interface World {
  readonly submit: (transaction: Transaction) => Promise<unknown>
  readonly rows: (text: string) => Promise<ReadonlyArray<Record<string, string>>>
  readonly findings: () => Promise<ReadonlyArray<{ readonly message: string }>>
  readonly close: () => Promise<void>
}

type Told = Step<Notebook, World>

// ---- the world --------------------------------------------------------------------------------------------------------------

const begin = async (): Promise<{ readonly notebook: Notebook; readonly world: World }> => {
  const runtime = ManagedRuntime.make(Writer.layer.pipe(Layer.provideMerge(Sql.layerMemory)))
  const context = await runtime.runPromise(Effect.context<Writer | SqlClient>())
  const writer = Context.get(context, Writer)
  const sql = Context.get(context, SqlClient)
  await runtime.runPromise(sql`CREATE TABLE beside (id TEXT PRIMARY KEY)`)
  return {
    notebook: { purses: new Map(), open: new Map(), charged: new Map(), left: new Set(), calls: 0, came: 0n },
    world: {
      submit: (transaction) =>
        runtime.runPromiseExit(writer.submit(transaction)).then((exit) =>
          Exit.match(exit, {
            onSuccess: (results) => results.map(({ _tag }) => _tag).join(),
            onFailure: (cause) => (cause._tag === "Fail" ? cause.error._tag : "broken")
          })
        ),
      rows: (text) => runtime.runPromise(sql.unsafe<Record<string, string>>(text)),
      findings: () => runtime.runPromise(Effect.provide(verify, context)),
      close: () => runtime.dispose()
    }
  }
}

/** What the database says of every purse, against the notebook. */
const compare = async (notebook: Notebook, world: World): Promise<void> => {
  const rows = await world.rows(
    `SELECT id, status, CAST(giftable AS TEXT) gift, CAST(granted AS TEXT) "grant", CAST(reserved AS TEXT) "set"
     FROM ledger_accounts ORDER BY id`
  )
  expect(rows.map((row) => ({ ...row }))).toEqual(
    [...notebook.purses]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([id, { gift, grant, set, status }]) => ({ id, status, gift: `${gift}`, grant: `${grant}`, set: `${set}` }))
  )
}

const end = async (notebook: Notebook, world: World): Promise<void> => {
  try {
    await compare(notebook, world)
    expect((await world.findings()).map(({ message }) => message)).toEqual([])
    const sum = (amounts: Iterable<bigint>) => [...amounts].reduce((a, b) => a + b, 0n)
    const purses = sum([...notebook.purses.values()].map(({ gift, grant }) => gift + grant))
    expect(purses + sum(notebook.charged.values())).toBe(notebook.came)
    const records = await world.rows("SELECT id, CAST(cost AS TEXT) cost FROM usage_records ORDER BY id")
    expect(records.map(({ id, cost }) => [id, cost])).toEqual(
      [...notebook.charged]
        .map(([call, cost]) => [`use_${call.slice(5)}`, `${cost}`])
        .sort(([a], [b]) => (a! < b! ? -1 : 1))
    )
    const left = await world.rows("SELECT id FROM beside ORDER BY id")
    expect(left.map(({ id }) => id)).toEqual([...notebook.left].sort())
    const reserved = await world.rows("SELECT id FROM ledger_reservations ORDER BY id")
    expect(reserved.map(({ id }) => id)).toEqual([...notebook.open.keys()].sort())
  } finally {
    await world.close()
  }
}

// ---- what can be asked, and what the bystander expects -------------------------------------------------------------------------

/** A transaction, what it answers, and how the notebook changes if it is committed. */
interface Deed {
  readonly sentence: string
  readonly postings: (notebook: Notebook) => ReadonlyArray<Posting>
  readonly expect: (notebook: Notebook) => string
}

const names = ["ada", "bob", "cyd"] as const
const name = fc.constantFrom(...names)
const tenantOf = (purse: string) => `ten_${purse}`
const amount = fc.oneof(fc.bigInt(1n, 20n), fc.bigInt(1n, 10n ** 18n))

const openPurse = name.map((who): Deed => ({
  sentence: `${who} opens a purse`,
  postings: () => [{ _tag: "Open", account: who, tenant: tenantOf(who) }],
  expect: ({ purses }) => {
    if (purses.has(who)) return "AccountExists"
    purses.set(who, { gift: 0n, grant: 0n, set: 0n, status: "active" })
    return "Opened"
  }
}))

const sources: ReadonlyArray<CreditSource> = ["purchase", "registration_bonus", "signup_grant", "admin"]

const creditPurse = fc.tuple(name, amount, fc.constantFrom(...sources)).map(([who, amount, source]): Deed => ({
  sentence: `${who} gets ${amount} by ${source}`,
  postings: () => [{ _tag: "Credit", account: who, amount, source, reference: "r", description: "d" }],
  expect: (notebook) => {
    const purse = notebook.purses.get(who)
    if (purse === undefined) return "AccountMissing"
    if (purse.gift + purse.grant + amount > 10n ** 18n) return "BalanceTooLarge"
    if (source === "purchase") purse.gift += amount
    else purse.grant += amount
    notebook.came += amount
    return "Credited"
  }
}))

const setStatus = fc
  .tuple(name, fc.constantFrom("active" as const, "suspended" as const, "closed" as const))
  .map(([who, status]): Deed => ({
    sentence: `${who} becomes ${status}`,
    postings: () => [{ _tag: "SetStatus", account: who, status }],
    expect: ({ purses }) => {
      const purse = purses.get(who)
      if (purse === undefined) return "AccountMissing"
      purse.status = status
      return "Changed"
    }
  }))

/** The call that is made next; numbered so that a story is the same each time it is told. */
const callOf = (notebook: Notebook): string => `call_${String(notebook.calls).padStart(4, "0")}`

const reserve = fc
  .tuple(fc.uniqueArray(name, { minLength: 1, maxLength: 3 }), fc.bigInt(0n, 30n), fc.bigInt(0n, 30n))
  .map(([payers, least, more]): Deed => {
    const asked: ReadonlyArray<Source> = payers.map((who, i) => ({
      billing_account_id: who,
      tenant_id: tenantOf(who),
      kind: i === 0 ? "own" : "team"
    }))
    return {
      sentence: `a call sets aside ${least} to ${least + more} of ${payers.join(", else of ")}`,
      postings: (notebook) => [
        {
          _tag: "Reserve",
          call: callOf(notebook),
          sources: asked,
          least,
          most: least + more,
          run: "now",
          facts: {
            account_id: "acc_caller",
            tenant_id: tenantOf(payers[0]!),
            application_id: null,
            usage_type: "inference",
            endpoint: "chat/completions",
            model: "m",
            provider: "p"
          }
        }
      ],
      expect: (notebook) => {
        const call = callOf(notebook)
        notebook.calls++
        for (const [i, who] of payers.entries()) {
          const purse = notebook.purses.get(who)
          if (purse === undefined || purse.status !== "active") {
            // One's own decides; a team that cannot is passed over.
            if (i === 0) return purse === undefined ? "AccountMissing" : "AccountInactive"
            continue
          }
          const free = purse.gift + purse.grant - purse.set
          if (free < least) continue
          const taken = free < least + more ? free : least + more
          purse.set += taken
          notebook.open.set(call, { purse: who, amount: taken })
          return "Reserved"
        }
        return "InsufficientCredits"
      }
    }
  })

const settle = fc
  .tuple(fc.nat(12), fc.oneof(fc.bigInt(-5n, 40n), fc.bigInt(0n, 10n ** 18n)))
  .map(([back, cost]): Deed => ({
    sentence: `the call made ${back + 1} before is settled at ${cost}`,
    postings: (notebook) => [{ _tag: "Settle", call: callBefore(notebook, back), outcome: outcomeOf(cost) }],
    expect: (notebook) => {
      const call = callBefore(notebook, back)
      const open = notebook.open.get(call)
      if (open === undefined) return "AlreadySettled"
      notebook.open.delete(call)
      const purse = notebook.purses.get(open.purse)!
      purse.set -= open.amount
      const free = purse.gift + purse.grant - purse.set
      const charge = cost < 0n ? 0n : cost < free ? cost : free
      const granted = charge < purse.grant ? charge : purse.grant
      purse.grant -= granted
      purse.gift -= charge - granted
      notebook.charged.set(call, charge)
      return "Settled"
    }
  }))

const callBefore = (notebook: Notebook, back: number): string =>
  `call_${String(Math.max(0, notebook.calls - 1 - back)).padStart(4, "0")}`

const outcomeOf = (cost: bigint): CallOutcome => ({
  cost,
  prompt_tokens: 2,
  completion_tokens: 3,
  units: 5,
  provider: "q",
  success: true,
  error_type: null,
  usage_source: "provider",
  latency_ms: 7
})

const deed = fc.oneof(
  { weight: 1, arbitrary: openPurse },
  { weight: 3, arbitrary: creditPurse },
  { weight: 1, arbitrary: setStatus },
  { weight: 4, arbitrary: reserve },
  { weight: 4, arbitrary: settle }
)

// ---- steps ------------------------------------------------------------------------------------------------------------------

/** What stands beside the postings: nothing, a guard that holds, one that does not, or a statement that breaks a rule. */
type Beside = "nothing" | "a guard that holds" | "a guard that fails" | "a broken statement"

const statementsOf = (beside: Beside, id: string): ReadonlyArray<Statement> => {
  switch (beside) {
    case "nothing":
      return []
    case "a guard that holds":
      return [{ text: "INSERT INTO beside (id) VALUES (?) RETURNING id", params: [id], rows: 1 }]
    case "a guard that fails":
      return [
        { text: "INSERT INTO beside (id) VALUES (?)", params: [id] },
        { text: "UPDATE beside SET id = id WHERE id = 'nobody' RETURNING id", params: [], rows: 1 }
      ]
    case "a broken statement":
      return [{ text: "INSERT INTO beside (id) VALUES (?), (?)", params: [id, id] }]
  }
}

/** Runs a change of the notebook that may have to be undone. */
const copied = (notebook: Notebook) => ({
  purses: new Map([...notebook.purses].map(([who, purse]) => [who, { ...purse }])),
  open: new Map(notebook.open),
  charged: new Map(notebook.charged),
  left: notebook.left,
  calls: notebook.calls,
  came: notebook.came
})

const refusals = new Set([
  "AccountExists",
  "AccountMissing",
  "AccountInactive",
  "BalanceTooLarge",
  "InsufficientCredits"
])

/** One transaction of one or more deeds: all of them or none. */
const transaction = (deeds: ReadonlyArray<Deed>, beside: Beside) => {
  const sentence = deeds.map((one) => one.sentence).join(" and ") + (beside === "nothing" ? "" : `, beside ${beside}`)
  const prepare = (notebook: Notebook) => {
    const draft = copied(notebook)
    const postings: Array<Posting> = []
    const answers: Array<string> = []
    let answer: string | undefined
    for (const one of deeds) {
      postings.push(...one.postings(draft))
      const expected = one.expect(draft)
      answers.push(expected)
      if (answer === undefined && refusals.has(expected)) answer = expected
    }
    const refused = answer
    answer ??=
      beside === "a guard that fails" ? "Conflict" : beside === "a broken statement" ? "broken" : answers.join()
    // A refused reservation has used up its number all the same.
    const committed = refused === undefined && answer === answers.join()
    const after = committed ? draft : { ...copied(notebook), calls: draft.calls }
    return { postings, answer, committed, after }
  }
  return { sentence, prepare }
}

const overwrite = (notebook: Notebook, by: Notebook): void => {
  notebook.purses.clear()
  for (const [who, purse] of by.purses) notebook.purses.set(who, purse)
  notebook.open.clear()
  for (const [call, open] of by.open) notebook.open.set(call, open)
  notebook.charged.clear()
  for (const [call, cost] of by.charged) notebook.charged.set(call, cost)
  notebook.calls = by.calls
  notebook.came = by.came
}

const beside = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Beside>("nothing") },
  { weight: 1, arbitrary: fc.constantFrom<Beside>("a guard that holds", "a guard that fails", "a broken statement") }
)

const transactions = fc.tuple(
  fc.oneof(
    { weight: 4, arbitrary: fc.tuple(deed) },
    { weight: 1, arbitrary: fc.array(deed, { minLength: 2, maxLength: 3 }) }
  ),
  beside
)

let statements = 0

/** Several transactions handed in at once: they share a commit, and each is answered for itself. */
const atOnce = (count: { readonly minLength: number; readonly maxLength: number }) =>
  fc.array(transactions, count).map((several): Told => {
    const told = several.map(([deeds, beside]) => ({ ...transaction(deeds, beside), beside }))
    return {
      sentence: told.map(({ sentence }) => sentence).join(" | at once: "),
      happen: async (notebook, world) => {
        const expected: Array<string> = []
        const asked: Array<Promise<unknown>> = []
        for (const { beside, prepare } of told) {
          const { after, answer, committed, postings } = prepare(notebook)
          const id = `s${statements++}`
          overwrite(notebook, after)
          if (committed && beside === "a guard that holds") notebook.left.add(id)
          expected.push(answer)
          asked.push(world.submit({ postings, statements: statementsOf(beside, id) }))
        }
        expect(await Promise.all(asked)).toEqual(expected)
        await compare(notebook, world)
      }
    }
  })

describe("the books", () => {
  it("agree with a bystander's notebook in every story", async () => {
    await tell<Notebook, World>({
      begin,
      end,
      steps: [atOnce({ minLength: 1, maxLength: 1 }), atOnce({ minLength: 2, maxLength: 6 })],
      stories: 150,
      length: 30
    })
  })
})
