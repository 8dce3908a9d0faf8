/**
 * Reads live events as server-sent events over `fetch`, because an `EventSource` can send a token only in its URL. A broken stream resumes after its
 * last event (`Last-Event-ID`). The reconnect delay doubles, up to `reconnectDelayMax`, until an event arrives.
 */
import { useEffect, useSyncExternalStore } from "react"
import { apiRoot } from "./Base.ts"
import { withAllDigits } from "./Client.ts"
import { fetchResponse, Refusal, SignedOut } from "./Refusal.ts"
import type { Grant, Session } from "./Session.ts"

export type LiveState = "connecting" | "open" | "lost" | "off"

interface Event {
  readonly type: string
  readonly data: unknown
}

type Listener = (event: Event) => void

/** The maximum silence before the client reconnects, in milliseconds. The service sends data every 15 s. */
const silenceTimeout = 40_000
const reconnectDelayMax = 30_000

/** Parses server-sent events from the chunks of a stream. */
export class EventText {
  #buffer = ""

  take(text: string): ReadonlyArray<{ readonly type: string; readonly data: string; readonly id: string | undefined }> {
    const blocks = (this.#buffer + text).split(/\r?\n\r?\n/)
    this.#buffer = blocks.pop() ?? ""
    return blocks.flatMap((block) => {
      let type = "message"
      let id: string | undefined
      const data: Array<string> = []
      for (const line of block.split(/\r?\n/)) {
        const [, field, value] = /^(\w+): ?(.*)$/.exec(line) ?? []
        if (field === "event") type = value!
        else if (field === "id") id = value
        else if (field === "data") data.push(value!)
      }
      return data.length === 0 ? [] : [{ type, data: data.join("\n"), id }]
    })
  }
}

export class Live {
  state: LiveState = "off"
  readonly #path: string
  readonly #session: Pick<Session<Grant>, "token" | "refused">
  readonly #stateListeners = new Set<() => void>()
  readonly #listeners = new Set<Listener>()
  #stop: AbortController | undefined

  /** `path` is relative to the API's root. */
  constructor(path: string, session: Pick<Session<Grant>, "token" | "refused">) {
    this.#path = path
    this.#session = session
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#stateListeners.add(listener)
    return () => this.#stateListeners.delete(listener)
  }

  /** Subscribes to events. Returns a function that unsubscribes. */
  on(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Connects, and reconnects until `stop` or the session's end. Restart after switching tenants, because a stream belongs to the token's tenant. */
  start(): void {
    this.#stop?.abort()
    const stop = new AbortController()
    this.#stop = stop
    void this.#run(stop.signal)
  }

  stop(): void {
    this.#stop?.abort()
    this.#stop = undefined
    this.#set("off")
  }

  async #run(signal: AbortSignal): Promise<void> {
    let cursor: string | undefined
    let pause = 500
    while (!signal.aborted) {
      if (this.state !== "lost") this.#set("connecting")
      try {
        for await (const { data, id, type } of this.#events(cursor, signal)) {
          pause = 500
          this.#set("open")
          cursor = id ?? cursor
          this.#dispatch({ type, data: JSON.parse(withAllDigits(data)) })
        }
      } catch (error) {
        if (error instanceof SignedOut) return this.stop()
      }
      if (signal.aborted) return
      this.#set("lost")
      await delay(pause, signal)
      pause = Math.min(reconnectDelayMax, pause * 2)
    }
  }

  async *#events(cursor: string | undefined, signal: AbortSignal) {
    const token = await this.#session.token()
    const silence = new AbortController()
    let timer = setTimeout(() => silence.abort(), silenceTimeout)
    try {
      const response = await fetchResponse(apiRoot + this.#path, {
        credentials: "omit",
        headers: {
          accept: "text/event-stream",
          authorization: `Bearer ${token}`,
          ...(cursor !== undefined && { "last-event-id": cursor })
        },
        signal: AbortSignal.any([signal, silence.signal])
      })
      if (response.status === 401) await this.#session.refused(token)
      if (!response.ok || response.body === null) throw new Refusal(response.status, {}, undefined)
      this.#set("open")
      const text = new EventText()
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return
        clearTimeout(timer)
        timer = setTimeout(() => silence.abort(), silenceTimeout)
        yield* text.take(value)
      }
    } finally {
      clearTimeout(timer)
    }
  }

  #dispatch(event: Event): void {
    for (const listener of this.#listeners) listener(event)
  }

  #set(state: LiveState): void {
    if (this.state === state) return
    this.state = state
    for (const listener of this.#stateListeners) listener()
  }
}

/** Waits for `millis`. Resolves early if the browser goes online or `signal` aborts. */
const delay = (millis: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer)
      removeEventListener("online", done)
      signal.removeEventListener("abort", done)
      resolve()
    }
    const timer = setTimeout(done, millis)
    addEventListener("online", done)
    signal.addEventListener("abort", done)
  })

export const useLiveState = (live: Live): LiveState => useSyncExternalStore(live.subscribe, () => live.state)

/** Calls `listener` for each event from `live` while the component is mounted. A new `listener` resubscribes. */
export const useLive = (live: Live, listener: Listener): void => useEffect(() => live.on(listener), [live, listener])
