/** This tab's in-memory conversation, for one user in one tenant. It survives navigation but not a reload. */
import { queries } from "../../app/Queries.ts"
import { api, responseBody } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { Refusal } from "../../app/Refusal.ts"
import type { Usd } from "../../money.ts"
import { streamChat } from "./chatCall.ts"
import type { ChatBody, Message, Tokens } from "./chatCall.ts"

export interface Exchange {
  readonly id: number
  readonly body: ChatBody
  readonly answer: string
  readonly state: "waiting" | "streaming" | "whole" | "stopped" | "failed"
  readonly error?: unknown
  readonly usageId?: string | undefined
  readonly tokens?: Tokens
  /** The time from the request to the first token, in milliseconds. */
  readonly firstToken?: number
  readonly took?: number
  /** The charge in the usage record, or `"late"` if the record could not be fetched in time. */
  readonly charged?: Usd | "late"
}

export const isRunning = ({ state }: Exchange): boolean => state === "waiting" || state === "streaming"

/** Returns the messages so far, for the next call. Includes partial responses, and omits messages without a response. */
export const messagesOf = (exchanges: ReadonlyArray<Exchange>): ReadonlyArray<Message> =>
  exchanges.flatMap(({ answer, body }) =>
    answer === "" ? [] : [body.messages.at(-1)!, { role: "assistant" as const, content: answer }]
  )

/** The delay before each poll for the charge, in milliseconds. The service settles a stopped call within seconds. */
const pollDelays = [0, 150, 300, 600, 1200, 2400, 4800, 6000]

const delay = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

const explanationOf = async (usageId: string): Promise<Schemas["Explanation"] | undefined> => {
  for (const millis of pollDelays) {
    await delay(millis)
    try {
      return await responseBody(api.GET("/v1/usage/{usage_id}/explain", { params: { path: { usage_id: usageId } } }))
    } catch (error) {
      if (!(error instanceof Refusal && error.status === 404)) return undefined
    }
  }
  return undefined
}

export class Conversation {
  exchanges: ReadonlyArray<Exchange> = []
  #stop: AbortController | undefined
  #next = 1
  readonly #listeners = new Set<() => void>()

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly stop = (): void => this.#stop?.abort()

  readonly clear = (): void => {
    this.stop()
    this.#set([])
  }

  /** Sends a message, streams the response and then polls for its charge. Does nothing while another response is running. */
  readonly send = async (body: ChatBody): Promise<void> => {
    if (this.exchanges.some(isRunning)) return
    const id = this.#next++
    const stop = new AbortController()
    this.#stop = stop
    this.#set([...this.exchanges, { id, body, answer: "", state: "waiting" }])
    const since = performance.now()
    try {
      await streamChat(body, stop.signal, {
        begun: (usageId) => this.#change(id, () => ({ usageId })),
        text: (piece) =>
          this.#change(id, ({ answer, firstToken }) => ({
            answer: answer + piece,
            state: "streaming",
            firstToken: firstToken ?? performance.now() - since
          })),
        tokens: (tokens) => this.#change(id, () => ({ tokens }))
      })
      this.#change(id, () => ({ state: "whole" }))
    } catch (error) {
      this.#change(id, () => (stop.signal.aborted ? { state: "stopped" } : { state: "failed", error }))
    }
    this.#change(id, () => ({ took: performance.now() - since }))
    await this.#settle(id)
  }

  async #settle(id: number): Promise<void> {
    const usageId = this.exchanges.find((one) => one.id === id)?.usageId
    if (usageId === undefined) return
    const explanation = await explanationOf(usageId)
    if (explanation === undefined) return this.#change(id, () => ({ charged: "late" }))
    queries.setQueryData(["call", usageId], explanation)
    this.#change(id, () => ({ charged: explanation.charged_usd }))
  }

  #change(id: number, to: (was: Exchange) => Partial<Exchange>): void {
    if (!this.exchanges.some((one) => one.id === id)) return
    this.#set(this.exchanges.map((one) => (one.id === id ? { ...one, ...to(one) } : one)))
  }

  #set(exchanges: ReadonlyArray<Exchange>): void {
    this.exchanges = exchanges
    for (const listener of this.#listeners) listener()
  }
}

let current: { readonly of: string; readonly conversation: Conversation } | undefined

/** Returns the conversation for `of`, which identifies a user in a tenant. Clears the previous conversation if `of` has changed. */
export const conversationOf = (of: string): Conversation => {
  if (current?.of !== of) {
    current?.conversation.clear()
    current = { of, conversation: new Conversation() }
  }
  return current.conversation
}
