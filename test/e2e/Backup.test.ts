/** The drill: a copy while calls go on, a loss, the copy in its place; and what upgrades do to old, new and broken files. */
import Sqlite from "better-sqlite3"
import { existsSync, rmSync, writeFileSync } from "node:fs"
import { afterAll, describe, expect, it } from "vitest"
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

describe("a backup", () => {
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
    expect([copied.code, copied.stdout]).toEqual([0, expect.stringContaining("keep")])
    expect((await command(["backup", "--to", `${DATA_DIR}/copy.db`], { DATA_DIR })).stderr).toContain("there already")
    // Nobody's database is replaced under them.
    const refused = await command(["restore", "--from", `${DATA_DIR}/copy.db`], { DATA_DIR })
    expect(refused.code).toBe(1)
    await service.end()

    for (const name of ["tollgate.db", "tollgate.db-wal", "tollgate.db-shm"])
      rmSync(`${DATA_DIR}/${name}`, { force: true })
    const restored = await command(["restore", "--from", `${DATA_DIR}/copy.db`], { DATA_DIR })
    expect([restored.code, restored.stderr]).toEqual([0, ""])
    expect((await command(["verify"], { DATA_DIR })).stdout).toContain("every invariant of the books holds")
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
    const nonsense = await command(["restore", "--from", `${DATA_DIR}/nonsense.db`], { DATA_DIR })
    expect([nonsense.code, nonsense.stderr]).toEqual([1, expect.stringContaining("nonsense.db")])
    await command(["backup", "--to", `${DATA_DIR}/copy.db`], { DATA_DIR })
    const db = new Sqlite(`${DATA_DIR}/copy.db`)
    db.exec("UPDATE tollgate_ledger_accounts SET giftable = giftable + 1")
    db.close()
    const wrong = await command(["restore", "--from", `${DATA_DIR}/copy.db`], { DATA_DIR })
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining("is not whole")])
    expect((await command(["verify"], { DATA_DIR })).code).toBe(0)
  })
})

describe("an upgrade", () => {
  /** As an earlier version left it: without the last migrations. */
  const older = async () => {
    const DATA_DIR = folder()
    expect((await command(["migrate"], { DATA_DIR })).code).toBe(0)
    const db = new Sqlite(`${DATA_DIR}/tollgate.db`)
    db.exec(`DROP TABLE tollgate_contact_messages; DROP TABLE tollgate_auth_clients; DROP TABLE tollgate_auth_codes;
      DROP TABLE tollgate_auth_client_tokens; DROP INDEX tollgate_auth_refresh_tokens_age;
      DELETE FROM tollgate_migrations WHERE migration_id = 11`)
    return { DATA_DIR, db }
  }

  it("puts a snapshot beside the file first", async () => {
    const { DATA_DIR, db } = await older()
    db.close()
    const done = await command(["migrate"], { DATA_DIR })
    expect([done.code, done.stdout]).toEqual([0, expect.stringContaining("0011_clients")])
    const snapshot = new Sqlite(`${DATA_DIR}/tollgate.db.before-0011`, { readonly: true })
    const tables = snapshot.prepare("SELECT name FROM sqlite_master WHERE name = 'tollgate_auth_clients'").all()
    snapshot.close()
    expect(tables).toEqual([])
    expect((await command(["migrate"], { DATA_DIR })).stdout).toContain("up to date")
  })

  it("that fails leaves the file as it was, and the start refused with the reason", async () => {
    const { DATA_DIR, db } = await older()
    // In the way of the last statement of the migration.
    db.exec("CREATE TABLE tollgate_contact_messages (x)")
    db.close()
    const failed = await command(["serve"], { DATA_DIR, PORT: "0" })
    expect(failed.code).toBe(1)
    expect(failed.stderr).toContain("could not be brought up to date, and is as it was")
    expect(failed.stderr).toContain("tollgate_contact_messages already exists")
    const after = new Sqlite(`${DATA_DIR}/tollgate.db`, { readonly: true })
    expect(after.prepare("SELECT name FROM sqlite_master WHERE name = 'tollgate_auth_clients'").all()).toEqual([])
    expect(after.prepare("SELECT max(migration_id) AS id FROM tollgate_migrations").get()).toEqual({ id: 10 })
    after.close()
  })

  it("never serves a file of a newer version", async () => {
    const { DATA_DIR, db } = await older()
    db.exec("INSERT INTO tollgate_migrations (migration_id, name) VALUES (99, 'future')")
    db.close()
    const refused = await command(["serve"], { DATA_DIR, PORT: "0" })
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("made by a newer version")])
    expect(existsSync(`${DATA_DIR}/tollgate.db.before-0011`)).toBe(false)
  })
})
