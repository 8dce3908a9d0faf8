/** Indexes of tables that are there already: built while others write, by one process at a time, and again where a build did not come to its end. */
import { Effect, Exit, Fiber, Redacted } from "effect"
import { Client } from "pg"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import * as Engine from "../../src/storage/engine/Engine.ts"
import { connectionsPreset } from "../../src/storage/database/Location.ts"
import * as Connections from "../../src/storage/postgres/Client.ts"
import * as Indexes from "../../src/storage/postgres/Indexes.ts"
import { indexes, later } from "../../src/storage/postgres/Schema.ts"
import { startDatabases } from "../support/nodes.ts"
import type { Database, Databases } from "../support/nodes.ts"
import { asked } from "../support/postgres.ts"

const names = indexes.map(({ name }) => name)
/** The one that is built last, of the largest table. */
const last = "tollgate_ledger_entries_sources"

let databases: Databases
let database: Database
/** In a transaction that has written to the last one's table: a build waits for its end. */
let writer: Client
const ask = (text: string, values: ReadonlyArray<unknown> = []) =>
  asked(database.url, async (client) => (await client.query(text, [...values])).rows)

beforeAll(async () => {
  databases = await startDatabases()
})
afterAll(() => databases.stop())

beforeEach(async () => {
  database = await databases.fresh()
  // As an earlier version leaves it.
  await ask(`DROP INDEX ${names.join(", ")}`)
  writer = new Client(database.url)
  await writer.connect()
  await writer.query("BEGIN")
  await writer.query("LOCK TABLE tollgate_ledger_entries IN ROW EXCLUSIVE MODE")
})
afterEach(async () => {
  await writer.end()
  await database.drop()
})

const commit = () => writer.query("COMMIT")

const fork = (url = database.url) => {
  const begun: Array<string> = []
  const ended: Array<string> = []
  const built = Indexes.build({
    begin: ({ name }) => Effect.sync(() => void begun.push(name)),
    end: ({ name }) => Effect.sync(() => void ended.push(name))
  }).pipe(
    Effect.provide(Connections.layer({ ...connectionsPreset, url: Redacted.make(url), readers: 1, writers: 1 })),
    Effect.runFork
  )
  return { begun, ended, fiber: built, outcome: () => Effect.runPromise(Fiber.join(built)) }
}

/** The process of the server that builds the last one, when it does. */
const building = async (): Promise<number> => {
  const select = `SELECT pid FROM pg_stat_progress_create_index WHERE index_relid = to_regclass('${last}')`
  await expect.poll(() => ask(select), { timeout: 60_000 }).toHaveLength(1)
  return (await ask(select))[0].pid
}

const isValid = async (): Promise<boolean | undefined> =>
  (await ask(`SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('${last}')`))[0]?.indisvalid

const definitions = () => ask("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1")

const insert = (seq: number) => `INSERT INTO tollgate_ledger_entries
    (seq, billing_account_id, number, type, amount, balance, giftable, source, reference_id, description, at, previous)
  VALUES (${seq}, 'bil_a', ${seq}, 'credit', 1, 1, 0, 'signup_grant', 'r', '', 1, NULL)`

