/** A PostgreSQL database that cannot be used: one sentence for whoever runs a command, without the password, and exit code 1. */
import { SqlClient } from "@effect/sql/SqlClient"
import { ConfigProvider, Effect } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer as createHttpServer } from "node:http"
import { createServer } from "node:net"
import type { AddressInfo, Server as SocketServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { environment } from "../../src/app/Environment.ts"
import * as Engine from "../../src/storage/engine/Engine.ts"
import type { PostgresDatabase } from "../../src/storage/database/Location.ts"
import { migrationsTable } from "../../src/storage/database/Unusable.ts"
import * as Client from "../../src/storage/postgres/Client.ts"
import { base, indexes } from "../../src/storage/postgres/Schema.ts"
import { commandHere } from "../support/CommandLine.ts"
import { freePort } from "../support/Service.ts"
import { asked, startServer } from "../support/postgres.ts"
import type { Server } from "../support/postgres.ts"

const folder = mkdtempSync(join(tmpdir(), "tollgate-"))
let server: Server

const ask = async (...texts: ReadonlyArray<string>) => {
  for (const text of texts) await askOf(server.url, text)
}
const askOf = (url: string, text: string) => asked(url, (client) => client.query(text))

beforeAll(async () => {
  server = await startServer(["fsync=off"])
  await ask(
    "CREATE DATABASE good",
    "CREATE DATABASE newer",
    "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1'",
    "CREATE DATABASE careless",
    "ALTER DATABASE careless SET synchronous_commit = off",
    "CREATE DATABASE readable",
    "ALTER DATABASE readable SET default_transaction_read_only = on",
    "CREATE USER guest PASSWORD 'hunter2'",
    "CREATE USER outcast PASSWORD 'hunter2'",
    "CREATE DATABASE foreign_tables",
    "CREATE DATABASE closed",
    "CREATE DATABASE other",
    "REVOKE CONNECT ON DATABASE closed FROM public"
  )
  await askOf(
    urlOf({ database: "newer" }),
    `CREATE TABLE ${migrationsTable} (migration_id integer PRIMARY KEY, created_at timestamptz, name text);
     INSERT INTO ${migrationsTable} VALUES (9999, now(), 'later')`
  )
  await askOf(urlOf({ database: "other" }), `CREATE TABLE ${migrationsTable} (id integer)`)
  await askOf(
    urlOf({ database: "foreign_tables" }),
    `CREATE TABLE ${migrationsTable} (migration_id integer PRIMARY KEY, created_at timestamptz, name text);
     GRANT CREATE ON SCHEMA public TO guest`
  )
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

const urlOf = (
  to: { user?: string; password?: string; host?: string; port?: number; database?: string; search?: string } = {}
): string => {
  const url = new URL(server.url)
  if (to.user !== undefined) url.username = to.user
  if (to.password !== undefined) url.password = to.password
  if (to.host !== undefined) url.hostname = to.host
  if (to.port !== undefined) url.port = `${to.port}`
  url.pathname = `/${to.database ?? "good"}`
  return url.href + (to.search ?? "")
}

/** What a command says that cannot use its database. */
const refusal = async (DATABASE_URL: string, command: ReadonlyArray<string> = ["migrate"]): Promise<string> => {
  const { code, stderr } = await commandHere(command, { DATA_DIR: folder, DATABASE_URL, PORT: "0" })
  // What is wrong with the environment is a line for each entry, below one that says so.
  expect([code, stderr.trimEnd().split("\n").length]).toEqual([1, stderr.includes("DATABASE_URL") ? 2 : 1])
  expect(stderr).not.toMatch(/hunter2|postgres:postgres@| at .*\.[jt]s/)
  return stderr
}

const listening = async <A extends SocketServer>(one: A): Promise<A & { readonly port: number }> => {
  await new Promise<void>((done) => one.listen(0, "127.0.0.1", done))
  const { port } = one.address() as AddressInfo
  return Object.assign(one, { port })
}
const closed = (one: SocketServer) => new Promise<void>((done) => one.close(() => done()))

describe("a PostgreSQL database that cannot be used", () => {
  it.each<[string, () => string | Promise<string>, RegExp]>([
    [
      "an address without a database",
      () => "postgres://user:hunter2@127.0.0.1/",
      /DATABASE_URL: must be postgres:\/\/user/
    ],
    ["another scheme", () => "mysql://user:hunter2@127.0.0.1/x", /DATABASE_URL: must be sqlite:<path/],
    [
      "an address that is none",
      () => "postgres://user:hunter2@127.0.0.1:port/x",
      /DATABASE_URL: must be postgres:\/\/user/
    ],
    ["a password that is not encoded", () => "postgres://user:hunter#2@127.0.0.1/x", /write .* as %25 %23 %2F %3F/],
    [
      "a user that is not encoded",
      () => urlOf().replace("//postgres:", "//post%gres:"),
      /post%gres@.* rejects this user/
    ],
    [
      "a misspelt word of TLS",
      () => urlOf({ search: "?sslmod=require" }),
      /DATABASE_URL: sslmod is unknown: the TLS options/
    ],
    ["tables of another program", () => urlOf({ database: "other" }), /is not as this service left it/],
    ["a wrong password", () => urlOf({ password: "hunter2" }), /rejects this user/],
    ["an unknown user", () => urlOf({ user: "nobody", password: "hunter2" }), /rejects this user/],
    ["a host that is not known", () => urlOf({ host: "nowhere.invalid" }), /the host of .* is unknown/],
    ["a port that is closed", async () => urlOf({ port: await freePort() }), /cannot connect to /],
    ["a database that is not there", () => urlOf({ database: "missing" }), /the database does not exist/],
    ["a database of a newer version", () => urlOf({ database: "newer" }), /newer version \(migration 9999/],
    ["a user who may make no tables", () => urlOf({ user: "guest", password: "hunter2" }), /GRANT CREATE ON SCHEMA/],
    [
      "a user who may not connect",
      () => urlOf({ user: "outcast", password: "hunter2", database: "closed" }),
      /this user lacks a required permission/
    ],
    [
      "a user who may not read the tables of another",
      () => urlOf({ user: "guest", password: "hunter2", database: "foreign_tables" }),
      /its user may not read \(tollgate_migrations\): use the user who created them/
    ],
    ["a database that is read only", () => urlOf({ database: "readable" }), /a standby or read-only/],
    ["a database that may lose commits", () => urlOf({ database: "careless" }), /synchronous_commit = off/],
    ["a database of another encoding", () => urlOf({ database: "latin" }), /ENCODING 'UTF8'/],
    ["TLS where there is none", () => urlOf({ search: "?sslmode=require" }), /does not offer TLS/]
  ])("is refused: %s", async (_, url, words) => {
    expect(await refusal(await url())).toMatch(words)
  })

  it.each([
    ["DATABASE_READERS", "0", "must be a whole number from 1 to 1000"],
    ["DATABASE_READERS", "8.5", "must be a whole number from 1 to 1000"],
    ["DATABASE_WRITERS", "33", "must be a whole number from 1 to 32"],
    ["DATABASE_CONNECT_TIMEOUT", "-1", "must be a whole number from 1 to 600"],
    ["DATABASE_STATEMENT_TIMEOUT", "5s", "must be a whole number from 1 to 86400"]
  ])("is refused with %s=%s", async (name, value, rule) => {
    const { code, stderr } = await commandHere(["migrate"], { DATA_DIR: folder, DATABASE_URL: urlOf(), [name]: value })
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${name}: ${rule}`)])
  })

  it("is read by as many connections, and for as long, as the environment says", async () => {
    const [DATA_DIR, DATABASE_URL] = [folder, urlOf()]
    const env = { DATA_DIR, DATABASE_URL, DATABASE_READERS: "3", DATABASE_STATEMENT_TIMEOUT: "7" }
    const { database } = await Effect.runPromise(
      Effect.withConfigProvider(environment, ConfigProvider.fromMap(new Map(Object.entries(env))))
    )
    const held = await Effect.runPromise(
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const one = sql<{
          pid: number
          timeout: string
        }>`SELECT current_setting('statement_timeout') AS timeout, pg_backend_pid() AS pid, pg_sleep(0.2)::text`
        return yield* Effect.all(
          Array.from({ length: 12 }, () => one),
          { concurrency: "unbounded" }
        )
      }).pipe(Effect.provide(Client.layer(Engine.settingsOf(database as PostgresDatabase))))
    )
    expect(new Set(held.flat().map(({ pid }) => pid)).size).toBe(3)
    expect(new Set(held.flat().map(({ timeout }) => timeout))).toEqual(new Set(["7s"]))
  })

  it("is refused where an HTTP server listens", async () => {
    const http = await listening(createHttpServer((_, response) => response.end("hello")))
    expect(await refusal(urlOf({ port: http.port }))).toMatch(/the server at .*PostgreSQL/)
    await closed(http)
  })

  it("is refused where somebody listens who says nothing", async () => {
    const sockets: Array<{ destroy: () => void }> = []
    const silent = await listening(createServer((socket) => sockets.push(socket)))
    expect(await refusal(urlOf({ port: silent.port }))).toMatch(/did not respond within 5 s/)
    for (const socket of sockets) socket.destroy()
    await closed(silent)
  })

  it("is refused by every command alike", async () => {
    const url = urlOf({ database: "missing" })
    for (const command of [["serve"], ["migrate"], ["verify"], ["owed"], ["client", "list"]])
      expect([command, await refusal(url, command)]).toEqual([command, expect.stringContaining("the database does not exist")])
  })

  it("is refused by whoever writes to it, where its user may only read", async () => {
    await ask("CREATE DATABASE readers", "CREATE USER reader PASSWORD 'hunter2'")
    const url = urlOf({ database: "readers" })
    expect(await commandHere(["migrate"], { DATA_DIR: folder, DATABASE_URL: url })).toMatchObject({ code: 0 })
    await askOf(url, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader; GRANT CREATE ON SCHEMA public TO reader")
    const reader = urlOf({ database: "readers", user: "reader", password: "hunter2" })
    for (const command of [["serve"], ["verify"]])
      expect([command, await refusal(reader, command)]).toEqual([
        command,
        expect.stringMatching(
          /^tollgate: postgres:\/\/reader@.*: this user lacks a required permission \(permission denied/
        )
      ])
  })

  it("is brought up to date from where an earlier version left it, which goes on to write meanwhile", async () => {
    await ask("CREATE DATABASE earlier")
    const url = urlOf({ database: "earlier" })
    for (const text of base) await askOf(url, text)
    const insert = (n: number) => `INSERT INTO tollgate_usage_records VALUES
      (${n}, 'use_${n}', 'ten', ${n}, 1, 1, 0, 0, 0, 0, 0, 0, 'none', 0, 1, NULL, NULL)`
    await askOf(
      url,
      `CREATE TABLE ${migrationsTable} (migration_id integer PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now(), name text);
       INSERT INTO ${migrationsTable} VALUES (1, now(), 'base');
       ${insert(1)}`
    )
    const done = await commandHere(["migrate"], { DATA_DIR: folder, DATABASE_URL: url })
    expect([done.code, done.stdout]).toEqual([0, expect.stringContaining("0002_token_details")])
    for (const { name } of indexes) expect(done.stdout).toContain(`built the index ${name} in `)
    await askOf(url, insert(2))
    await askOf(
      url,
      "DO $$ BEGIN ASSERT (SELECT count(*) = 2 FROM tollgate_usage_records WHERE token_details IS NULL); END $$"
    )
  })

  it("is migrated once, and then there is nothing to do", async () => {
    const migrate = () => commandHere(["migrate"], { DATA_DIR: folder, DATABASE_URL: urlOf() })
    expect(await migrate()).toMatchObject({ code: 0, stderr: "" })
    expect(await migrate()).toMatchObject({ code: 0, stderr: "" })
    expect(await commandHere(["verify"], { DATA_DIR: folder, DATABASE_URL: urlOf() })).toMatchObject({ code: 0 })
  })
})
