/** The operator's live figures for the last minute. */
import { useSyncExternalStore } from "react"
import { Live, useLiveState } from "../app/Live.ts"
import type { Usd } from "../money.ts"
import { operatorSession } from "./OperatorSession.ts"

/** The payload of a `figures` event (`LiveFigures` in the service). The contract declares the stream as plain text and does not describe it. */
export interface Figures {
  readonly at: string
  readonly calls_per_second: number
  readonly reserved: Usd
  readonly open_calls: number
  readonly escrowed: Usd
  readonly unsettled: number
  readonly loops: ReadonlyArray<{ readonly loop: string; readonly trouble: string | null }>
}

export const operatorLive = new Live("/v1/operator/events", operatorSession)

const lengthMax = 60
let recent: ReadonlyArray<Figures> = []
const listeners = new Set<() => void>()

operatorLive.on(({ data, type }) => {
  if (type !== "figures") return
  recent = [...recent.slice(1 - lengthMax), data as Figures]
  for (const listener of listeners) listener()
})

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Returns up to sixty of the latest figures, newest last. */
export const useFigures = (): ReadonlyArray<Figures> => useSyncExternalStore(subscribe, () => recent)

/** Returns the latest figures, or `undefined` before the first event or if the stream is not connected. */
export const useNewest = (): Figures | undefined => {
  const figures = useFigures()
  return useLiveState(operatorLive) === "open" ? figures.at(-1) : undefined
}
