/** A tool's calls in this tab, newest first. They are in memory, for one user in one tenant, and survive navigation but not a reload. */
import { useSyncExternalStore } from "react"
import { fetchWith } from "../../app/Client.ts"
import { personSession } from "../../app/PersonSession.ts"
import { refusalOf } from "../../app/Refusal.ts"

export interface CallResult<Output> {
  readonly output: Output
  /** In USD, as a decimal string. */
  readonly charged: string | undefined
  readonly usageId: string | undefined
}

export interface Run<Input, Output> {
  readonly id: number
  readonly input: Input
  readonly state: "running" | "whole" | "stopped" | "failed"
  readonly answered?: CallResult<Output>
  readonly error?: unknown
  readonly took?: number
}

/** Sends a call with the session's token. Rejects with `Refusal`, `Unreachable` or `SignedOut`. */
export const sendCall = async <Output>(
  request: Request,
  read: (response: Response) => Promise<Output>
): Promise<CallResult<Output>> => {
  const response = await fetchWith(personSession)(request)
  if (!response.ok) throw await refusalOf(response)
  return {
    output: await read(response),
    charged: response.headers.get("x-charge-usd") ?? undefined,
    usageId: response.headers.get("x-usage-id") ?? undefined
  }
}

interface Tool<Input, Output> {
  readonly call: (input: Input, signal: AbortSignal) => Promise<CallResult<Output>>
  /** Releases an output's resources when it is discarded. */
  readonly forget?: (output: Output) => void
}

export class Runs<Input, Output> {
  all: ReadonlyArray<Run<Input, Output>> = []
  #of = ""
  #next = 1
  #stop: AbortController | undefined
  readonly #tool: Tool<Input, Output>
  readonly #listeners = new Set<() => void>()

  constructor(tool: Tool<Input, Output>) {
    this.#tool = tool
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly stop = (): void => this.#stop?.abort()

  readonly clear = (): void => {
    this.stop()
    for (const { answered } of this.all) {
      if (answered !== undefined) this.#tool.forget?.(answered.output)
    }
    this.#set([])
  }

  /** Sets the owner, a user in a tenant. Clears a previous owner's calls. */
  belongTo(owner: string): void {
    if (this.#of !== owner && this.all.length > 0) this.clear()
    this.#of = owner
  }

  readonly send = async (input: Input): Promise<void> => {
    if (this.all[0]?.state === "running") return
    const id = this.#next++
    const stop = new AbortController()
    this.#stop = stop
    this.#set([{ id, input, state: "running" }, ...this.all])
    const since = performance.now()
    const end = (change: Partial<Run<Input, Output>>): void =>
      this.#set(this.all.map((one) => (one.id === id ? { ...one, ...change, took: performance.now() - since } : one)))
    try {
      end({ state: "whole", answered: await this.#tool.call(input, stop.signal) })
    } catch (error) {
      end(stop.signal.aborted ? { state: "stopped" } : { state: "failed", error })
    }
  }

  #set(all: ReadonlyArray<Run<Input, Output>>): void {
    this.all = all
    for (const listener of this.#listeners) listener()
  }
}

export const useRuns = <Input, Output>(runs: Runs<Input, Output>): ReadonlyArray<Run<Input, Output>> => {
  const { state } = personSession
  const owner = state.kind === "open" ? `${state.grant.account_id} ${state.grant.tenant_id}` : ""
  runs.belongTo(owner)
  return useSyncExternalStore(runs.subscribe, () => runs.all)
}
