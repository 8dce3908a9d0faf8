/**
 * A window of time that includes `start` and excludes `end`, so that adjacent windows neither overlap nor leave a gap.
 *
 * Where the specification is silent:
 * - A bare date given as an end includes that complete day. A window that ends before its start is empty. The summary is exact to the millisecond. A
 *   rollup is widened to whole UTC days, and its `start_date` and `end_date` repeat the request.
 */
import { day, hour, parse } from "../../kernel/Moment.ts"

export interface Window {
  /** The first instant in the window. Null if it has no start. */
  readonly start: number | null
  /** The first instant after the window. Null if it has no end. */
  readonly end: number | null
}

/** The latest instant that a `Date` can represent. It is the start of a day. */
export const forever = 8_640_000_000_000_000

/**
 * Parses `start_time` or `end_time`. Each must be a date and time. Returns `null` if it is absent, and `undefined` for a bare date or an invalid
 * value.
 */
export const instantOf = (text: string | undefined): number | null | undefined => {
  if (text === undefined) return null
  return isDate(text) ? undefined : parse(text)
}

const isDate = (text: string): boolean => text.length === "2026-03-31".length

/** Parses a start. Returns `null` if it is absent, and `undefined` if it is invalid. */
export const startOf = (text: string | undefined): number | null | undefined =>
  text === undefined ? null : parse(text)

/** Parses an end. A bare date includes that complete day. Returns `null` if the end is absent, and `undefined` if it is invalid. */
export const endOf = (text: string | undefined): number | null | undefined => {
  if (text === undefined) return null
  const instant = parse(text)
  return instant !== undefined && isDate(text) ? instant + day : instant
}

/** Extends a window to whole UTC days. A missing start becomes `-forever`, and a missing end `forever`. */
export const wholeDays = ({ end, start }: Window): { readonly start: number; readonly end: number } => ({
  start: start === null ? -forever : Math.floor(start / day) * day,
  end: end === null ? forever : Math.ceil(end / day) * day
})

/** A part of a window that consists of complete periods of `grain`. If `grain` is null, the part is shorter than an hour. */
export interface Part {
  readonly grain: number | null
  readonly start: number
  readonly end: number
}

/** Splits a window into complete days, the complete hours around them, and the remaining parts of an hour. */
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
