/**
 * Nodes in the test's process on one PostgreSQL database. Each has its own connections, writer, gate, outbox and lease. A test can change a node's
 * statements (a mistake) or cut them off (a lost connection, a kill).
 */
import { Clock, Context, Duration, Effect, Layer, Logger, LogLevel, ManagedRuntime, Redacted } from "effect"
import type { Client } from "pg"
import type { Socket } from "node:net"
import * as DeploymentSecret from "../../src/storage/secret/DeploymentSecret.ts"
import { Gate } from "../../src/books/gate/Gate.ts"
import { Payers } from "../../src/books/gate/Payers.ts"
import { Ledger } from "../../src/books/ledger/Ledger.ts"
import * as PostgresWriter from "../../src/books/ledger/write/PostgresWriter.ts"
import { CommitLimit } from "../../src/books/ledger/write/Submitting.ts"
import { RollupLagMax } from "../../src/books/ledger/rows/RollupLag.ts"
import { Outbox } from "../../src/people/mail/Outbox.ts"
import { connectionsPreset } from "../../src/storage/database/Location.ts"
import * as Connections from "../../src/storage/postgres/Client.ts"
import { Group } from "../../src/storage/postgres/Group.ts"
import { migrate } from "../../src/storage/postgres/Migrate.ts"
import { Runs } from "../../src/storage/engine/Runs.ts"
import { Mail } from "../../src/upstream/mail/Mail.ts"
import { asked, startServer } from "./postgres.ts"

/** A separate database with all migrations applied. */
export interface Database {
  readonly url: string
  readonly drop: () => Promise<unknown>
}

/** Starts a server that creates databases. */
export const startDatabases = async () => {
  const { stop, url } = await startServer(["fsync=off"])
  const urlOf = (database: string): string => {
    const one = new URL(url)
    one.pathname = `/${database}`
    return one.href
  }
  await asked(url, (client) => client.query("CREATE DATABASE books"))
  const settings = { ...connectionsPreset, url: Redacted.make(urlOf("books")), readers: 1, writers: 1 }
  await Effect.runPromise(Effect.provide(migrate("books"), Connections.layer(settings)))
  let made = 0
  const fresh = async (): Promise<Database> => {
    const name = `books_${made++}`
    await asked(url, (client) => client.query(`CREATE DATABASE ${name} TEMPLATE books`))
    return {
      url: urlOf(name),
      drop: () => asked(url, (client) => client.query(`DROP DATABASE ${name} WITH (FORCE)`))
    }
  }
  return { url, stop, fresh }
}
export type Databases = Awaited<ReturnType<typeof startDatabases>>

/** Changes the text of statements, as a programming mistake would. */
export type Mistake = (text: string) => string
export const none: Mistake = (text) => text

/** A fault at one statement of a node's writer. */
export interface Cut {
  /** The number of statements or commits before the fault. */
  left: number
  readonly of: "statements" | "commits"
  /** Whether the server executes the statement, so only its result is lost. */
  readonly reaches: boolean
  /** Whether the fault kills the node, not only the connection. */
  readonly kills: boolean
}

export interface NodeOptions {
  readonly url: string
  readonly mistake?: Mistake | undefined
  /** The commit's time limit in milliseconds. */
  readonly limit?: number
  /** The test decides when leases are renewed and when they lapse. */
  readonly steered?: boolean
  /** Receives letters, by Message-ID. */
  readonly send?: (id: string) => void
  readonly clock?: Clock.Clock
  /** The number of records after which the rollup lag is folded into the rollups. */
  readonly tailMax?: number
  /** The number of writing connections. The default is one. */
  readonly writers?: number
  /** The node's name. A node without a name does not replace an earlier process. */
  readonly name?: string
  /** A thread also renews the lease. */
  readonly hasThread?: boolean
  /** The newest migration that the node's version knows. The default is the newest. */
  readonly knows?: number
}

type Connect = Context.Tag.Service<typeof Connections.Postgres>["connect"]

let named = 0

const socketOf = (client: Client): Socket => (client as unknown as { connection: { stream: Socket } }).connection.stream

/** Changes time-dependent statements so that the test decides about leases. */
const steeredTexts: Mistake = (text) =>
  text.startsWith("UPDATE tollgate_sql_nodes SET until = now() +")
    ? "SELECT ?::text AS run"
    : text.replace("pg_postmaster_start_time()", "'-infinity'::timestamptz")

const secret = DeploymentSecret.layer(new Uint8Array(32).fill(7))

