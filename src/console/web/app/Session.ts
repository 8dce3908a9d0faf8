/**
 * A session of this tab. The access token is only in memory. An HttpOnly cookie, which the page cannot read, survives a reload; `renew` exchanges it
 * for the next token. Tabs share the cookie: they renew one at a time (a lock) and notify each other of its end.
 */
import { useSyncExternalStore } from "react"
import { SignedOut } from "./Refusal.ts"

/** The answer of a renewal. */
export interface Grant {
  readonly access_token: string
  /** Seconds. */
  readonly expires_in: number
}

export type SessionState<G extends Grant> =
  | { readonly kind: "unknown" }
  | { readonly kind: "none" }
  | { readonly kind: "unreachable"; readonly error: unknown }
  | { readonly kind: "open"; readonly grant: G }

export interface SessionOptions<G extends Grant, To> {
  /** The name of the lock and of the channel between tabs. */
  readonly name: string
  /** Requests a token; `undefined` if there is no session. */
  readonly renew: (to: To | undefined) => Promise<G | undefined>
  /** Ends the session. */
  readonly end: () => Promise<void>
}

/** A token is renewed this long before it expires. */
const early = 60_000

export class Session<G extends Grant, To = never> {
  #state: SessionState<G> = { kind: "unknown" }
  #expires = 0
  #renewal: Promise<void> | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  readonly #listeners = new Set<() => void>()
  readonly #options: SessionOptions<G, To>
  readonly #tabs: BroadcastChannel

  constructor(options: SessionOptions<G, To>) {
    this.#options = options
    this.#tabs = new BroadcastChannel(options.name)
    this.#tabs.addEventListener("message", ({ data }) => {
      // Another tab signed out, which also removed this tab's cookie, or signed in: try that session.
      if (data === "ended") this.#set({ kind: "none" })
      if (data === "opened" && this.#state.kind === "none") void this.renew()
    })
  }

  get state(): SessionState<G> {
    return this.#state
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** A token that is still valid for some time. Fails with `SignedOut` if there is no session. */
  async token(): Promise<string> {
    if (this.#state.kind !== "open" || Date.now() > this.#expires - early / 2) await this.renew()
    const state = this.state
    if (state.kind === "open") return state.grant.access_token
    if (state.kind === "unreachable") throw state.error
    throw new SignedOut()
  }

  /** Requests the next token. Concurrent requests share the answer. `to` is sent only with a change of tenant or code. */
  renew(to?: To): Promise<void> {
    if (this.#renewal !== undefined && to === undefined) return this.#renewal
    const before = this.#renewal ?? Promise.resolve()
    const renewal = before
      .then(() => this.#renew(to))
      .finally(() => {
        if (this.#renewal === renewal) this.#renewal = undefined
      })
    this.#renewal = renewal
    return renewal
  }

  /** The service refused this token: request the next one, unless a request is already under way. */
  async refused(token: string): Promise<void> {
    if (this.#state.kind === "open" && this.#state.grant.access_token !== token) return
    await this.renew()
  }

  async end(): Promise<void> {
    await this.#options.end()
    this.#set({ kind: "none" })
    this.#tell("ended")
  }

  async #renew(to: To | undefined): Promise<void> {
    try {
      const grant = await navigator.locks.request(this.#options.name, () => this.#options.renew(to))
      if (grant === undefined) {
        this.#set({ kind: "none" })
        return
      }
      this.#expires = Date.now() + grant.expires_in * 1000
      const was = this.#state.kind
      this.#set({ kind: "open", grant })
      if (was === "none") this.#tell("opened")
    } catch (error) {
      // A valid token survives a renewal that did not reach the service.
      if (to !== undefined) throw error
      if (this.#state.kind === "open" && Date.now() < this.#expires) this.#again(5000)
      else this.#set({ kind: "unreachable", error })
    }
  }

  #tell(other: "ended" | "opened"): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel is of one origin, and takes no other argument
    this.#tabs.postMessage(other)
  }

  #set(state: SessionState<G>): void {
    this.#state = state
    clearTimeout(this.#timer)
    if (state.kind === "open") this.#again(Math.max(1000, this.#expires - Date.now() - early))
    for (const listener of this.#listeners) listener()
  }

  #again(millis: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.renew(), millis)
  }
}

export const useSession = <G extends Grant, To>(session: Session<G, To>): SessionState<G> =>
  useSyncExternalStore(session.subscribe, () => session.state)
