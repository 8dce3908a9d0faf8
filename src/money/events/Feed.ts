/**
 * Live events for tenants and accounts. One loop per node polls for the newest call, balance and notification of each tenant and account with
 * listeners, and wakes the affected listeners. Each listener then reads the events that it has not sent yet, so it sees calls from any node and loses
 * no event between connections. Without listeners, a charge costs nothing extra.
 *
 * Where the specification is silent:
 * - An account may open up to 8 streams on a node, and a node serves up to 2,000. A ninth stream is rejected with 429. On a full node, a new stream
 *   replaces the oldest stream of the account with the most streams (`Places`). That account must have at least two streams more than the new
 *   stream's account. If no account qualifies, a new stream of a tenant that ever bought or received credit replaces the oldest stream of a tenant
 *   that never did. Otherwise, free accounts could lock out paying accounts. If no stream can be replaced, the new stream is rejected with 503. Both
 *   responses contain Retry-After. A replaced stream ends with `end` and the reason `displaced`, and its cursor remains valid.
 * - A listener that missed more than a thousand calls receives `reset` instead of the calls.
 * - Notifications are sent in the order of their ids. A notification that commits milliseconds after another with a later id appears only in the
 *   list.
 */
import { Clock, Context, Duration, Effect, Layer, Option } from "effect"
import { holds as holdsOfProcesses } from "../../kernel/Holds.ts"
import type { HoldsContract } from "../../kernel/Holds.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import * as Loop from "../../kernel/Loop.ts"
import type { Job } from "../../kernel/Loop.ts"
import type { Nano } from "../../kernel/Money.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import { balanceOf } from "../../books/ledger/rules/Transaction.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import { Notifications } from "../../people/notifications/Notifications.ts"
import { Records } from "../usage/Records.ts"
import type { FeedEnd, FeedEvent, Listener, Place } from "./Event.ts"
import { accountMax, nodeMax, Places } from "./Places.ts"
import type { Placed } from "./Places.ts"
import { StreamsBusy, TooManyStreams } from "./Problems.ts"

export interface FeedContract {
  /** Reserves a slot for a listener without waiting. The caller must `close` the stream. */
  readonly open: (listener: Listener) => Effect.Effect<Stream, TooManyStreams | StreamsBusy>
  readonly job: Job
}

export interface Stream {
  /**
   * Sends the events after `after`, or only new events if it is `undefined`. Runs until it is interrupted or the stream must end, and returns the
   * reason.
   */
  readonly run: (options: StreamOptions) => Effect.Effect<FeedEnd>
  readonly close: () => void
}

export interface StreamOptions {
  readonly after: Place | undefined
  /** Whether the credential is still valid. */
  readonly holds: Effect.Effect<boolean>
  /** Sends an event. Returns `false` if the listener is too slow. */
  readonly send: (event: FeedEvent, place: Place) => Effect.Effect<boolean>
}

export class Feed extends Context.Tag("tollgate/events/Feed")<Feed, FeedContract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(Feed, make))
  /** Runs the loop that wakes listeners. */
  static readonly layerJobs = Layer.suspend(() => Loop.layer(Feed, ({ job }) => [job]))
}

/** `Retry-After` for a rejected listener, in seconds. */
const retryAfter = 10

/** The poll interval, and the delay from a charge in this process to the next poll (in milliseconds). */
const pause = Duration.millis(500)
const wakePause = 100
/** Every n-th poll wakes all listeners so that they check their credentials. */
const wakeAllEvery = 4

/** The idle time of a stream before each heartbeat, in milliseconds. */
const heartbeatInterval = 15_000
const missedMax = 1_000
const pageSize = 100

/** The newest items of a tenant or an account at the last poll. */
interface Newest {
  listeners: number
  call: number
  balance: Nano | undefined
  /** Whether the tenant ever bought or received credit. */
  funded: boolean
  notification: string
}

interface Open extends Placed {
  readonly listener: Listener
  readonly waker: Loop.Waker
  readonly close: () => void
  closed: boolean
}