export const nodeOf = ({
  clock = Clock.make(),
  hasThread = false,
  knows,
  limit = 10_000,
  mistake = none,
  name,
  send = () => {},
  steered = false,
  tailMax = 256,
  url,
  writers = 1
}: NodeOptions) => {
  const application_name = `node ${named++}`
  const clients = new Set<Client>()
  let cut: Cut | undefined
  let held: { readonly reached: () => void; readonly released: Promise<void> } | undefined
  let dead = false
  let die = () => {}
  const died = new Promise<void>((resolve) => (die = resolve))

  const kill = () => {
    dead = true
    die()
    for (const client of clients) socketOf(client).destroy()
  }
  const textOf: Mistake = steered ? (text) => steeredTexts(mistake(text)) : mistake

  const wrapped =
    (connect: Connect): Connect =>
    (config = {}) => {
      const client = connect({ application_name, ...config })
      if (dead) {
        client.connect = () => Promise.reject(new Error("Connection terminated"))
        return client
      }
      clients.add(client)
      client.once("end", () => clients.delete(client))
      const query = client.query.bind(client) as (...args: ReadonlyArray<unknown>) => unknown
      const isWriters = config.application_name === undefined
      client.query = ((asked: unknown, ...rest: ReadonlyArray<unknown>) => {
        const texts = asked instanceof Group ? asked.asked.map(({ text }) => text) : [asked]
        if (asked instanceof Group) for (const one of asked.asked) one.text = textOf(one.text)
        const send = () => query(typeof asked === "string" ? textOf(asked) : asked, ...rest)
        if (held !== undefined && texts.includes("COMMIT")) {
          const { reached, released } = held
          held = undefined
          reached()
          return released.then(send)
        }
        if (!isWriters || cut === undefined) return send()
        const counted = cut.of === "commits" ? texts.filter((text) => text === "COMMIT").length : texts.length
        cut.left -= counted
        if (cut.left >= 0) return send()
        const { kills, reaches } = cut
        cut = undefined
        const end = kills ? kill : () => void socketOf(client).destroy()
        if (!reaches) {
          end()
          return send()
        }
        const lost = () => {
          end()
          return new Error("Connection terminated unexpectedly")
        }
        if (asked instanceof Group) {
          const { callback } = asked
          asked.callback = () => callback(lost())
          return send()
        }
        return (send() as Promise<unknown>).then(() => {
          throw lost()
        })
      }) as Client["query"]
      return client
    }

  const connections = Layer.map(
    Connections.layer({
      ...connectionsPreset,
      url: Redacted.make(url),
      readers: 1,
      writers,
      hasThread,
      ...(name !== undefined && { node: name }),
      ...(knows !== undefined && { knows })
    }),
    (context) => {
      const { connect, settings } = Context.get(context, Connections.Postgres)
      return Context.add(context, Connections.Postgres, { settings, connect: wrapped(connect) })
    }
  )
  const mail = Layer.succeed(Mail, { domain: "example.com", send: ({ id }) => Effect.sync(() => send(id)) })
  const runtime = ManagedRuntime.make(
    Layer.mergeAll(Gate.layer, Outbox.layer).pipe(
      Layer.provide([Payers.layerOwnOnly, mail, secret]),
      Layer.provideMerge(Ledger.layer),
      Layer.provideMerge(Layer.provide(PostgresWriter.layer, Layer.succeed(CommitLimit, Duration.millis(limit)))),
      Layer.provideMerge(Runs.layer),
      Layer.provideMerge(connections),
      // Some tests cut connections, so the warnings are expected.
      Layer.provide([
        Logger.minimumLogLevel(LogLevel.None),
        Layer.setClock(clock),
        Layer.succeed(RollupLagMax, tailMax)
      ])
    )
  )
  return {
    runPromise: runtime.runPromise,
    dispose: runtime.dispose,
    kill,
    isDead: () => dead,
    died,
    /** Arms a fault. It takes effect at the next statement. */
    cut: (one: Cut) => void (cut = one),
    /** Holds the next batch before its commit. `reached` resolves when the batch arrives there. */
    hold: () => {
      let release = () => {}
      const released = new Promise<void>((go) => (release = go))
      const reached = new Promise<void>((there) => (held = { reached: there, released }))
      return { reached, release }
    },
    /** Removes the pending fault. */
    heal: () => void (cut = undefined),
    /** Waits until the server has closed a killed node's connections. Until then it may still commit their statements. */
    gone: async () => {
      const left = () =>
        asked(url, (client) =>
          client.query("SELECT 1 FROM pg_stat_activity WHERE application_name = $1", [application_name])
        )
      while ((await left()).rows.length > 0) await new Promise((again) => setTimeout(again, 5))
    }
  }
}
export type Node = ReturnType<typeof nodeOf>
