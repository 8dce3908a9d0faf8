/** Versions of PostgreSQL's tables beside each other: which a version serves, and what is refused while an older one is at work. */
import { Effect, Redacted } from "effect"
import { SqlClient } from "@effect/sql/SqlClient"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { connectionsPreset } from "../../src/storage/database/Location.ts"
import * as Connections from "../../src/storage/postgres/Client.ts"
import { migrateBy, migrations, newest } from "../../src/storage/postgres/Migrate.ts"
import type { Migration } from "../../src/storage/postgres/Migrate.ts"
import { contracting, later } from "../../src/storage/postgres/Schema.ts"
import * as Locks from "../../src/storage/postgres/Locks.ts"
import { Runs } from "../../src/storage/engine/Runs.ts"
import { nodeOf, startDatabases } from "../support/nodes.ts"
import { asked } from "../support/postgres.ts"
import type { Databases } from "../support/nodes.ts"

let databases: Databases
beforeAll(async () => {
  databases = await startDatabases()
})
afterAll(() => databases.stop())

const next = newest + 1
const numbered = (number: number, name: string) => `${String(number).padStart(4, "0")}_${name}`
const table = Effect.flatMap(SqlClient, (sql) => sql`CREATE TABLE tollgate_test_next (id bigint PRIMARY KEY)`)
const column = Effect.flatMap(SqlClient, (sql) => sql`ALTER TABLE tollgate_test_next DROP COLUMN id`)

const expands: Migration = { name: numbered(next, "expands"), oldest: newest, apply: table }
const contracts: Migration = { name: numbered(next + 1, "contracts"), oldest: next, apply: column }

/** The numbers of what a version with these migrations applies, or why it does not. */
const migrate = (url: string, ...more: ReadonlyArray<Migration>) =>
  Effect.runPromise(
    migrateBy([...migrations, ...more], "the database").pipe(
      Effect.match({ onFailure: ({ message }) => message, onSuccess: (applied) => applied.map(([number]) => number) }),
      Effect.provide(Connections.layer({ ...connectionsPreset, url: Redacted.make(url), readers: 1, writers: 1 }))
    )
  )

/**
 * What the version before goes on writing to: a table more, an index that refuses nothing, a column that an insert may leave out, a trigger
 * that writes a row of its own behind each change.
 */
const expanding = [
  /^CREATE TABLE /,
  /^CREATE INDEX /,
  /^CREATE FUNCTION tollgate_sql_signal\(\) RETURNS trigger /,
  /^CREATE TRIGGER \w+ AFTER [^]* FOR EACH ROW EXECUTE FUNCTION tollgate_sql_signal\('\w+'\)$/,
  /^ALTER TABLE \w+ ADD COLUMN (?!.*\b(NOT NULL|UNIQUE|PRIMARY KEY)\b)/,
  // A check of a new nullable column, which the version before does not write.
  /^ALTER TABLE \w+ ADD CONSTRAINT \w+_vendor_cost_check CHECK \(vendor_cost >= 0\) NOT VALID$/,
  /^ALTER TABLE \w+ ADD COLUMN .*\bNOT NULL DEFAULT\b(?!.*\b(UNIQUE|PRIMARY KEY)\b)/
]

describe("a version of PostgreSQL's tables", () => {
  it.each(Object.entries(later).filter(([name]) => contracting[name] === undefined))(
    "takes nothing away from the version before it, or says so: %s",
    (_, statements) => {
      const made = new Set(statements.flatMap((text) => /^CREATE TABLE (\w+)/.exec(text)?.[1] ?? []))
      const ofNewTables = (text: string) => made.has(/^CREATE UNIQUE INDEX \w+ ON (\w+)/.exec(text)?.[1] ?? "")
      const others = statements.filter((text) => !ofNewTables(text) && !expanding.some((form) => form.test(text)))
      expect(others).toEqual([])
    }
  )

  it("is served by the one before where it expands, and not where it contracts", async () => {
    const { drop, url } = await databases.fresh()
    expect(await migrate(url)).toEqual([])
    expect(await migrate(url, expands)).toEqual([next])
    // The one before finds nothing to do.
    expect(await migrate(url)).toEqual([])
    expect(await migrate(url, expands, contracts)).toEqual([next + 1])
    expect(await migrate(url, expands)).toEqual([])
    expect(await migrate(url)).toBe(
      `the database was written by a newer version (migration ${next + 1}; this version knows ${newest}): run that version`
    )
    await drop()
  })

  it("does not come while a node is at work that could not go on", async () => {
    const { drop, url } = await databases.fresh()
    const node = nodeOf({ url, knows: newest })
    await node.runPromise(Runs)
    expect(await migrate(url, expands)).toEqual([next])
    expect(await migrate(url, expands, contracts)).toMatch(/^the database is served by .*: first run a version between/)
    await node.dispose()
    expect(await migrate(url, expands, contracts)).toEqual([next + 1])
    await drop()
  })

  it("that came while a node was cut off ends the node's lease", async () => {
    const { drop, url } = await databases.fresh()
    const node = nodeOf({ url, knows: newest })
    const lease = () => node.runPromise(Effect.map(Runs, (runs) => runs.node!.lease!.left()))
    expect(await lease()).toBeGreaterThan(0)
    await asked(url, (client) => client.query("UPDATE tollgate_sql_nodes SET until = now()"))
    expect(await migrate(url, expands, contracts)).toEqual([next, next + 1])
    await expect.poll(lease, { timeout: 30_000 }).toBe(0)
    const nodes = await asked(url, (client) => client.query("SELECT ended FROM tollgate_sql_nodes"))
    expect(nodes.rows).toEqual([{ ended: true }])
    await node.dispose()
    await drop()
  })

  it("waits for whoever builds an index", async () => {
    const { drop, url } = await databases.fresh()
    const migrated = await asked(url, async (client) => {
      await client.query(`SELECT pg_advisory_lock(${Locks.indexes})`)
      // One that changes nothing is not held up.
      expect(await migrate(url)).toEqual([])
      const migrated = migrate(url, expands)
      await new Promise((go) => setTimeout(go, 1_500))
      expect((await client.query("SELECT to_regclass('tollgate_test_next') AS made")).rows).toEqual([{ made: null }])
      return [migrated] as const
    })
    expect(await migrated[0]).toEqual([next])
    await drop()
  })

  it("waits for whoever has locked a table", async () => {
    const { drop, url } = await databases.fresh()
    const locks: Migration = {
      ...expands,
      apply: Effect.flatMap(SqlClient, (sql) => sql`ALTER TABLE tollgate_sql_nodes ADD COLUMN more integer`)
    }
    const migrated = await asked(url, async (client) => {
      await client.query("BEGIN")
      await client.query("SELECT 1 FROM tollgate_sql_nodes")
      const migrated = migrate(url, locks)
      await new Promise((go) => setTimeout(go, 2_500))
      await client.query("COMMIT")
      return migrated
    })
    expect(migrated).toEqual([next])
    await drop()
  })
})
