/** The drill: a copy while calls go on, a loss, the copy in its place; and what upgrades do to old, new and broken files. */
import * as Migrator from "@effect/sql/Migrator"
import { SqlClient } from "@effect/sql/SqlClient"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import Sqlite from "better-sqlite3"
import { Effect } from "effect"
import { existsSync, rmSync, writeFileSync } from "node:fs"
import { afterAll, expect, it } from "vitest"
import { migrate, migrations } from "../../src/storage/sqlite/Sql.ts"
import { describeSqlite } from "../support/database.ts"
import { commandHere } from "../support/CommandLine.ts"
import { command, freshFolder, start } from "../support/Service.ts"

const folders: Array<string> = []
const folder = () => {
  const made = freshFolder()
  folders.push(made)
  return made
}
afterAll(() => {
  for (const one of folders) rmSync(one, { recursive: true, force: true })
})

describeSqlite("a backup", () => {
  it("is taken while calls go on, and put back after a loss", async () => {
    const DATA_DIR = folder()
    const service = await start({ folder: DATA_DIR })
    const who = await service.signIn("ada@example.com")
    const key = await service.key(who)
    const call = () =>
      service.call("/v1/chat/completions", {
        token: key,
        json: { model: "auto", messages: [{ role: "user", content: "x" }] }
      })
    await call()
    const load = { over: false }
    const busy = Promise.all(
      Array.from({ length: 8 }, async () => {
        while (!load.over) await call()
      })
    )
    const copied = await command(["backup", "--to", `${DATA_DIR}/copy.db`], { DATA_DIR })
    load.over = true
    await busy
    expect([copied.code, copied.stdout]).toEqual([0, expect.stringContaining("secret")])
    expect((await commandHere(["backup", "--to", `${DATA_DIR}/copy.db`], { DATA_DIR })).stderr).toContain(
      "already exists"
    )
    // Nobody's database is replaced under them.
    const refused = await command(["restore", "--from", `${DATA_DIR}/copy.db`], { DATA_DIR })
    expect(refused.code).toBe(1)
    await service.end()

    for (const name of ["tollgate.db", "tollgate.db-wal", "tollgate.db-shm"])
      rmSync(`${DATA_DIR}/${name}`, { force: true })
    const restored = await command(["restore", "--from", `${DATA_DIR}/copy.db`], { DATA_DIR })
    expect([restored.code, restored.stderr]).toEqual([0, ""])
    expect((await commandHere(["verify"], { DATA_DIR })).stdout).toContain("every invariant of the books holds")
    const again = await start({ folder: DATA_DIR })
    const answer = await again.call("/v1/chat/completions", {
      token: key,
      json: { model: "auto", messages: [{ role: "user", content: "x" }] }
    })
    expect(answer.status).toBe(200)
    await again.end()
  })

  it("that is damaged, or no database, is not put back", async () => {
    const DATA_DIR = folder()
    const service = await start({ folder: DATA_DIR })
    await service.signIn("ada@example.com")
    await service.end()
    writeFileSync(
      `${DATA_DIR}/nonsense.db`,
      "this is no database at all, but long enough to be read as one".repeat(100)
    )
    const nonsense = await commandHere(["restore", "--from", `${DATA_DIR}/nonsense.db`], { DATA_DIR })
    expect([nonsense.code, nonsense.stderr]).toEqual([1, expect.stringContaining("nonsense.db")])
    await commandHere(["backup", "--to", `${DATA_DIR}/copy.db`], { DATA_DIR })
    const db = new Sqlite(`${DATA_DIR}/copy.db`)
    db.exec("UPDATE tollgate_ledger_amounts SET giftable = giftable + 1")
    db.close()
    const wrong = await commandHere(["restore", "--from", `${DATA_DIR}/copy.db`], { DATA_DIR })
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining("fails its checks")])
    expect((await commandHere(["verify"], { DATA_DIR })).code).toBe(0)
  })
})

