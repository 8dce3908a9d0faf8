/** A time, relative or absolute. Hovering or tapping shows the exact time. */
import { useSyncExternalStore } from "react"
import { day, dayAndTime, exactly, relative, time } from "../moments.ts"

const listeners = new Set<() => void>()
let now = Date.now()
let timer: ReturnType<typeof setInterval> | undefined

/** Subscribes to the shared clock, which ticks only while a component uses it. */
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

/** Returns the current time in milliseconds, at most 15 s old. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => now)

interface WhenProps {
  readonly at: string
  /** `ago` is relative ("3 min. ago"). `moment` is the day and time, and `exact` adds the seconds and the time zone. */
  readonly as?: "ago" | "day" | "moment" | "time" | "exact"
}

const formats = { day, moment: dayAndTime, time, exact: exactly }

export const When = ({ as = "ago", at }: WhenProps) => {
  const now = useNow()
  // The shared clock ticks every 15 s, so a recent event can be ahead of the clock.
  const text = as === "ago" ? relative(at, Math.max(now, Math.min(Date.now(), Date.parse(at)))) : formats[as](at)
  return (
    <time dateTime={at} data-tip={exactly(at)} className="when">
      {text}
    </time>
  )
}