describe("an index of a table that is there already", () => {
  it("is part of no migration", () => {
    for (const statements of Object.values(later)) {
      const made = statements.flatMap((text) => /^CREATE TABLE (\w+)/.exec(text)?.[1] ?? [])
      const indexed = statements.flatMap((text) => /^CREATE (?:UNIQUE )?INDEX \w+\s+ON (\w+)/.exec(text)?.[1] ?? [])
      expect(made).toEqual(expect.arrayContaining(indexed))
    }
  })

  it("is there in a new database at once, and built comes to the same", async () => {
    const upgraded = database
    database = await databases.fresh()
    const there = await definitions()
    expect(there.map(({ indexname }) => indexname)).toEqual(expect.arrayContaining(names))
    expect(await fork().outcome()).toBe("complete")
    await database.drop()
    database = upgraded
    await commit()
    const { begun, ended, outcome } = fork()
    expect(await outcome()).toBe("complete")
    expect([begun, ended]).toEqual([names, names])
    expect(await definitions()).toEqual(there)
  })

  it("is built while others write, and has what they wrote", async () => {
    const { ended, outcome } = fork()
    await building()
    // Behind a build that holds up who writes these would wait for the transaction that it waits for.
    await ask(`SET lock_timeout = '2s'; ${insert(1)}; UPDATE tollgate_ledger_entries SET balance = 2; ${insert(2)}`)
    await writer.query(insert(3))
    await commit()
    expect(await outcome()).toBe("complete")
    expect(ended.at(-1)).toBe(last)
    const numbers = await asked(database.url, async (client) => {
      await client.query("SET enable_seqscan = off")
      const select =
        "SELECT number FROM tollgate_ledger_entries WHERE billing_account_id = 'bil_a' AND source IS NOT NULL"
      const plan = (await client.query(`EXPLAIN ${select}`)).rows.map((row) => row["QUERY PLAN"]).join(" ")
      expect(plan).toContain(last)
      return (await client.query(`${select} ORDER BY number`)).rows.map(({ number }) => Number(number))
    })
    expect(numbers).toEqual([1, 2, 3])
  })

  it("is built by one process at a time", async () => {
    const [first, second] = [fork(), (await building(), fork())]
    expect(await second.outcome()).toBe("busy")
    await commit()
    expect(await first.outcome()).toBe("complete")
    expect([first.begun, second.begun]).toEqual([names, []])
  })

  it("is dropped and built again where a build was killed", async () => {
    const killed = fork()
    await ask("SELECT pg_terminate_backend($1)", [await building()])
    expect(Exit.isFailure(await Effect.runPromise(Fiber.await(killed.fiber)))).toBe(true)
    expect([killed.ended.includes(last), await isValid()]).toEqual([false, false])
    await commit()
    const { begun, outcome } = fork()
    expect(await outcome()).toBe("complete")
    expect([begun, await isValid()]).toEqual([[last], true])
  })

  it("is taken away where it could not be built", async () => {
    const failed = fork()
    const pid = await building()
    await commit()
    await writer.query("BEGIN")
    await writer.query("LOCK TABLE tollgate_ledger_entries IN ROW EXCLUSIVE MODE")
    await ask("SELECT pg_cancel_backend($1)", [pid])
    await commit()
    const exit = await Effect.runPromise(Fiber.await(failed.fiber))
    // Where it was done before it was told to stop, it is there.
    expect(await isValid()).toBe(Exit.isFailure(exit) ? undefined : true)
  })

  it("is finished by the server where its process has ended", async () => {
    const { fiber } = fork()
    await building()
    await Effect.runPromise(Fiber.interrupt(fiber))
    expect(await fork().outcome()).toBe("busy")
    await commit()
    await expect.poll(isValid, { timeout: 60_000 }).toBe(true)
    await expect.poll(() => fork().outcome(), { timeout: 60_000 }).toBe("complete")
  })

  it("is left to who builds it by hand", async () => {
    await writer.query("ROLLBACK")
    for (const index of indexes) if (index.name !== last) await ask(Indexes.textOf(index))
    await writer.query("BEGIN")
    await writer.query("LOCK TABLE tollgate_ledger_entries IN ROW EXCLUSIVE MODE")
    const byHand = ask(Indexes.textOf(indexes.at(-1)!, "CONCURRENTLY"))
    await building()
    expect(await fork().outcome()).toBe("busy")
    await commit()
    await byHand
    const { begun, outcome } = fork()
    expect([await outcome(), begun, await isValid()]).toEqual(["complete", [], true])
  })

  it("is built however long that takes", async () => {
    const name = new URL(database.url).pathname.slice(1)
    // The last of them came with PostgreSQL 17.
    const limits = await ask(
      "SELECT name FROM pg_settings WHERE name IN ('statement_timeout', 'lock_timeout', 'transaction_timeout')"
    )
    for (const limit of limits) await ask(`ALTER DATABASE ${name} SET ${limit["name"]} = '300ms'`)
    const { outcome } = fork()
    await building()
    await new Promise((go) => setTimeout(go, 1_000))
    await commit()
    expect(await outcome()).toBe("complete")
  })

  it("that its user may not build is said so, with what that means", async () => {
    await ask("DROP ROLE IF EXISTS visitor")
    await ask("CREATE ROLE visitor LOGIN PASSWORD 'visitor'")
    await ask("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO visitor")
    const url = Object.assign(new URL(database.url), { username: "visitor", password: "visitor" }).href
    const nothing = { begin: () => Effect.void, end: () => Effect.void }
    const location = { engine: "postgres", url: Redacted.make(url), shown: "the database" } as const
    const refused = await Effect.runPromise(
      Effect.flip(Engine.completeIndexes(location, nothing, () => Effect.void)).pipe(Effect.orDie)
    )
    expect(refused.message).toBe(
      `the database can be served, but is slow because its index ${names[0]} could not be built: must be owner of table tollgate_tenants_tenants`
    )
  })
})
