/** What an operator meets: files and whose they are, a secret that is lost, databases that cannot be used, and the command line. */
import * as Migrator from "@effect/sql/Migrator"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import Sqlite from "better-sqlite3"
import { Effect } from "effect"
import { spawn, spawnSync } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { migrations } from "../../src/storage/sqlite/Sql.ts"
import { commandHere } from "../support/CommandLine.ts"
import { describeSqlite, isPostgres } from "../support/database.ts"
import { command, environmentOf, freePort, freshFolder, root, start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"
import * as Tables from "../support/tables.ts"

const folders: Array<string> = []
const folder = (): string => {
  const made = freshFolder()
  folders.push(made)
  return made
}
const running: Array<Service> = []
const begin = async (...args: Parameters<typeof start>): Promise<Service> => {
  const service = await start(...args)
  running.push(service)
  return service
}
afterAll(async () => {
  for (const service of running) await service.end("SIGKILL")
  for (const one of folders) rmSync(one, { recursive: true, force: true })
})

/** A data folder as a day of service leaves it, and who used it. */
let used: string
let ada: Person
let bob: Person
let key: string
let pending: string
beforeAll(async () => {
  used = folder()
  const service = await begin({ folder: used })
  ada = await service.signIn("ada@example.com", { name: "Ada" })
  bob = await service.signIn("bob@example.com", { name: "Bob" })
  key = await service.key(ada)
  await service.control("/credit", { tenant_id: ada.tenant_id, amount: 10, source: "purchase" })
  await service.call("/v1/chat/completions", {
    token: key,
    json: { model: "sandbox-small", messages: [{ role: "user", content: "hello there" }] }
  })
  const sent = await service.call(`/v1/tenants/${ada.tenant_id}/billing/transfers`, {
    token: ada.token,
    headers: { "idempotency-key": "key-0123456789-abcdef" },
    json: { amount: 2, recipient_email: bob.email, kind: "gift" }
  })
  pending = sent.body.result.id
  const team = (await service.call("/v1/tenants", { token: ada.token, json: { name: "Acme 100%" } })).body.result.id
  await service.call(`/v1/tenants/${team}/invites`, { token: ada.token, json: { email: bob.email, role: "member" } })
  while (!service.stdout.join("").includes("/v1/usage")) await new Promise((resolve) => setTimeout(resolve, 20))
  await service.end()
})

/** A copy of it, and of its database. */
const copy = async (): Promise<string> => {
  const made = folder()
  cpSync(used, made, { recursive: true })
  await Tables.copy(used, made)
  return made
}

const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8)

/** A refusal: exit code 1, and one plain sentence on stderr. */
const refusal = async (
  args: ReadonlyArray<string>,
  env: Record<string, string>,
  execute = commandHere
): Promise<string> => {
  const { code, stderr } = await execute(args, { PORT: "0", ...env })
  expect([args, code, stderr]).toEqual([args, 1, expect.stringMatching(/^tollgate: .+\n$/)])
  expect(stderr).not.toMatch(/^\s+at |\.[jt]s:\d|Error:/m)
  return stderr
}