/** The state of the tenants or accounts with listeners, by id. */
class ItemsById<Id extends string> extends Map<Id, Newest> {
  hold(id: Id): Newest {
    const newest = this.get(id) ?? { listeners: 0, call: 0, balance: undefined, funded: false, notification: "" }
    newest.listeners++
    this.set(id, newest)
    return newest
  }
  release(id: Id): void {
    const newest = this.get(id)
    if (newest !== undefined && --newest.listeners === 0) this.delete(id)
  }
}

interface Parts {
  readonly ledger: Ledger["Type"]
  readonly notifications: Notifications["Type"]
  readonly records: Records["Type"]
  readonly jobWaker: Loop.Waker
  /** Counts each account's streams across all processes of a deployment on SQLite. */
  readonly holds: HoldsContract
  readonly streams: Places<Open>
  readonly tenants: ItemsById<TenantId>
  readonly accounts: ItemsById<AccountId>
  /** The billing accounts of tenants with listeners. */
  readonly billed: Set<string>
}

const make = Effect.gen(function* () {
  const parts: Parts = {
    ledger: yield* Ledger,
    notifications: yield* Notifications,
    records: yield* Records,
    jobWaker: yield* Loop.waker,
    holds: yield* holdsOfProcesses,
    streams: new Places(),
    tenants: new ItemsById(),
    accounts: new ItemsById(),
    billed: new Set()
  }
  yield* wakeAtCharges(parts, yield* Writer)
  const job: Job = { name: "events", turn: turnOf(parts), waker: parts.jobWaker, everywhere: true }
  return { open: open(parts), job } satisfies FeedContract
})

/** Wakes the job shortly after a tenant with listeners is charged. */
const wakeAtCharges = Effect.fnUntraced(function* ({ billed, jobWaker, streams }: Parts, writer: Writer["Type"]) {
  let timer: NodeJS.Timeout | undefined
  // The listener runs during calls, so it only sets a timer.
  yield* writer.watch((account) => {
    if (streams.size === 0 || timer !== undefined || !billed.has(account)) return
    timer = setTimeout(() => {
      timer = undefined
      jobWaker.wakeNow()
    }, wakePause)
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => clearTimeout(timer)))
})

/** Reads the newest items for these ids. Returns the ids with changes. */
const poll = Effect.fnUntraced(function* (
  { accounts, ledger, notifications, records, tenants }: Parts,
  tenantIds: ReadonlyArray<TenantId>,
  accountIds: ReadonlyArray<AccountId>
) {
  const changed = new Set<string>()
  const calls = yield* records.newest(tenantIds)
  const balances = yield* ledger.accounts(tenantIds.map(billingAccountOf))
  for (const id of tenantIds) {
    const newest = tenants.get(id)
    const account = balances.get(billingAccountOf(id))
    if (newest === undefined) continue
    const [call, balance] = [calls.get(id) ?? 0, account === undefined ? undefined : balanceOf(account)]
    if (call !== newest.call || balance !== newest.balance) changed.add(id)
    Object.assign(newest, { call, balance, funded: account?.funded === true })
  }
  for (const [id, notification] of yield* notifications.newest(accountIds)) {
    const newest = accounts.get(id)
    if (newest === undefined || newest.notification === notification) continue
    newest.notification = notification
    changed.add(id)
  }
  return changed
})

const turnOf = (parts: Parts): Job["turn"] => {
  const { accounts, streams, tenants } = parts
  let polls = 0
  return Effect.gen(function* () {
    if (streams.size === 0) return undefined
    const changed = yield* poll(parts, [...tenants.keys()], [...accounts.keys()])
    const all = ++polls % wakeAllEvery === 0
    for (const { listener, waker } of streams) {
      if (all || changed.has(listener.tenant_id) || changed.has(listener.account_id)) waker.wakeNow()
    }
    return pause
  })
}

const isFunded = ({ ledger }: Parts, tenant_id: TenantId) =>
  Effect.map(ledger.accountOfTenant(tenant_id), (account) => Option.isSome(account) && account.value.funded)

