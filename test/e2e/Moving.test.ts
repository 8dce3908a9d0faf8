/** Books that move from a SQLite file to PostgreSQL and back: every row of them, whatever stops it on the way. */
import Sqlite from "better-sqlite3"
import { spawn } from "node:child_process"
import { hash } from "node:crypto"
import { cpSync, rmSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { commandHere } from "../support/CommandLine.ts"
import { asked, startServer } from "../support/postgres.ts"
import type { Server } from "../support/postgres.ts"
import { freshFolder, root, start } from "../support/Service.ts"

let server: Server
const folders: Array<string> = []
const folder = () => {
  const made = freshFolder()
  folders.push(made)
  return made
}

/** A deployment with something of everything. */
const used = folder()
const fileIn = (DATA_DIR: string) => join(DATA_DIR, "tollgate.db")

beforeAll(async () => {
  server = await startServer(["fsync=off"])
  await use(used)
  fill(fileIn(used))
})

afterAll(async () => {
  await server.stop()
  for (const one of folders) rmSync(one, { recursive: true, force: true })
})

const use = async (DATA_DIR: string) => {
  const service = await start({ folder: DATA_DIR, env: { DATABASE_URL: `sqlite:${fileIn(DATA_DIR)}` } })
  const ada = await service.signIn("ada@example.com")
  const bob = await service.signIn("bob@example.com")
  const key = await service.key(ada)
  for (let i = 0; i < 3; i++)
    await service.call("/v1/chat/completions", {
      token: key,
      headers: { "idempotency-key": `call-0123456789-${i}` },
      json: { model: "sandbox-small", messages: [{ role: "user", content: "hello there" }] }
    })
  const team = (await service.call("/v1/tenants", { token: ada.token, json: { name: 'A\tc\\m\ne "100%"' } })).body
    .result.id
  await service.call(`/v1/tenants/${team}/invites`, { token: ada.token, json: { email: bob.email, role: "member" } })
  await service.end()
}

/** What only long use brings: more rows than a slice has, amounts that are no JavaScript numbers, each kind of value, odd texts. */
const fill = (file: string) => {
  const db = new Sqlite(file)
  const entries = (account: string) => `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
    INSERT INTO tollgate_ledger_entries SELECT (SELECT max(seq) FROM tollgate_ledger_entries) + i, '${account}', i, 'credit',
      1000000000000001, i * 1000000000000001, 0, 'admin', 'x', 'x', 9000000000000 + i, iif(i = 1, NULL, (SELECT max(seq) FROM tollgate_ledger_entries) + i - 1) FROM n`
  db.exec(`
    INSERT INTO tollgate_ledger_accounts VALUES ('bil_big', 'ten_big', 900, 'active', 0, 0, NULL);
    ${entries("bil_big")};
    INSERT INTO tollgate_ledger_amounts SELECT 900, 0, max(balance), 0, 3000, max(seq) FROM tollgate_ledger_entries WHERE billing_account_id = 'bil_big';
    INSERT INTO tollgate_ledger_offsets SELECT 900, number, seq FROM tollgate_ledger_entries
      WHERE billing_account_id = 'bil_big' AND number % 64 = 0;
    INSERT INTO tollgate_payments_customers VALUES ('ten_big', 'cus_1');
    INSERT INTO tollgate_tenants_plans VALUES ('ten_big', 'team', 'past_due', 3, 1, 2);
    INSERT INTO tollgate_pooling_selections VALUES ('acc_1', NULL, 5), ('acc_2', '', 6);
    INSERT INTO tollgate_auth_clients VALUES ('oauth-1', 'oauth', 'Ω \u2028 🦀', '["https://desk.example/cb"]', 1, NULL, 0, 0);
    INSERT INTO tollgate_media_jobs VALUES ('med_1', 'call_1', 'acc_1', 'media', 'video', 'm', 'p', 'u', 'e', NULL, 'COMPLETED', NULL,
      9007199254740993, 'second', 1000000000000000001, 1, 1000000000000000000, 0.1, '{}', NULL, NULL, 0, 1, 2, 'ten_big', 'key:app_1'),
      ('med_2', 'call_2', 'acc_1', 'media', 'video', 'm', 'p', 'u', 'e', NULL, 'COMPLETED', NULL, 1, 'second', 1, 1, 1, 1e300, '{}', '\\N', NULL, 0, 1, 2, 'ten_big', ''),
      ('med_3', 'call_3', 'acc_1', 'media', 'video', 'm', 'p', 'u', 'e', NULL, 'COMPLETED', NULL, 1, 'second', 1, 1, 1, 5e-324, '{}', '', NULL, 0, 1, 2, NULL, NULL);
    INSERT INTO tollgate_idempotency_keys VALUES ('t', 'a', '', 'k', 'h', 'run_x', NULL, 200, '{}', x'000102ff5c0a', 1, 2),
      ('t', 'a', '', 'l', 'h', 'run_x', NULL, 200, '{}', x'', 1, 2);
    INSERT INTO tollgate_ledger_verifications VALUES (41, 1, 1, 0, 5, 0, 0, 0, 0);
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
      INSERT INTO tollgate_notifications_notices SELECT 'not_' || printf('%07d', i), 'acc_nobody', 'k', 'title ' || i, 'text', '{}', i, NULL FROM n`)
  db.close()
}

/** A copy of it. */
const deployment = (change?: (db: Sqlite.Database) => void): string => {
  const made = folder()
  cpSync(used, made, { recursive: true })
  if (change !== undefined) {
    const db = new Sqlite(fileIn(made))
    change(db)
    db.close()
  }
  return made
}

let databases = 0
/** An empty database on the server. */
const database = async (): Promise<string> => {
  const name = `moving_${++databases}`
  await asked(server.url, (client) => client.query(`CREATE DATABASE ${name}`))
  return server.url.replace(/postgres$/, name)
}

const environmentOf = (DATA_DIR: string) => ({ DATA_DIR, DATABASE_URL: `sqlite:${fileIn(DATA_DIR)}` })

const move = (DATA_DIR: string, to: string) => commandHere(["migrate", "--to", to], environmentOf(DATA_DIR))

const back = (DATA_DIR: string, from: string, file: string) =>
  commandHere(["migrate", "--to", `sqlite:${file}`], { DATA_DIR, DATABASE_URL: from })

/** Of each table how many rows it has, and a hash of all of them. */
const dump = (file: string): Readonly<Record<string, readonly [rows: number, hash: string]>> => {
  const db = new Sqlite(file, { readonly: true })
  db.defaultSafeIntegers()
  const tables = db
    .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'tollgate_migrations' ORDER BY name")
    .pluck()
    .all() as ReadonlyArray<string>
  const rows = Object.fromEntries(
    tables.map((name) => {
      const columns = db.prepare("SELECT name FROM pragma_table_info(?)").pluck().all(name)
      const all = db
        .prepare(`SELECT * FROM ${name} ORDER BY ${columns.join(", ")}`)
        .raw()
        .all()
      const text = JSON.stringify(all, (_, value) => (typeof value === "bigint" ? `${value}n` : value))
      return [name, [all.length, hash("sha256", text)] as const]
    })
  )
  db.close()
  return rows
}

/** A slow machine prints progress every five seconds. */
const withoutProgress = (stderr: string): string => stderr.replaceAll(/^.* after \d+ s\b.*\n/gm, "")

describe("migrate --to", () => {
  it("moves everything, and back", async () => {
    const DATA_DIR = deployment()
    const before = dump(fileIn(DATA_DIR))
    const url = await database()
    const moved = await move(DATA_DIR, url)
    expect([moved.code, withoutProgress(moved.stderr)]).toEqual([0, ""])
    expect(moved.stdout).toContain("are identical in both databases")
    expect(moved.stdout).toContain("every invariant of the books holds")
    expect(moved.stdout).toContain(`${DATA_DIR}/secret`)
    expect(dump(fileIn(DATA_DIR))).toEqual(before)

    const settled = await asked(url, async (client) => ({
      amounts: (await client.query("SELECT booked_at FROM tollgate_ledger_amounts WHERE account = 900")).rows,
      heads: (await client.query("SELECT count(*)::int FROM tollgate_usage_heads WHERE booked_at = 0")).rows,
      account: (await client.query("SELECT nextval('tollgate_ledger_accounts_seq')")).rows,
      verification: (
        await client.query(
          `INSERT INTO tollgate_ledger_verifications (at, whole, findings, millis, entry, record, world, revenue)
            VALUES (1, 1, 0, 0, 0, 0, 0, 0) RETURNING id`
        )
      ).rows,
      next: (
        await client.query(`SELECT nextval('tollgate_ledger_entries_seq') - (SELECT max(seq) FROM tollgate_ledger_entries) AS entry,
          nextval('tollgate_usage_records_seq') - (SELECT max(seq) FROM tollgate_usage_records) AS record,
          nextval(pg_get_serial_sequence('tollgate_usage_dimensions', 'number')) - (SELECT max(number) FROM tollgate_usage_dimensions) AS dimensions,
          nextval(pg_get_serial_sequence('tollgate_usage_tenants', 'number')) - (SELECT max(number) FROM tollgate_usage_tenants) AS tenant`)
      ).rows,
      undo: (await client.query("DELETE FROM tollgate_ledger_verifications WHERE at = 1 AND id = 42")).rowCount
    }))
    expect(settled).toEqual({
      amounts: [{ booked_at: "9000000003000" }],
      heads: [{ count: 0 }],
      account: [{ nextval: "901" }],
      verification: [{ id: "42" }],
      next: [{ entry: "1", record: "1", dimensions: "1", tenant: "1" }],
      undo: 1
    })

    const file = join(DATA_DIR, "back.db")
    const returned = await back(DATA_DIR, url, file)
    expect([returned.code, withoutProgress(returned.stderr)]).toEqual([0, ""])
    expect(dump(file)).toEqual(before)
    const ledgerHash = /sha256 \w{64}/
    expect(ledgerHash.exec(returned.stdout)![0]).toBe(ledgerHash.exec(moved.stdout)![0])
    expect((await commandHere(["verify"], { DATA_DIR, DATABASE_URL: `sqlite:${file}` })).code).toBe(0)
  })

  it("goes on where it was killed, unless the source was written to since; meanwhile nothing uses the copy", async () => {
    const DATA_DIR = deployment()
    const url = await database()
    await killed(DATA_DIR, url)
    const refused = await commandHere(["grant", "--tenant", "ten_big", "--amount", "1"], {
      DATA_DIR,
      DATABASE_URL: url
    })
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("is an unfinished copy of")])
    const served = await commandHere(["serve"], { DATA_DIR, DATABASE_URL: url, PORT: "0" })
    expect([served.code, served.stderr]).toEqual([1, expect.stringContaining("is an unfinished copy of")])
    const other = deployment()
    expect((await move(other, url)).stderr).toContain(`is an unfinished copy of ${fileIn(DATA_DIR)}`)
    const rest = await move(DATA_DIR, url)
    expect([rest.code, rest.stderr]).toEqual([0, "continuing the interrupted copy\n"])

    const again = await database()
    await killed(DATA_DIR, again)
    const db = new Sqlite(fileIn(DATA_DIR))
    db.exec("UPDATE tollgate_pooling_selections SET pinned = 'x'")
    db.close()
    const anew = await move(DATA_DIR, again)
    expect([anew.code, anew.stderr]).toEqual([0, expect.stringContaining("starting over")])
  })

  /** Copies, and is killed when some of the largest table is copied. */
  const killed = async (DATA_DIR: string, url: string) => {
    const child = spawn(process.execPath, ["dist/main.js", "migrate", "--to", url], {
      cwd: root,
      env: { ...process.env, ...environmentOf(DATA_DIR) }
    })
    const ended = new Promise((resolve) => child.once("close", resolve))
    const started = `SELECT 1 FROM tollgate_sql_copy WHERE name = 'tollgate_notifications_notices'`
    await asked(url, async (client) => {
      while ((await client.query(started).catch(() => ({ rowCount: 0 }))).rowCount === 0)
        expect(child.exitCode).toBe(null)
    })
    child.kill("SIGKILL")
    await ended
    const [mark] = await asked(
      url,
      async (client) => (await client.query(started.replace("SELECT 1", "SELECT value"))).rows
    )
    expect(JSON.parse(mark.value)).toMatchObject({ whole: false })
  }

  it("finds what differs, and leaves a copy that is not served", async () => {
    const DATA_DIR = deployment()
    const url = await database()
    await killed(DATA_DIR, url)
    await asked(url, async (client) => {
      await client.query(
        "UPDATE tollgate_ledger_entries SET description = 'y' WHERE billing_account_id = 'bil_big' AND number = 7"
      )
      await client.query("DELETE FROM tollgate_idempotency_keys WHERE key = 'l'")
    })
    const { code, stderr, stdout } = await move(DATA_DIR, url)
    expect([code, stderr]).toEqual([1, expect.stringContaining("so no service will use it")])
    expect(stdout).toMatch(/tollgate_ledger_entries seq=\d+: description differs in the copy/)
    expect(stdout).toContain("the ledger of bil_big contains 3000 entries")
    expect(stdout).toMatch(/tollgate_idempotency_keys contains \d+ rows, but its copy contains \d+/)
    const served = await commandHere(["verify"], { DATA_DIR, DATABASE_URL: url })
    expect(served.stderr).toContain("is an unfinished copy of")
  })

  it("puts another character in the place of one that PostgreSQL cannot hold, and says so", async () => {
    const DATA_DIR = deployment((db) => {
      db.exec("DELETE FROM tollgate_notifications_notices WHERE id > 'not_0000009'")
      db.exec("UPDATE tollgate_notifications_notices SET text = 'a' || char(0) || 'b' WHERE id <= 'not_0000002'")
    })
    const url = await database()
    const { code, stdout } = await move(DATA_DIR, url)
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining("tollgate_notifications_notices.text: replaced NUL characters")
    ])
    const rows = await asked(url, (client) =>
      client.query("SELECT DISTINCT text FROM tollgate_notifications_notices WHERE id < 'not_0000003'")
    )
    expect(rows.rows).toEqual([{ text: "a\uFFFDb" }])
  })

  it("refuses what is served, what holds books, and what is no move", async () => {
    const DATA_DIR = deployment((db) => db.exec("DELETE FROM tollgate_notifications_notices"))
    const env = environmentOf(DATA_DIR)
    const url = await database()
    const refusal = async (to: string, own: Record<string, string> = env) => {
      const { code, stderr } = await commandHere(["migrate", "--to", to], own)
      expect([code, stderr]).toEqual([1, expect.stringMatching(/^tollgate: .+\n$/)])
      return stderr
    }
    expect(await refusal(`sqlite:${DATA_DIR}/other.db`)).toContain("backup --to")
    expect(await refusal("elsewhere")).toContain("--to")
    expect(await refusal("postgres://nobody@127.0.0.1:1/x")).toContain("cannot connect to")
    expect(await refusal(url, environmentOf(folder()))).toContain("there is no database")

    const service = await start({ folder: DATA_DIR, env })
    expect(await refusal(url)).toContain("is serving")
    await service.end()
    expect((await move(DATA_DIR, url)).code).toBe(0)
    expect(await refusal(url)).toContain("already contains books")
    const moved = { DATA_DIR, DATABASE_URL: url }
    expect(await refusal(url, moved)).toContain("pg_dump")
    expect(await refusal(`sqlite:${fileIn(DATA_DIR)}`, moved)).toContain("already contains books")

    const node = await start({ folder: DATA_DIR, env: moved })
    expect(await refusal(`sqlite:${DATA_DIR}/back.db`, moved)).toContain("is served by")
    await node.end()
  })
})
