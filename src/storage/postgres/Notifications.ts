/**
 * Sends signals over PostgreSQL. Each node has a connection that listens and publishes. Whenever the connection is opened, listeners are called with
 * `undefined`, because they might have missed signals.
 *
 * A notification can be lost because the sender failed, or because a connection is dead and this has not been detected yet. Changes that must not be
 * missed (to keys, memberships and suspended users) are therefore also in a table. Triggers insert the rows in the transaction of the change. The
 * connection polls this table more than once a second. While polls get no reply, the listeners of these changes are called with `undefined` about
 * once a second. A node therefore accepts a deleted key for less than two seconds.
 */
import { Effect } from "effect"
import type { Client } from "pg"
import * as Ids from "../../kernel/Ids.ts"
import { Postgres } from "./Client.ts"

/** Called with the ids that another node published, or with `undefined` if signals might have been lost. */
type Listener = (ids: ReadonlyArray<string> | undefined) => void

const channel = "tollgate_signals"

/** The topic of the changes in the table. */
const durable = "belonging"

/** The timeout for connecting and for queries, in milliseconds. */
const queryTimeout = 2_000
/** The pause between polls, the timeout of a poll, and the pause before a new connection, in milliseconds. */
const pollPause = 600
const pollPatience = 1_000
const reconnectPause = 500

/** The maximum number of ids in a notification. PostgreSQL limits a notification to 8,000 bytes. */
const idsMax = 100

interface Parts {
  readonly connect: Postgres["Type"]["connect"]
  /** This node's name as a publisher. */
  readonly self: string
  readonly listeners: Map<string, Set<Listener>>
  readonly state: State
  /** Resolves when the node closes. */
  readonly closing: Promise<void>
}

interface State {
  /** The listening connection; `undefined` while reconnecting. */
  connection: Client | undefined
  closed: boolean
}

export const make = Effect.gen(function* () {
  const { connect } = yield* Postgres
  const state: State = { connection: undefined, closed: false }
  let close = () => {}
  const closing = new Promise<void>((done) => (close = done))
  const parts: Parts = { connect, self: yield* Ids.make("run"), listeners: new Map(), state, closing }

  // While there are no polls, make the listeners clear their caches at this interval.
  const blind = setInterval(() => state.connection === undefined && tellBlindness(parts), pollPatience).unref()
  // Wait until the first connection is open or has failed, before anything is cached.
  let listening = Promise.resolve()
  yield* Effect.promise(() => new Promise<void>((opened) => (listening = keepListening(parts, opened))))
  yield* Effect.addFinalizer(() =>
    Effect.promise(() => {
      state.closed = true
      clearInterval(blind)
      close()
      return listening
    })
  )
  return { publish: publish(parts), subscribe: subscribe(parts) }
})

const publish = (parts: Parts) => (topic: string, ids: ReadonlyArray<string>) =>
  Effect.tryPromise(() => send(parts, topic, ids)).pipe(
    Effect.catchAll(({ cause }) =>
      Effect.annotateLogs(Effect.logWarning("the other nodes could not be notified", cause), "topic", topic)
    )
  )

const subscribe =
  ({ listeners }: Parts) =>
  (topic: string, listener: Listener) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        const those = listeners.get(topic) ?? new Set<Listener>()
        listeners.set(topic, those.add(listener))
      }),
      () => Effect.sync(() => listeners.get(topic)?.delete(listener))
    )

const dispatch = ({ listeners, self }: Parts, payload: string): void => {
  const [from, topic, ids] = JSON.parse(payload) as [string, string, ReadonlyArray<string>]
  if (from !== self) listeners.get(topic)?.forEach((listener) => listener(ids))
}

const notifyLoss = ({ listeners }: Parts): void =>
  listeners.forEach((those) => those.forEach((listener) => listener(undefined)))

const tellBlindness = ({ listeners }: Parts): void => listeners.get(durable)?.forEach((listener) => listener(undefined))

