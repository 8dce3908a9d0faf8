/**
 * Signals over PostgreSQL: each node has a connection that listens, and tells the others over it. When it was lost and is back, listeners
 * are told that they may have missed something.
 */
import { Effect } from "effect"
import type { Client } from "pg"
import * as Ids from "../../kernel/Ids.ts"
import { Postgres } from "./Client.ts"

/** Called with what a node published, or with `undefined` after signals may have been lost. */
type Listener = (ids: ReadonlyArray<string> | undefined) => void

const channel = "tollgate_signals"

/** How long the server is waited for, in milliseconds. */
const patience = 2_000
/** Between two looks at whether the connection still stands, and before it is made again, in milliseconds. */
const beat = 5_000
const reconnectPause = 500

/** A notification holds 8,000 bytes. */
const idsMax = 100

export const make = Effect.gen(function* () {
  const { connect } = yield* Postgres
  const self = yield* Ids.make("run")
  const listeners = new Map<string, Set<Listener>>()
  let connection: Client | undefined
  let closed = false
  let close = () => {}
  const closing = new Promise<void>((done) => (close = done))

  const apply = (payload: string): void => {
    const [from, topic, ids] = JSON.parse(payload) as [string, string, ReadonlyArray<string>]
    if (from !== self) listeners.get(topic)?.forEach((listener) => listener(ids))
  }
  const applyLoss = () => listeners.forEach((those) => those.forEach((listener) => listener(undefined)))

  /** A connection that listens. `lost` is called once it has ended. */
  const open = async (lost: () => void): Promise<Client> => {
    const client = connect({
      connectionTimeoutMillis: patience,
      query_timeout: patience,
      keepAlive: true,
      application_name: "tollgate signals"
    })
    client.on("error", lost)
    client.on("end", lost)
    client.on("notification", ({ payload }) => payload !== undefined && apply(payload))
    try {
      await client.connect()
      await client.query(`LISTEN ${channel}`)
      return client
    } catch (error) {
      client.end().catch(() => {})
      throw error
    }
  }

  /** Listens until the connection is lost. A server that is gone without a word is noticed by the beat. */
  const listen = async (opened: () => void): Promise<void> => {
    let ended = false
    let end = () => {}
    const lost = new Promise<void>((done) => {
      end = () => {
        ended = true
        done()
      }
    })
    const client = await open(end)
    connection = client
    applyLoss()
    opened()
    for (;;) {
      await before(beat, lost, closing)
      if (ended || closed) break
      await client.query("SELECT 1").catch(end)
    }
    connection = undefined
    await client.end().catch(() => {})
  }

  const keepListening = async (opened: () => void): Promise<void> => {
    for (;;) {
      await listen(opened).catch(opened)
      if (closed) return
      await before(reconnectPause, closing)
    }
  }

  const send = async (topic: string, ids: ReadonlyArray<string>): Promise<void> => {
    const client = connection ?? (await open(() => {}))
    try {
      for (let from = 0; from < ids.length; from += idsMax)
        await client.query("SELECT pg_notify(?, ?)", [
          channel,
          JSON.stringify([self, topic, ids.slice(from, from + idsMax)])
        ])
    } finally {
      if (client !== connection) client.end().catch(() => {})
    }
  }

  // Before anything is remembered: the first connection is up, or could not be made.
  let listening = Promise.resolve()
  yield* Effect.promise(() => new Promise<void>((opened) => (listening = keepListening(opened))))
  yield* Effect.addFinalizer(() =>
    Effect.promise(() => {
      closed = true
      close()
      return listening
    })
  )

  return {
    publish: (topic: string, ids: ReadonlyArray<string>) =>
      Effect.tryPromise(() => send(topic, ids)).pipe(
        Effect.catchAll(({ cause }) =>
          Effect.annotateLogs(Effect.logWarning("the other nodes could not be told", cause), "topic", topic)
        )
      ),
    subscribe: (topic: string, listener: Listener) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const those = listeners.get(topic) ?? new Set<Listener>()
          listeners.set(topic, those.add(listener))
        }),
        () => Effect.sync(() => listeners.get(topic)?.delete(listener))
      )
  }
})

/** Waits so many milliseconds, or until one of these comes. */
const before = async (millis: number, ...those: ReadonlyArray<Promise<void>>): Promise<void> => {
  let timer: NodeJS.Timeout | undefined
  await Promise.race([...those, new Promise<void>((done) => (timer = setTimeout(done, millis)))])
  clearTimeout(timer)
}