describeSqlite("files", () => {
  it("are for the service's own user, and become so where they were not", async () => {
    const DATA_DIR = await copy()
    const wide = ["tollgate.db", "secret", "demo.json", "sandbox-issuer.json"]
    chmodSync(DATA_DIR, 0o755)
    for (const name of wide) chmodSync(join(DATA_DIR, name), 0o644)
    const service = await begin({ folder: DATA_DIR })
    const names = readdirSync(DATA_DIR)
    expect(names).toEqual(expect.arrayContaining(["tollgate.db-wal", "tollgate.db-shm", "tollgate.db.lock", ...wide]))
    expect(names.map((name) => [name, mode(join(DATA_DIR, name))])).toEqual(names.map((name) => [name, "600"]))
    expect(mode(DATA_DIR)).toBe("700")
    const said = service.stderr.join("")
    for (const name of [DATA_DIR, ...wide]) expect(said).toContain(name)
    await service.end()
    const again = await begin({ folder: DATA_DIR })
    expect(again.stderr.join("")).toBe("")
    await command(["backup", "--to", join(DATA_DIR, "copy")], { DATA_DIR })
    expect(mode(join(DATA_DIR, "copy"))).toBe("600")
    await again.end()
  })

  it("leave alone a folder that holds other folders, and what links lead to", async () => {
    const DATA_DIR = await copy()
    mkdirSync(join(DATA_DIR, "www"))
    chmodSync(DATA_DIR, 0o755)
    const elsewhere = join(folder(), "elsewhere")
    writeFileSync(elsewhere, "x")
    chmodSync(elsewhere, 0o644)
    symlinkSync(elsewhere, join(DATA_DIR, "demo.db"))
    const { code, stderr } = await commandHere(["verify"], { DATA_DIR })
    expect([code, mode(DATA_DIR), mode(elsewhere)]).toEqual([0, "755", "644"])
    expect(stderr).toContain("it also contains other folders")
  })

  const nobody = 54_321
  const reachable =
    process.getuid?.() === 0 &&
    spawnSync(process.execPath, ["-e", "require('node:fs').accessSync('node_modules')"], { cwd: root, uid: nobody })
      .status === 0

  it.runIf(reachable)("belong to the owner of the folder, whatever root does with them", async () => {
    const DATA_DIR = folder()
    chownSync(DATA_DIR, nobody, nobody)
    const backup = join(folder(), "backup.db")
    expect((await commandHere(["backup", "--to", backup], { DATA_DIR: used })).code).toBe(0)
    for (const round of [1, 2]) {
      const restored = await commandHere(["restore", "--from", backup], { DATA_DIR })
      expect([round, restored.code, restored.stderr]).toEqual([round, 0, ""])
    }
    cpSync(join(used, "secret"), join(DATA_DIR, "secret"))
    await commandHere(["grant", "--tenant", ada.tenant_id, "--amount", "1"], { DATA_DIR })
    const theirs = readdirSync(DATA_DIR).map((name) => [name, statSync(join(DATA_DIR, name)).uid])
    expect(theirs).toEqual(theirs.map(([name]) => [name, nobody]))
    const port = await freePort()
    const child = spawn(process.execPath, ["dist/main.js", "serve"], {
      cwd: root,
      uid: nobody,
      gid: nobody,
      env: { DATA_DIR, PORT: String(port) },
      stdio: ["ignore", "pipe", "inherit"]
    })
    const greeted = await new Promise<string>((resolve) => {
      let text = ""
      child.stdout.setEncoding("utf8").on("data", (more: string) => {
        text += more
        if (text.includes("/v1/usage")) resolve(text)
      })
      child.once("exit", (code) => resolve(`it ended with ${code}`))
    })
    expect(greeted).toContain("base URL")
    const answer = await fetch(`http://127.0.0.1:${port}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
    expect(answer.status).toBe(200)
    const ended = new Promise((resolve) => child.once("exit", resolve))
    child.kill("SIGTERM")
    expect(await ended).toBe(0)
  })
})

describe("a secret", () => {
  const noStart = (DATA_DIR: string, env: Record<string, string> = {}) => refusal(["serve"], { DATA_DIR, ...env })

  it("that is lost stops the start, with what to do, and is not replaced by chance", async () => {
    const DATA_DIR = await copy()
    renameSync(join(DATA_DIR, "secret"), join(DATA_DIR, "kept"))
    const said = await refusal(["serve"], { DATA_DIR }, command)
    expect(said).toContain("the deployment's secret is missing")
    expect(said).toContain("tollgate reseal")
    expect(said).not.toContain("changed")
    await refusal(["rotate-keys"], { DATA_DIR })
    expect(existsSync(join(DATA_DIR, "secret"))).toBe(false)
    expect((await commandHere(["verify"], { DATA_DIR })).code).toBe(0)
    expect((await commandHere(["key", "list", "--tenant", ada.tenant_id], { DATA_DIR })).stdout).toContain("svc-prod-")
    expect(await noStart(DATA_DIR, { TOLLGATE_SECRET: "another secret, and long enough for one" })).toContain(
      "TOLLGATE_SECRET is not the secret"
    )
    writeFileSync(join(DATA_DIR, "secret"), "ab".repeat(32), { mode: 0o600 })
    expect(await noStart(DATA_DIR)).toContain("secret is not the secret")
    writeFileSync(join(DATA_DIR, "secret"), "", { mode: 0o600 })
    expect(await noStart(DATA_DIR)).toContain("secret is empty")
    writeFileSync(join(DATA_DIR, "secret"), "abcdef", { mode: 0o600 })
    expect(await noStart(DATA_DIR)).toContain("secret is truncated")
    // Moved to the environment as it stood in the file.
    const TOLLGATE_SECRET = readFileSync(join(DATA_DIR, "kept"), "utf8")
    const service = await begin({ folder: DATA_DIR, env: { TOLLGATE_SECRET } })
    expect((await service.call("/v1/models", { token: key })).status).toBe(200)
    await service.end()
  })

  it("that is empty is refused before the first start too", async () => {
    const DATA_DIR = folder()
    writeFileSync(join(DATA_DIR, "secret"), "\n", { mode: 0o600 })
    expect(await noStart(DATA_DIR)).toContain("secret is empty")
  })

  it("is replaced by reseal: the books stay, keys and sign-ins start over", async () => {
    const DATA_DIR = await copy()
    expect(await refusal(["reseal", "--confirm"], { DATA_DIR })).toContain("the secret matches")
    const before = await begin({ folder: DATA_DIR })
    const balances = [await before.balance(ada), await before.balance(bob)]
    const ledger = await before.ledger(ada)
    const usage = await before.usage(ada)
    expect(await refusal(["reseal", "--confirm"], { DATA_DIR })).toMatch(/another process is serving|is served by/)
    await before.end()
    rmSync(join(DATA_DIR, "secret"))

    const planned = await commandHere(["reseal"], { DATA_DIR })
    expect([planned.code, planned.stderr]).toEqual([1, expect.stringContaining("nothing was changed")])
    expect(planned.stdout).toContain("2 API keys are deleted")
    await noStart(DATA_DIR)

    const done = await command(["reseal", "--confirm"], { DATA_DIR })
    expect([done.code, done.stderr]).toEqual([0, ""])
    for (const what of [
      "2 API keys",
      "sign-ins end",
      "signing keys",
      "links of 1 pending transfers",
      "1 open invitations"
    ])
      expect(done.stdout).toContain(what)
    // What a server holds is the operator's to copy before.
    if (!isPostgres) {
      const snapshot = readdirSync(DATA_DIR).find((name) => name.includes(".before-reseal-"))
      expect(done.stdout).toContain(snapshot)
      expect(mode(join(DATA_DIR, snapshot!))).toBe("600")
    }
    expect((await commandHere(["verify"], { DATA_DIR })).code).toBe(0)

    const service = await begin({ folder: DATA_DIR })
    expect((await service.call("/v1/models", { token: key })).status).toBe(401)
    expect((await service.call("/v1/me", { token: ada.token })).status).toBe(401)
    const refreshed = await service.call("/v1/auth/token", {
      json: { client_id: "sandbox-app", grant_type: "refresh_token", refresh_token: ada.refresh_token }
    })
    expect(refreshed.status).toBeGreaterThanOrEqual(400)
    const [again, other] = [await service.signIn(ada.email), await service.signIn(bob.email)]
    expect([again.account_id, other.account_id]).toEqual([ada.account_id, bob.account_id])
    expect([await service.balance(again), await service.balance(other)]).toEqual(balances)
    expect(await service.ledger(again)).toEqual(ledger)
    // The names of keys go with the keys.
    expect(await service.usage(again)).toEqual(usage.map((record) => ({ ...record, application_name: undefined })))
    const accepted = await service.call(`/v1/transfers/${pending}/accept`, { token: other.token, method: "POST" })
    expect([accepted.status, await service.balance(other)]).toEqual([200, balances[1]! + 2])
    const fresh = await service.key(again)
    expect((await service.call("/v1/models", { token: fresh })).status).toBe(200)
    // The sandbox's own demo key has ended with the others: its greeting names one that works.
    while (!service.stdout.join("").includes("/v1/usage")) await new Promise((resolve) => setTimeout(resolve, 20))
    const demo = /API key +(\S+)/.exec(service.stdout.join(""))![1]!
    expect((await service.call("/v1/models", { token: demo })).status).toBe(200)
    await service.end()
    expect((await commandHere(["verify"], { DATA_DIR })).code).toBe(0)
  })
})

describe("the books", () => {
  it("are verified, which is kept: --since goes on from there", async () => {
    const DATA_DIR = await copy()
    const said = async (...args: ReadonlyArray<string>) => {
      const { code, stdout } = await commandHere(["verify", ...args], { DATA_DIR })
      expect(code).toBe(0)
      return stdout
    }
    // The first is of everything.
    expect(await said("--since")).toMatch(/every invariant of the books holds\n$/)
    expect(await said("--since")).toMatch(
      /every invariant of the books holds for the rows added since \d{4}-.*Z, when they last held\n$/
    )
    expect(JSON.parse(await said("--json"))).toMatchObject({ whole: true, findings: [], since: null, kept: true })
    await Tables.ask(DATA_DIR, "UPDATE tollgate_ledger_amounts SET granted = granted + 1")
    const { code, stdout } = await commandHere(["verify", "--since"], { DATA_DIR })
    expect(code).toBe(1)
    expect(stdout).toContain("credit is neither made nor lost")
  })
})

describeSqlite("a file that cannot be used", () => {
  /** One of each kind, and the rest of those that only look for a database. */
  const kinds = [["serve"], ["verify"], ["migrate"], ["grant", "--tenant", "ten_x", "--amount", "1"]]
  const others = [
    ["owed"],
    ["tenants"],
    ["client", "list"],
    ["key", "list", "--tenant", "ten_x"],
    ["rotate-keys"],
    ["reseal", "--confirm"]
  ]

  it.each<[string, (file: string) => void, RegExp]>([
    ["empty", (file) => truncateSync(file, 0), /is empty/],
    ["cut short", (file) => truncateSync(file, 20_000), /is damaged or truncated/],
    ["cut to a few bytes", (file) => truncateSync(file, 50), /is not a SQLite database/],
    ["overwritten", (file) => writeFileSync(file, "no database ".repeat(10_000)), /is not a SQLite database/],
    [
      "of something else",
      (file) => {
        rmSync(file)
        const db = new Sqlite(file)
        db.exec("CREATE TABLE notes (text TEXT)")
        db.close()
        // It is not for us to say who may read it.
        chmodSync(file, 0o644)
      },
      /another program's database/
    ],
    [
      "of a newer version",
      (file) => {
        const db = new Sqlite(file)
        db.exec("INSERT INTO tollgate_migrations (migration_id, name) VALUES (999, 'future')")
        db.close()
      },
      /written by a newer version/
    ],
    [
      "a folder",
      (file) => {
        rmSync(file)
        mkdirSync(file)
      },
      /is a folder/
    ],
    [
      "gone, its log left behind",
      (file) => {
        rmSync(file)
        writeFileSync(`${file}-wal`, "what was not taken in", { mode: 0o600 })
      },
      /is missing, but .*-wal exists/
    ]
  ])("is refused in a sentence: %s", async (_, spoil, words) => {
    const DATA_DIR = await copy()
    const file = join(DATA_DIR, "tollgate.db")
    spoil(file)
    const { mode, size } = statSync(file, { throwIfNoEntry: false }) ?? {}
    for (const args of kinds) {
      expect(await refusal(args, { DATA_DIR }, args[0] === "serve" ? command : commandHere)).toMatch(words)
    }
    expect(statSync(file, { throwIfNoEntry: false }) ?? {}).toMatchObject({ ...(mode !== undefined && { mode, size }) })
  })

  it("says so where a table was taken out of it", async () => {
    const DATA_DIR = await copy()
    const db = new Sqlite(join(DATA_DIR, "tollgate.db"))
    db.exec("DROP TABLE tollgate_usage_by_payer")
    db.close()
    expect(await refusal(["verify"], { DATA_DIR })).toContain("no such table: tollgate_usage_by_payer")
  })

  it("finds pages that are damaged in the middle", async () => {
    const DATA_DIR = await copy()
    const file = join(DATA_DIR, "tollgate.db")
    const db = new Sqlite(file)
    const page = db.prepare("SELECT rootpage FROM sqlite_master WHERE name = 'tollgate_ledger_entries'").pluck().get()
    const size = db.pragma("page_size", { simple: true }) as number
    db.close()
    const bytes = readFileSync(file)
    bytes.fill(0xa5, ((page as number) - 1) * size, (page as number) * size)
    writeFileSync(file, bytes)
    const { code, stderr, stdout } = await commandHere(["verify"], { DATA_DIR })
    expect(code).toBe(1)
    expect(stdout + stderr).toMatch(/damaged|file: /)
    expect(stderr).not.toMatch(/ at .*\.js/)
  })

  it("is not made by a command that only looks for one", async () => {
    const DATA_DIR = join(folder(), "mistyped")
    for (const args of [["verify"], ...kinds.slice(3), ...others]) {
      const execute = args[0] === "verify" ? command : commandHere
      expect(await refusal(args, { DATA_DIR }, execute)).toContain(`there is no database at ${DATA_DIR}/tollgate.db`)
      expect(existsSync(DATA_DIR)).toBe(false)
    }
    const backup = ["backup", "--to", join(folder(), "b.db")]
    expect(await refusal(backup, { DATA_DIR })).toContain("there is no database")
    expect((await commandHere(["migrate"], { DATA_DIR })).code).toBe(0)
    expect((await commandHere(["verify"], { DATA_DIR })).code).toBe(0)
  })

  it.runIf(process.getuid?.() === 0)("is not blamed on another process where it may only be read", async () => {
    const DATA_DIR = await copy()
    /** As a user to whom permissions apply. */
    const bound = (args: ReadonlyArray<string>) =>
      spawnSync("setpriv", ["--bounding-set", "-all", "--", process.execPath, "dist/main.js", ...args], {
        cwd: root,
        env: { ...process.env, DATA_DIR, PORT: "0" },
        encoding: "utf8"
      })
    chmodSync(DATA_DIR, 0o500)
    for (const args of kinds) {
      const { status, stderr } = bound(args)
      expect([args, status, stderr]).toEqual([args, 1, expect.stringMatching(/^tollgate: .*may not write to/)])
      expect(stderr).not.toContain("another process")
    }
    chmodSync(DATA_DIR, 0o700)
    chmodSync(join(DATA_DIR, "tollgate.db"), 0o400)
    for (const args of kinds) {
      const { status, stderr } = bound(args)
      expect([args, status, stderr]).toEqual([args, 1, expect.stringMatching(/^tollgate: .*is not writable by this/)])
    }
    chmodSync(join(DATA_DIR, "tollgate.db"), 0o000)
    expect(bound(["verify"]).stderr).toMatch(/is not readable by this user/)
  })

  it("is named by a scheme or a path, never by a bare word", async () => {
    const DATA_DIR = folder()
    for (const DATABASE_URL of ["nonsense", "sqlite::memory:", "mysql://user:hunter2@host/db"]) {
      const said = await refusal0(["migrate"], { DATA_DIR, DATABASE_URL })
      expect(said).toContain("DATABASE_URL: must be sqlite:<path")
      expect(said).not.toContain("hunter2")
    }
    expect(existsSync(join(root, "nonsense"))).toBe(false)
    for (const [i, form] of ["sqlite:", "file://", ""].entries()) {
      const file = join(DATA_DIR, `${i}.db`)
      expect((await commandHere(["migrate"], { DATA_DIR, DATABASE_URL: form + file })).code).toBe(0)
      expect(existsSync(file)).toBe(true)
    }
  })

  /** A refusal of the environment, which is a line for each entry. */
  const refusal0 = async (args: ReadonlyArray<string>, env: Record<string, string>) => {
    const { code, stderr } = await commandHere(args, env)
    expect(code).toBe(1)
    return stderr
  }
})

describeSqlite("copies", () => {
  it("go nowhere but to a new file", async () => {
    const DATA_DIR = await copy()
    const to = (path: string) => refusal(["backup", "--to", path], { DATA_DIR })
    expect(await to(DATA_DIR)).toContain("is a folder")
    expect(await to(join(DATA_DIR, "tollgate.db"))).toContain("already exists")
    expect(await to(join(DATA_DIR, "tollgate.db-journal"))).toContain("SQLite uses the name")
    expect(await to(join(DATA_DIR, "no", "copy.db"))).toContain("does not exist")
    const before = readdirSync(DATA_DIR)
    // As on a full disk: the process may write no file of more than 64 KiB.
    const full = spawnSync(
      "prlimit",
      ["--fsize=65536", process.execPath, "dist/main.js", "backup", "--to", join(DATA_DIR, "copy.db")],
      { cwd: root, env: { ...process.env, DATA_DIR }, encoding: "utf8" }
    )
    expect([full.status, full.stderr]).toEqual([
      1,
      expect.stringMatching(/^tollgate: .*(disk is full|disk is failing)/)
    ])
    expect(readdirSync(DATA_DIR)).toEqual(before)
  })

  it("are put back only where they are whole, and are this service's", async () => {
    const DATA_DIR = await copy()
    const from = (path: string) => refusal(["restore", "--from", path], { DATA_DIR })
    expect(await from(join(DATA_DIR, "nowhere"))).toContain("does not exist")
    expect(await from(DATA_DIR)).toContain("is a folder")
    expect(await from(join(DATA_DIR, "tollgate.db"))).toContain("is the database itself")
    const empty = join(DATA_DIR, "empty")
    writeFileSync(empty, "")
    expect(await from(empty)).toContain("is empty")
    const blank = new Sqlite(join(DATA_DIR, "blank"))
    blank.pragma("journal_mode = WAL")
    blank.close()
    expect(await from(join(DATA_DIR, "blank"))).toContain("contains no books")
    const cut = join(DATA_DIR, "cut")
    cpSync(join(DATA_DIR, "tollgate.db"), cut)
    truncateSync(cut, 100_000)
    expect(await from(cut)).toMatch(/damaged|fails its checks/)
    expect((await commandHere(["verify"], { DATA_DIR })).code).toBe(0)
    expect(readdirSync(DATA_DIR).filter((name) => /restored|part/.test(name))).toEqual([])
  })

  it("lie beside a database whose upgrade was killed, which goes on where it was", async () => {
    const DATA_DIR = folder()
    const file = join(DATA_DIR, "tollgate.db")
    // As the first version left it, with enough in it for the upgrade to take a moment.
    const old = new Sqlite(file)
    const names = Object.keys(migrations)
    await Effect.runPromise(
      Migrator.make({})({
        loader: Migrator.fromRecord(Object.fromEntries(Object.entries(migrations).slice(0, 11)) as typeof migrations),
        table: "tollgate_migrations"
      }).pipe(Effect.provide(SqliteClient.layer({ filename: file })))
    )
    old.exec(`WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
      INSERT INTO tollgate_notifications_notices SELECT 'not_' || i, 'acc', 'k', 't', hex(randomblob(200)), '{}', i, NULL FROM n`)
    old.close()
    for (let round = 0; round < 3; round++) {
      const child = spawn(process.execPath, ["dist/main.js", "migrate"], {
        cwd: root,
        env: { ...process.env, DATA_DIR },
        stdio: "ignore"
      })
      const ended = new Promise((resolve) => child.once("exit", resolve))
      // While it copies, or while it changes: whichever it has come to.
      while (child.exitCode === null && !readdirSync(DATA_DIR).some((name) => name.includes(".before-")))
        await new Promise((resolve) => setTimeout(resolve, 1))
      await new Promise((resolve) => setTimeout(resolve, round * 30))
      child.kill("SIGKILL")
      await ended
    }
    expect((await command(["migrate"], { DATA_DIR })).code).toBe(0)
    const db = new Sqlite(file, { readonly: true })
    expect(db.prepare("SELECT count(*) FROM tollgate_migrations").pluck().get()).toBe(names.length)
    expect(db.prepare("SELECT count(*) FROM tollgate_notifications_notices").pluck().get()).toBe(60_000)
    expect(db.pragma("integrity_check", { simple: true })).toBe("ok")
    db.close()
    expect((await commandHere(["verify"], { DATA_DIR })).code).toBe(0)
  })

  it("replace a database that is damaged", async () => {
    const DATA_DIR = await copy()
    const backup = join(folder(), "backup.db")
    await command(["backup", "--to", backup], { DATA_DIR })
    writeFileSync(join(DATA_DIR, "tollgate.db"), "spoilt")
    const restored = await command(["restore", "--from", backup], { DATA_DIR })
    expect([restored.code, restored.stdout]).toEqual([0, expect.stringContaining(".replaced-")])
    expect((await commandHere(["verify"], { DATA_DIR })).code).toBe(0)
  })
})

describe("a configuration", () => {
  const say = async (text: string): Promise<string> => {
    const file = join(folder(), "tollgate.json")
    writeFileSync(file, text)
    const { code, stderr } = await commandHere(["serve", "--config", file], { DATA_DIR: folder(), PORT: "0" })
    expect([code, stderr.includes("hunter2")]).toEqual([1, false])
    return stderr
  }

  it("that does not fit is answered by entries and rules, never by what stands in it", async () => {
    const said = await say(
      JSON.stringify({
        upstreams: { main: { base_url: "ftp://hunter2", api_key: 7 } },
        models: [
          {
            id: "a",
            context_length: 10,
            max_output_tokens: "hunter2",
            price: { prompt_usd_per_million: "hunter2", completion_usd_per_million: -1 },
            upstreams: [{ upstream: "main" }]
          }
        ],
        payments: { processor: "stripe", secret_key: ["hunter2"], bogus: "hunter2" },
        mail: { host: "h", from: "hunter2" },
        oauth_clients: [{ client_id: "x", name: "X", redirect_uris: ["javascript:hunter2()"] }]
      })
    )
    const lines = said.trim().split("\n").slice(1)
    expect(lines.map((line) => /^ {2}([\w.]+): \S/.exec(line)?.[1])).toEqual(
      expect.arrayContaining([
        "upstreams.main.base_url",
        "upstreams.main.api_key",
        "models.0.max_output_tokens",
        "models.0.price.prompt_usd_per_million",
        "models.0.price.completion_usd_per_million",
        "payments.secret_key",
        "payments.bogus",
        "mail.from",
        "oauth_clients.0.redirect_uris.0"
      ])
    )
    for (const line of lines) expect(line.length).toBeLessThan(250)
  })

  it("that is not JSON is answered by the place", async () => {
    expect(await say('{\n  "upstreams": { "a": { "api_key": hunter2 } }\n}')).toContain(
      "is not JSON: see line 2, column 36"
    )
    expect(await say("")).toContain("is not JSON")
    expect(await say('"hunter2"')).toContain("an object")
    expect(await say("[1]")).toContain("an object")
  })

  it("may begin with a byte order mark; a folder is none, nor is a file that is not there", async () => {
    expect(await say('\uFEFF{"unknown": "hunter2"}')).toContain("unknown: is unknown")
    const at = folder()
    expect(await refusal(["serve", "--config", at], {})).toContain("it is a folder")
    expect(await refusal(["serve", "--config", join(at, "x")], {})).toContain("there is no such file")
  })
})

/** Waits until the process, which cannot write, has the database of this folder open. */
const opened = async ({ pid }: ChildProcess, DATA_DIR: string): Promise<void> => {
  const fds = `/proc/${pid}/fd`
  const files = () => readdirSync(fds).map((name) => statSync(join(fds, name), { throwIfNoEntry: false })?.ino)
  const isOpen = async (): Promise<boolean> =>
    isPostgres
      ? (
          await Tables.ask(
            DATA_DIR,
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
          )
        ).length > 0
      : files().includes(statSync(join(DATA_DIR, "tollgate.db")).ino)
  while (!(await isOpen())) await new Promise((resolve) => setTimeout(resolve, 10))
}

describe("the command line", () => {
  it("explains itself, with the environment, and without colors where nobody sees them", async () => {
    const help = await command(["--help"])
    expect(help.code).toBe(0)
    // oxlint-disable-next-line no-control-regex -- it is what must not be there
    expect(help.stdout + help.stderr).not.toMatch(/\u001b/)
    const documented = [
      ...readFileSync(join(root, "src", "app", "guides", "configure.md"), "utf8").matchAll(/^\| `([A-Z_`, ]+)` +\|/gm)
    ]
    const variables = documented.flatMap(([, names]) => names!.split(/[`, ]+/))
    expect(variables).toContain("TOLLGATE_SECRET")
    for (const name of [...variables, "SANDBOX_PAYMENTS", "NO_COLOR"]) expect(help.stdout).toContain(name)
    for (const name of ["serve", "tenants", "reseal", "health"]) expect(help.stdout).toContain(name)
  })

  it("shows no colors in a terminal either, if they are not wanted", () => {
    const inTerminal = (env: Record<string, string>) =>
      spawnSync("script", ["-qec", `${process.execPath} dist/main.js --help`, "/dev/null"], {
        cwd: root,
        env: { ...process.env, TERM: "xterm", NO_COLOR: "", ...env },
        encoding: "utf8"
      }).stdout
    expect(inTerminal({})).toContain("\u001b[")
    expect(inTerminal({ NO_COLOR: "1" })).not.toContain("\u001b[")
  })

  it.each([
    [["bogus"], "tollgate has no command bogus; its commands are serve, quickstart, check, "],
    [["client", "creat"], "tollgate client has no command creat; its commands are create, list, revoke"],
    [["grant", "--tennant", "x"], "tollgate grant --help"],
    [["grant", "--tenant", "x"], "tollgate grant --help"],
    [["grant", "--tenant", "x", "--amount", "1", "--amount", "2"], "--amount was given more than once"],
    [["serve", "now"], "tollgate serve --help"]
  ])("refuses what it does not know, with where help is: %j", async (args, words) => {
    const { code, stderr } = await commandHere(args, { DATA_DIR: join(folder(), "none") })
    expect([code, stderr.split("\n").length < 5]).toEqual([1, true])
    expect(stderr).toContain(words)
  })

  it("names a typo in the environment by its rule", async () => {
    const { code, stderr } = await command(["verify"], { LOG_LEVEL: "loud", PORT: "http", DATA_DIR: used })
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/LOG_LEVEL: must be one of trace[^]*|PORT: must be a port[^]*/)
    ])
    expect(stderr).toContain("PORT: must be a port")
    expect(stderr).toContain("LOG_LEVEL: must be one of")
  })

  it("finds whom to grant", async () => {
    const find = async (...args: ReadonlyArray<string>) => {
      const { code, stdout } = await commandHere(["tenants", "--json", ...args], { DATA_DIR: used })
      expect(code).toBe(0)
      return JSON.parse(stdout) as { total: number; tenants: ReadonlyArray<Record<string, unknown>> }
    }
    expect((await find("--search", "ADA@exam")).tenants).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ id: ada.tenant_id, name: "Ada", owner_email: ada.email, status: "active" })
      ])
    )
    expect(await find("--search", "bob@example.com")).toMatchObject({ total: 1, tenants: [{ balance: "6" }] })
    expect(await find("--search", ada.tenant_id.slice(4, 30))).toMatchObject({ tenants: [{ id: ada.tenant_id }] })
    // What stands for anything in a pattern stands for itself here.
    expect(await find("--search", "100%")).toMatchObject({ total: 1, tenants: [{ name: "Acme 100%" }] })
    expect(await find("--search", "a_a")).toMatchObject({ total: 0 })
    const all = await find()
    expect(all.tenants).toHaveLength(all.total)
    expect((await find("--limit", "1")).tenants).toHaveLength(1)
    const shown = await commandHere(["tenants", "--limit", "1"], { DATA_DIR: used })
    expect(shown.stdout).toContain(`1 of ${all.total}`)
    expect((await commandHere(["tenants", "--limit", "0"], { DATA_DIR: used })).code).toBe(1)
  })

  it("speaks JSON to scripts", async () => {
    for (const args of [["owed"], ["verify"], ["client", "list"], ["key", "list", "--tenant", ada.tenant_id]]) {
      const { code, stdout } = await command([...args, "--json"], { DATA_DIR: used })
      expect([args, code, typeof JSON.parse(stdout)]).toEqual([args, 0, "object"])
    }
  })

  it("books no amount that is none, and credits a suspended tenant knowingly", async () => {
    const DATA_DIR = await copy()
    const grant = (...args: ReadonlyArray<string>) =>
      commandHere(["grant", "--tenant", ada.tenant_id, ...args], { DATA_DIR })
    const before = (await grant("--amount", "0.000000001")).stdout
    expect(before).toContain("granted 0.000000001 credits")
    for (const amount of ["0", "1000000000.000000001", "0.0000000001", "1,5"]) {
      const { code, stderr } = await grant("--amount", amount)
      expect([amount, code, stderr]).toEqual([amount, 1, expect.stringContaining("--amount")])
    }
    const much = await grant("--amount", "1000000000")
    expect([much.code, much.stderr]).toEqual([
      1,
      expect.stringContaining("the balance would exceed the ledger's maximum")
    ])
    expect((await grant("--amount", "1", "--note", "x".repeat(5_000))).stderr).toContain("--note")
    await Tables.ask(
      DATA_DIR,
      `UPDATE tollgate_ledger_accounts SET status = 'suspended' WHERE tenant_id = '${ada.tenant_id}'`
    )
    expect((await grant("--amount", "1")).stdout).toContain("is suspended")
    expect((await commandHere(["verify"], { DATA_DIR })).code).toBe(0)
  })

  it("books a purchase once, and says why another is not", async () => {
    const DATA_DIR = await copy()
    const words = (tenant: string, amount: string) =>
      ["purchase", "--tenant", tenant, "--amount", amount, "--reference", "INV-7"] as const
    const purchase = (tenant: string, amount: string) => commandHere(words(tenant, amount), { DATA_DIR })
    expect((await purchase("ten_nobody", "5")).stderr).toContain("no such tenant")
    expect((await purchase(bob.tenant_id, "1000000000")).stderr).toContain("would exceed the ledger's maximum")
    expect((await purchase(bob.tenant_id, "5")).stdout).toContain("recorded a purchase of 5 credits")
    expect((await purchase(bob.tenant_id, "5")).stderr).toContain("is already recorded")
    // Locked from outside: neither blamed on the tenant nor on the reference.
    const release = await Tables.hold(DATA_DIR)
    const locked = await command(words(ada.tenant_id, "5"), { DATA_DIR })
    expect([locked.code, locked.stderr]).toEqual([
      1,
      expect.stringMatching(/^tollgate: .*(not writable|is locked).*\n$/)
    ])
    await release()
    expect((await commandHere(["verify"], { DATA_DIR })).code).toBe(0)
  })

  it("registers a client once, at addresses that lead somewhere", async () => {
    const DATA_DIR = await copy()
    const create = (...args: ReadonlyArray<string>) => commandHere(["client", "create", ...args], { DATA_DIR })
    const oauth = ["--kind", "oauth", "--name", "Desk"]
    const made = await create(
      ...oauth,
      "--redirect-uri",
      "https://a.example/cb",
      "--redirect-uri",
      "com.example.app:/cb"
    )
    expect([made.code, made.stdout]).toEqual([0, expect.stringMatching(/^oauth-[0-9a-f]{24}\n$/)])
    const again = await create(...oauth, "--redirect-uri", "https://a.example/cb")
    expect([again.code, again.stderr]).toEqual([
      1,
      expect.stringContaining(`${made.stdout.trim()} already has this name`)
    ])
    for (const uri of ["javascript:alert(1)", "https://a.example/#x"]) {
      const refused = await create("--kind", "oauth", "--name", "Other", "--redirect-uri", uri)
      expect([uri, refused.code]).toEqual([uri, 1])
    }
    expect((await create("--kind", "web", "--name", "Site", "--redirect-uri", "https://a.example")).code).toBe(1)
    expect((await create("--kind", "app", "--name", " ")).code).toBe(1)
  })

  it("does not mind a reader who has seen enough", async () => {
    const { status, stderr } = spawnSync(
      "bash",
      ["-c", `set -o pipefail; ${process.execPath} dist/main.js tenants | true`],
      { cwd: root, env: await environmentOf({ DATA_DIR: used }), encoding: "utf8" }
    )
    expect([status, stderr]).toEqual([0, ""])
  })

  it("has not done what it was stopped in, and says so by its exit code", async () => {
    const DATA_DIR = await copy()
    // Somebody holds the tables, so that the command waits.
    const release = await Tables.hold(DATA_DIR)
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      const child = spawn(
        process.execPath,
        ["dist/main.js", "grant", "--tenant", ada.tenant_id, "--amount", "1", "--note", "stopped"],
        { cwd: root, env: await environmentOf({ DATA_DIR }), stdio: "ignore" }
      )
      const ended = new Promise((resolve) => child.once("exit", resolve))
      await opened(child, DATA_DIR)
      child.kill(signal)
      expect([signal, await ended]).not.toEqual([signal, 0])
    }
    await release()
    expect((await commandHere(["verify"], { DATA_DIR })).code).toBe(0)
  })

  it("asks the service whether it is well", async () => {
    const service = await begin({ folder: await copy() })
    const well = await command(["health"], { PORT: String(service.port), HOST: "0.0.0.0" })
    expect([well.code, well.stdout]).toEqual([0, expect.stringContaining("returned 200")])
    await service.end()
    expect(await refusal(["health"], { PORT: String(service.port) })).toContain("cannot connect to")
  })
})