/** Opens a listening connection. `lost` is called when the connection fails or ends. */
const open = async (parts: Parts, lost: () => void): Promise<Client> => {
  const client = parts.connect({
    connectionTimeoutMillis: queryTimeout,
    query_timeout: queryTimeout,
    keepAlive: true,
    application_name: "tollgate signals"
  })
  client.on("error", lost)
  client.on("end", lost)
  client.on("notification", ({ payload }) => payload !== undefined && dispatch(parts, payload))
  try {
    await client.connect()
    await client.query(`LISTEN ${channel}`)
    return client
  } catch (error) {
    client.end().catch(() => {})
    throw error
  }
}

const keepListening = async (parts: Parts, opened: () => void): Promise<void> => {
  for (;;) {
    await listen(parts, opened).catch(opened)
    if (parts.state.closed) return
    await before(reconnectPause, parts.closing)
  }
}

/** Listens and polls until the connection is lost or a poll gets no reply. */
const listen = async (parts: Parts, opened: () => void): Promise<void> => {
  const { closing, listeners, state } = parts
  let ended = false
  let end = () => {}
  const lost = new Promise<void>((done) => {
    end = () => {
      ended = true
      done()
    }
  })
  const client = await open(parts, end)
  try {
    let last = (await client.query<{ number: number }>(selectLast)).rows[0]!.number
    state.connection = client
    notifyLoss(parts)
    opened()
    for (;;) {
      await before(pollPause, lost, closing)
      if (ended || state.closed) break
      const rows = await Promise.race([
        client.query<SignalRow>(selectSince, [last]).then(({ rows }) => rows),
        unanswered()
      ])
      if (rows === undefined) break
      for (const { id, topic } of rows) listeners.get(topic)?.forEach((listener) => listener([id]))
      last = rows.at(-1)?.number ?? last
    }
  } finally {
    state.connection = undefined
    tellBlindness(parts)
    const end = client.end().catch(() => {})
    if (state.closed) await end
  }
}

const send = async (parts: Parts, topic: string, ids: ReadonlyArray<string>): Promise<void> => {
  const { self, state } = parts
  const client = state.connection ?? (await open(parts, () => {}))
  try {
    for (let from = 0; from < ids.length; from += idsMax)
      await client.query("SELECT pg_notify(?, ?)", [
        channel,
        JSON.stringify([self, topic, ids.slice(from, from + idsMax)])
      ])
  } finally {
    if (client !== state.connection) client.end().catch(() => {})
  }
}

interface SignalRow {
  readonly number: number
  readonly topic: string
  readonly id: string
}

const selectLast = "SELECT COALESCE(max(number), 0) AS number FROM tollgate_sql_signals"

/**
 * Selects the newer rows. Transactions with rooms' statements run one at a time, so the numbers ascend in the order of the commits. The newest rows
 * are left to the notifications.
 */
const selectSince = `SELECT number, topic, id FROM tollgate_sql_signals
  WHERE number > ? AND at < clock_timestamp() - interval '400 milliseconds' ORDER BY number`

/** Deletes rows that all nodes have read or will no longer read. */
export const forgetOld = "DELETE FROM tollgate_sql_signals WHERE at < now() - interval '1 hour'"

/** Waits for the timeout of a poll, then lets the event loop handle replies that arrived while the thread was busy. */
const unanswered = async (): Promise<undefined> => {
  await new Promise<void>((done) => setTimeout(done, pollPatience).unref())
  await new Promise<void>((done) => setImmediate(() => setImmediate(done)))
}

/** Waits for `millis`, or until one of the promises resolves. */
const before = async (millis: number, ...those: ReadonlyArray<Promise<void>>): Promise<void> => {
  let timer: NodeJS.Timeout | undefined
  await Promise.race([...those, new Promise<void>((done) => (timer = setTimeout(done, millis)))])
  clearTimeout(timer)
}
