/** An instant: relative, or as a day. A hover or tap shows it exactly, in the reader's time zone. */
import { useSyncExternalStore } from "react"
import { day, dayAndTime, exactly, relative, time } from "../moments.ts"

const listeners = new Set<() => void>()
let now = Date.now()
let timer: ReturnType<typeof setInterval> | undefined

/** One shared clock, which ticks only while the page is visible. */
const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener)
  timer ??= setInterval(() => {
    now = Date.now()
    for (const one of listeners) one()
  }, 15_000)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** The time, at most a quarter of a minute old. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => now)

interface WhenProps {
  readonly at: string
  /** `ago`: "3 min. ago". `day`, `moment`: day and time. `time`: the time only, for lists of today. `exact`: full precision. */
  readonly as?: "ago" | "day" | "moment" | "time" | "exact"
}

const written = { day, moment: dayAndTime, time, exact: exactly }

export const When = ({ as = "ago", at }: WhenProps) => {
  const now = useNow()
  // A recent event may be ahead of a clock that ticks every fifteen seconds.
  const text = as === "ago" ? relative(at, Math.max(now, Math.min(Date.now(), Date.parse(at)))) : written[as](at)
  return (
    <time dateTime={at} data-tip={exactly(at)} className="when">
      {text}
    </time>
  )
}
