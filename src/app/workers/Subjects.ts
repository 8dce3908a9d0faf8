/** The subjects on which the owner and its workers exchange requests (`Channel`), with their values and timeouts. */
import type { Door } from "../../books/ledger/write/Thread.ts"
import type { AddressInfo } from "node:net"

/** A worker starts. The reply contains everything it needs to serve. */
export const begin = "begin"
export interface Begun {
  readonly door: Door
  readonly workers: number
  /** The configuration file's text, which may be older than the file on disk. */
  readonly text: string
  /** Where the owner listens. */
  readonly address: AddressInfo
}

/** A worker accepts connections. Its value is the configuration that it loaded (`Reloading`). */
export const ready = "ready"
/** A worker stops accepting connections. */
export const leaving = "leaving"

/** The owner pings a worker. */
export const alive = "alive"

/** A worker publishes a signal. The owner passes it on, and replies once the other workers have received it. */
export const signal = "signal"
export interface SignalSent {
  readonly topic: string
  readonly ids: ReadonlyArray<string>
}

/** A worker has ended, so its reservations can be released. */
export const lapse = "lapse"

/** Counts a request against a rate limit. The reply is the period's request count so far. */
export const count = "count"
export interface Counted {
  readonly key: string
  readonly period_ms: number
  readonly now: number
}

/** Claims one of a key's `most` slots. The reply is whether one was free. */
export const hold = "hold"
export interface Held {
  readonly key: string
  readonly most: number
}
/** Releases a slot. */
export const release = "release"

/** To the owner: read the configuration and reload all processes. To a worker: apply this configuration text. */
export const reload = "reload"
export interface Reloading {
  readonly text: string
}
export type ReloadOutcome = { readonly changed: ReadonlyArray<string> } | { readonly refused: string }

/** Requests metrics and loop states. The owner replies for all other processes, a worker for itself. */
export const figures = "figures"

/** How long to wait for a reply, in milliseconds. A reload may have to open connections. */
export const replyTimeouts = { alive: 5_000, begin: 30_000, brief: 2_000, reload: 60_000 } as const
