/**
 * This tab's session. The access token is stored only in memory. An HttpOnly cookie survives a reload, and `renew` exchanges it for the next token.
 * Tabs share the cookie, so a lock serializes their renewals, and they notify each other when a session opens or ends.
 */
import { useSyncExternalStore } from "react"
import { SignedOut } from "./Refusal.ts"

export interface Grant {
  readonly access_token: string
  /** The token's lifetime in seconds. */
  readonly expires_in: number
}

export type SessionState<G extends Grant> =
  | { readonly kind: "unknown" }
  | { readonly kind: "none" }
  | { readonly kind: "unreachable"; readonly error: unknown }
  | { readonly kind: "open"; readonly grant: G }

export interface SessionOptions<G extends Grant, To> {
  /** The name of the tabs' lock and broadcast channel. */
  readonly name: string
  /** Requests a token. Resolves to `undefined` if there is no session. */
  readonly renew: (to: To | undefined) => Promise<G | undefined>
  readonly end: () => Promise<void>
}

/** How long before its expiry a token is renewed, in milliseconds. */
const renewalLead = 60_000

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
      // If another tab signed out, the shared cookie is gone. If another tab signed in, this tab can use the new session.
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

  /**
   * Returns a token. Renews it first if it expires within 30 s. Rejects with `SignedOut` if there is no session, or with the renewal's error if no
   * valid token remains.
   */
  async token(): Promise<string> {
    if (this.#state.kind !== "open" || Date.now() > this.#expires - renewalLead / 2) await this.renew()
    const state = this.state
    if (state.kind === "open") return state.grant.access_token
    if (state.kind === "unreachable") throw state.error
    throw new SignedOut()
  }

  /** Requests the next token. Concurrent calls without `to` share one request. `to` names the tenant to switch to. */
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

  /** Requests a new token after the service rejected `token`, unless `token` has already been replaced. */
  async refused(token: string): Promise<void> {
    if (this.#state.kind === "open" && this.#state.grant.access_token !== token) return
    await this.renew()
  }

  async end(): Promise<void> {
    await this.#options.end()
    this.#set({ kind: "none" })
    this.#broadcast("ended")
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
      if (was === "none") this.#broadcast("opened")
    } catch (error) {
      // Keep using the old token until it expires.
      if (to !== undefined) throw error
      if (this.#state.kind === "open" && Date.now() < this.#expires) this.#scheduleRenewal(5000)
      else this.#set({ kind: "unreachable", error })
    }
  }

  #broadcast(other: "ended" | "opened"): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a BroadcastChannel has one origin and takes no origin argument
    this.#tabs.postMessage(other)
  }

  #set(state: SessionState<G>): void {
    this.#state = state
    clearTimeout(this.#timer)
    if (state.kind === "open") this.#scheduleRenewal(Math.max(1000, this.#expires - Date.now() - renewalLead))
    for (const listener of this.#listeners) listener()
  }

  #scheduleRenewal(millis: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.renew(), millis)
  }
}

export const useSession = <G extends Grant, To>(session: Session<G, To>): SessionState<G> =>
  useSyncExternalStore(session.subscribe, () => session.state)