const open = (parts: Parts): FeedContract["open"] =>
  // Uninterruptible, so that the caller always receives a claimed slot and can release it.
  Effect.fnUntraced(function* (listener) {
    const { accounts, billed, jobWaker, streams, tenants } = parts
    const { account_id, tenant_id } = listener
    const waker = yield* Loop.waker
    // Read first: once the account's slot is claimed, this code does not yield, so no other listener can claim the node's last slot.
    const funded = streams.size >= nodeMax && (yield* isFunded(parts, tenant_id))
    const releaseHold = yield* parts.holds.take(`events ${account_id}`, accountMax)
    if (releaseHold === undefined) return yield* new TooManyStreams({ limit: accountMax, retry_after: retryAfter })
    if (streams.size >= nodeMax) {
      const displaced = streams.givesWayTo({ account_id, paying: () => funded })
      if (displaced === undefined) {
        releaseHold()
        return yield* new StreamsBusy({ retry_after: retryAfter })
      }
      displaced.close()
    }
    const tenantItems = tenants.hold(tenant_id)
    const accountItems = accounts.hold(account_id)
    const one: Open = {
      listener,
      account_id,
      waker,
      paying: () => tenantItems.funded,
      closed: false,
      close: () => {
        if (one.closed) return
        one.closed = true
        releaseHold()
        streams.delete(one)
        tenants.release(tenant_id)
        accounts.release(account_id)
        if (!tenants.has(tenant_id)) billed.delete(billingAccountOf(tenant_id))
        waker.wakeNow()
      }
    }
    // If `funded` was not read above, the first poll sets it.
    if (funded) tenantItems.funded = true
    streams.add(one)
    billed.add(billingAccountOf(tenant_id))
    // If there are other listeners, the job already polls. One poll per new listener would overload a full node.
    if (streams.size === 1) jobWaker.wakeNow()
    return { run: (options: StreamOptions) => run(parts, one, tenantItems, accountItems, options), close: one.close }
  }, Effect.uninterruptible)

const run = Effect.fnUntraced(function* (
  parts: Parts,
  open: Open,
  tenantItems: Newest,
  accountItems: Newest,
  { after, holds, send: sendOne }: StreamOptions
): Effect.fn.Return<FeedEnd> {
  const { notifications, records } = parts
  const { listener, waker } = open
  const { account_id, notified, tenant_id } = listener
  yield* poll(parts, [tenant_id], [account_id])
  // A cursor ahead of the records must be from another database.
  const known = after !== undefined && after.call <= tenantItems.call ? after : undefined
  let position: Place = known ?? { tenant_id, call: tenantItems.call, notification: accountItems.notification }
  let sent: Nano | undefined
  let sentAt = yield* Clock.currentTimeMillis
  const send = (event: FeedEvent, at: Place): Effect.Effect<boolean> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      sentAt = now
      return sendOne(event, at)
    })
  if (known === undefined && !(yield* send({ type: "ready" }, position))) return "slow"

  const calls = Effect.gen(function* () {
    if (tenantItems.call - position.call > missedMax) {
      position = { ...position, call: tenantItems.call }
      if (!(yield* send({ type: "reset" }, position))) return false
    }
    while (position.call < tenantItems.call) {
      const from = position.call + 1
      const page = yield* records.range(tenant_id, { from, to: Math.min(from + pageSize, tenantItems.call + 1) })
      for (const record of page) {
        position = { ...position, call: position.call + 1 }
        if (!(yield* send({ type: "call", record }, position))) return false
      }
    }
    return true
  })

  const balance = Effect.suspend(() => {
    if (tenantItems.balance === undefined || tenantItems.balance === sent) return Effect.succeed(true)
    sent = tenantItems.balance
    return send({ type: "balance", balance: sent }, position)
  })

  const notices = Effect.gen(function* () {
    if (!notified || accountItems.notification <= position.notification) return true
    for (const notification of yield* notifications.since(account_id, position.notification, pageSize)) {
      position = { ...position, notification: notification.id }
      if (!(yield* send({ type: "notification", notification }, position))) return false
    }
    return true
  })

  for (;;) {
    if (open.closed) return "displaced"
    if (!(yield* holds)) return "credential"
    if (!(yield* calls) || !(yield* balance) || !(yield* notices)) return "slow"
    const now = yield* Clock.currentTimeMillis
    if (now - sentAt >= heartbeatInterval && !(yield* send({ type: "beat" }, position))) return "slow"
    yield* Effect.timeoutOption(
      waker.woken,
      Duration.millis(Math.min(heartbeatInterval, Math.max(0, sentAt + heartbeatInterval - now)))
    )
  }
}, Effect.withTracerEnabled(false))
