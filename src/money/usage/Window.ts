/**
 * A stretch of time that is asked about: from `start` on, up to but without `end`, so that windows laid end to end neither
 * overlap nor leave a gap.
 *
 * Where the specification is silent:
 * - Windows: the start is inside, the end is not; a bare date as an end covers its whole day; an end before the start is empty.
 *   The summary is exact to the millisecond; a rollup is widened to every UTC day that it touches, and `start_date` and `end_date`
 *   echo what was asked.
 */
import { day, hour, parse } from "../../kernel/Moment.ts"

export interface Window {
  /** The first instant inside; null: from the beginning. */
  readonly start: number | null
  /** The first instant behind it; null: without an end. */
  readonly end: number | null
}

/** The last instant that a date can name, and the start of a day. */
export const forever = 8_640_000_000_000_000

/** The instant that a text names to the second, as `start_time` and `end_time` want it; a bare date names none. */
export const instantOf = (text: string | undefined): number | null | undefined => {
  if (text === undefined) return null
  return isDate(text) ? undefined : parse(text)
}

const isDate = (text: string): boolean => text.length === "2026-03-31".length

/** The start that a text names; `undefined` when it names none. */
export const startOf = (text: string | undefined): number | null | undefined =>
  text === undefined ? null : parse(text)

/** The end that a text names. A bare date names its whole day, as people mean it: `2026-03-31` ends with that day. */
export const endOf = (text: string | undefined): number | null | undefined => {
  if (text === undefined) return null
  const instant = parse(text)
  return instant !== undefined && isDate(text) ? instant + day : instant
}

/** The whole UTC days that the window touches. */
export const wholeDays = ({ end, start }: Window): { readonly start: number; readonly end: number } => ({
  start: start === null ? -forever : Math.floor(start / day) * day,
  end: end === null ? forever : Math.ceil(end / day) * day
})

/** A part of a window: whole periods of `grain`, or, without one, a stretch shorter than the finest. */
export interface Part {
  readonly grain: number | null
  readonly start: number
  readonly end: number
}

/** Cuts a window into whole days, whole hours at their two ends, and what is left of an hour at the ends of those. */
export const partsOf = ({ end, start }: Window): ReadonlyArray<Part> =>
  cut(start ?? -forever, end ?? forever, [day, hour])

const cut = (start: number, end: number, [grain, ...finer]: ReadonlyArray<number>): ReadonlyArray<Part> => {
  if (start >= end) return []
  if (grain === undefined) return [{ grain: null, start, end }]
  const first = Math.ceil(start / grain) * grain
  const last = Math.floor(end / grain) * grain
  return first < last
    ? [...cut(start, first, finer), { grain, start: first, end: last }, ...cut(last, end, finer)]
    : cut(start, end, finer)
}