describeSqlite("an upgrade", () => {
  const newest = Object.keys(migrations).toSorted().at(-1)!
  const snapshotOf = (DATA_DIR: string) => `${DATA_DIR}/tollgate.db.before-${newest.slice(0, 4)}`

  /** As an earlier version left it: with the migrations up to this number. */
  const older = async (upTo = 11) => {
    const DATA_DIR = folder()
    const file = `${DATA_DIR}/tollgate.db`
    const earlier = Object.fromEntries(
      Object.entries(migrations).filter(([name]) => Number.parseInt(name, 10) <= upTo)
    ) as typeof migrations
    await Effect.runPromise(
      Migrator.make({})({ loader: Migrator.fromRecord(earlier), table: "tollgate_migrations" }).pipe(
        Effect.provide(SqliteClient.layer({ filename: file }))
      )
    )
    return { DATA_DIR, db: new Sqlite(file) }
  }

  it("puts a snapshot beside the file first", async () => {
    const { DATA_DIR, db } = await older()
    db.close()
    const done = await command(["migrate"], { DATA_DIR })
    expect([done.code, done.stdout]).toEqual([0, expect.stringContaining("0012_dimensions")])
    const snapshot = new Sqlite(snapshotOf(DATA_DIR), { readonly: true })
    const tables = snapshot.prepare("SELECT name FROM sqlite_master WHERE name = 'tollgate_usage_dimensions'").all()
    snapshot.close()
    expect(tables).toEqual([])
    expect((await commandHere(["migrate"], { DATA_DIR })).stdout).toContain("up to date")
  })

  it("keeps every call that was made, and every one that is open", async () => {
    const { DATA_DIR, db } = await older()
    const at = Date.parse("2026-03-01T10:00:00Z")
    const [day, hour] = [at - (at % 86_400_000), at - (at % 3_600_000)]
    const facts = JSON.stringify({
      account_id: "acc_ada",
      tenant_id: "ten_ada",
      application_id: null,
      usage_type: "inference",
      endpoint: "chat/completions",
      model: "small",
      provider: "p"
    })
    const source = JSON.stringify({
      billing_account_id: "bil_ada",
      tenant_id: "ten_ada",
      kind: "own",
      why: "fall_through"
    })
    db.exec(`INSERT INTO tollgate_ledger_accounts VALUES ('bil_ada', 'ten_ada', 'active', 0, 93, 0, 30, 0, 3);
      INSERT INTO tollgate_ledger_reservations VALUES ('call_3', 'bil_ada', 30, ${at}, 'held', '${source}', '${facts}');
      INSERT INTO tollgate_ledger_entries VALUES (1, 'bil_ada', 1, 'credit', 100, 100, 0, 'admin', 'x', 'x', ${at}),
        (2, 'bil_ada', 2, 'debit', 5, 95, 0, NULL, 'use_1', 'x', ${at}), (3, 'bil_ada', 3, 'debit', 2, 93, 0, NULL, 'use_2', 'x', ${at});
      INSERT INTO tollgate_ledger_buckets VALUES ('bil_ada', 0, 1, 3);
      INSERT INTO tollgate_ledger_accounts VALUES ('bil_bob', 'ten_bob', 'active', 0, 130, 0, 0, 0, 130);
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 130)
        INSERT INTO tollgate_ledger_entries SELECT 65472 + i, 'bil_bob', i, 'credit', 1, i, 0, 'admin', 'x', 'x', ${at} FROM n;
      INSERT INTO tollgate_ledger_buckets VALUES ('bil_bob', 0, 1, 63), ('bil_bob', 1, 64, 130);
      INSERT INTO tollgate_usage_records VALUES
        (1, 'use_1', 'ten_ada', 1, ${at}, 'acc_ada', 'app_1', 'inference', 'chat/completions', 'small', 'p', 3, 4, 7, 5, 0, 9,
          'provider', 20, 1, NULL, 'bil_ada', 'ten_ada', 'own', 'own', 'v1'),
        (2, 'use_2', 'ten_ada', 2, ${at}, 'acc_ada', NULL, 'inference', 'chat/completions', 'small', 'p', 1, 1, 2, 2, 0, 9,
          'counted', 30, 0, 'broken', 'bil_ada', 'ten_ada', 'own', NULL, NULL);
      INSERT INTO tollgate_usage_buckets VALUES ('ten_ada', 0, 1, 2, ${at}, ${at});
      INSERT INTO tollgate_usage_counters VALUES ('ten_ada', 2);
      INSERT INTO tollgate_usage_by_tenant VALUES ('ten_ada', ${day}, 'app_1', 'inference', 'p', 1, 1, 3, 4, 7, 5, 20),
        ('ten_ada', ${day}, '', 'inference', 'p', 1, 0, 1, 1, 2, 2, 30);
      INSERT INTO tollgate_usage_by_caller VALUES
        ('ten_ada', 'acc_ada', 86400000, ${day}, 'small', 'chat/completions', 2, 1, 4, 5, 9, 7, 50),
        ('ten_ada', 'acc_ada', 3600000, ${hour}, 'small', 'chat/completions', 2, 1, 4, 5, 9, 7, 50);
      INSERT INTO tollgate_usage_by_payer VALUES ('bil_ada', ${day}, 'acc_ada', 'own', 2, 1, 4, 5, 9, 7, 50)`)
    db.close()
    expect((await commandHere(["migrate"], { DATA_DIR })).code).toBe(0)
    expect((await commandHere(["verify"], { DATA_DIR })).stdout).toContain("every invariant of the books holds")
    const after = new Sqlite(`${DATA_DIR}/tollgate.db`, { readonly: true })
    const described = "application_id, price, billing_source_why"
    const of = (table: string) =>
      after
        .prepare(
          `SELECT id, ${described} FROM ${table} t JOIN tollgate_usage_dimensions d ON d.number = t.dimensions ORDER BY id`
        )
        .raw()
        .all()
    expect(of("tollgate_usage_records")).toEqual([
      ["use_1", "app_1", "v1", "own"],
      ["use_2", "", "", ""]
    ])
    expect(of("tollgate_ledger_reservations")).toEqual([["call_3", "", "", "fall_through"]])
    expect(
      after
        .prepare("SELECT prompt_tokens, cost, success, error_type, token_details FROM tollgate_usage_records")
        .raw()
        .all()
    ).toEqual([
      [3, 5, 1, null, null],
      [1, 2, 0, "broken", null]
    ])
    after.close()
  })

  it("gives applications what their consent page said, and trusts none of them", async () => {
    const { DATA_DIR, db } = await older(12)
    db.exec(`INSERT INTO tollgate_auth_families VALUES ('fam_own', 'acc_1', 'app-1', 0, 1, NULL), ('fam_app', 'acc_1', 'oauth-1', 1, 1, NULL);
      INSERT INTO tollgate_auth_clients VALUES ('oauth-1', 'oauth', 'Desk', '["https://desk.example/cb"]', 1, NULL);
      INSERT INTO tollgate_auth_codes VALUES ('open', 'oauth-1', 'x', 'acc_1', 'ten_1', 'x', 'everything', 9e15, NULL, NULL),
        ('used', 'oauth-1', 'x', 'acc_1', 'ten_1', 'x', '', 8, 7, 'fam_app')`)
    db.close()
    expect((await commandHere(["migrate"], { DATA_DIR })).code).toBe(0)
    const after = new Sqlite(`${DATA_DIR}/tollgate.db`, { readonly: true })
    expect(after.prepare("SELECT id, scope FROM tollgate_auth_families ORDER BY id").raw().all()).toEqual([
      ["fam_app", "profile email calls"],
      ["fam_own", "all"]
    ])
    expect(after.prepare("SELECT trusted FROM tollgate_auth_clients").raw().all()).toEqual([[0]])
    expect(after.prepare("SELECT hash, expires_at, used_at FROM tollgate_auth_codes").raw().all()).toEqual([
      ["open", 0, null],
      ["used", 8, 7]
    ])
    after.close()
  })

  it("waits for a service of the earlier version to stop, whichever command wants it", async () => {
    const { DATA_DIR, db } = await older()
    db.close()
    const serving = new Sqlite(`${DATA_DIR}/tollgate.db.lock`)
    serving.exec("BEGIN EXCLUSIVE")
    for (const words of [
      ["migrate"],
      ["verify"],
      ["owed"],
      ["key", "revoke", "--tenant", "t", "--id", "x"],
      ["grant", "--tenant", "ten_x", "--amount", "1"]
    ]) {
      const refused = await command(words, { DATA_DIR })
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("an earlier version is using it")])
    }
    const before = new Sqlite(`${DATA_DIR}/tollgate.db`, { readonly: true })
    expect(before.prepare("SELECT max(migration_id) AS id FROM tollgate_migrations").get()).toEqual({ id: 11 })
    before.close()
    expect((await command(["backup", "--to", `${DATA_DIR}/copy.db`], { DATA_DIR })).code).toBe(0)
    serving.close()
    expect((await commandHere(["verify"], { DATA_DIR })).stdout).toContain("every invariant of the books holds")
  })

  it("leaves alone what a host has that refers to our tables", async () => {
    const { db } = await older()
    const file = db.name
    db.exec(`INSERT INTO tollgate_usage_records VALUES
        (1, 'use_1', 'ten_ada', 1, 1, 'acc_ada', NULL, 'tool', 'x', 'x', 'p', 0, 0, 0, 0, 0, 0, 'none', 0, 1, NULL, 'bil_ada', 'ten_ada', 'own', 'own', NULL);
      CREATE TABLE notes (text TEXT, usage_id TEXT REFERENCES tollgate_usage_records (id) ON DELETE CASCADE);
      INSERT INTO notes VALUES ('dear', 'use_1');
      CREATE VIEW costs AS SELECT id, cost FROM tollgate_usage_records`)
    db.close()
    const settings = await Effect.runPromise(
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* migrate(undefined)
        return [yield* sql`PRAGMA foreign_keys`, yield* sql`PRAGMA legacy_alter_table`]
      }).pipe(Effect.provide(SqliteClient.layer({ filename: file })))
    )
    expect(settings).toEqual([[{ foreign_keys: 1 }], [{ legacy_alter_table: 0 }]])
    const after = new Sqlite(file)
    expect(after.prepare("SELECT * FROM notes").raw().all()).toEqual([["dear", "use_1"]])
    expect(after.prepare("SELECT * FROM costs").raw().all()).toEqual([["use_1", 0]])
    expect(after.pragma("foreign_key_check")).toEqual([])
    after.exec("DELETE FROM tollgate_usage_records")
    expect(after.prepare("SELECT * FROM notes").all()).toEqual([])
    after.close()
  })

  it("that fails leaves the file as it was, and the start refused with the reason", async () => {
    const { DATA_DIR, db } = await older()
    // In the way of the last statements of the migration.
    db.exec("CREATE TABLE tollgate_usage_records_next (x)")
    db.close()
    const failed = await command(["serve"], { DATA_DIR, PORT: "0" })
    expect(failed.code).toBe(1)
    expect(failed.stderr).toContain("could not be upgraded and is unchanged")
    expect(failed.stderr).toContain("tollgate_usage_records_next already exists")
    const after = new Sqlite(`${DATA_DIR}/tollgate.db`, { readonly: true })
    expect(after.prepare("SELECT name FROM sqlite_master WHERE name = 'tollgate_usage_dimensions'").all()).toEqual([])
    expect(after.prepare("SELECT max(migration_id) AS id FROM tollgate_migrations").get()).toEqual({ id: 11 })
    after.close()
  })

  it("never serves a file of a newer version", async () => {
    const { DATA_DIR, db } = await older()
    db.exec("INSERT INTO tollgate_migrations (migration_id, name) VALUES (99, 'future')")
    db.close()
    const refused = await command(["serve"], { DATA_DIR, PORT: "0" })
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("written by a newer version")])
    expect(existsSync(snapshotOf(DATA_DIR))).toBe(false)
  })
})
