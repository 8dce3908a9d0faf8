/**
 * How many seconds of audio are reserved, and how many are charged.
 *
 * Where the specification is silent:
 * - A reservation is never below a second for each 1,000 bytes. Audio whose frames or samples can be counted (`Frames`) reserves its
 *   counted length if that is more.
 * - The size of any other file says nothing of its length: an M4A can play the same bytes again and again, and WebM can compress its
 *   blocks. Such a file reserves the `max_seconds` of its model at least.
 * - A vendor that reports no duration is charged for the counted length. Uncounted audio is charged by an estimate (`secondsEstimated`).
 */
import { bytesASecond } from "../../kernel/AudioForm.ts"

/** The longest audio file. */
export const fileBytesMax = 25 * 1024 * 1024

/** The limits of one file's length in seconds. */
export interface Extent {
  /** The seconds that are reserved. The charge is never higher. */
  readonly most: number
  /** The length by the file's own frames or samples; `undefined` if they cannot be counted. */
  readonly counted: number | undefined
  readonly bytes: number
}

/** `seconds` is the counted length: infinity if it is unknown. */
export const extentOf = (bytes: number, seconds: number, max_seconds: number): Extent => {
  const bySize = Math.ceil(bytes / bytesASecond)
  if (!Number.isFinite(seconds)) return { most: Math.max(bySize, max_seconds), counted: undefined, bytes }
  // Some decoders add a fraction of a second at the ends.
  return { most: Math.max(bySize, Math.ceil(seconds) + 1), counted: Math.ceil(seconds), bytes }
}

/** 32 kbit/s. Recorded speech seldom takes fewer, and music takes more. */
const usualBytesASecond = 4_000
/** Speech at 150 words a minute. */
const charactersASecond = 15
/** Models of the Whisper kind hear audio in windows of 30 seconds, and fill up the last one. */
const windowSeconds = 30

/** The estimate for audio that cannot be counted. A sparse file cannot bring it below its transcript's length, or below one window. */
const secondsEstimated = (bytes: number, text: string): number =>
  Math.max(windowSeconds, Math.ceil(bytes / usualBytesASecond), Math.ceil(text.length / charactersASecond))

/** How long the audio was, where that is known, and the seconds that are charged. */
export interface Length {
  /** The provider's figure, where it can be true. */
  readonly duration: number | undefined
  readonly seconds: number
  readonly usage_source: "provider" | "estimated"
}

/**
 * The seconds that are charged. The provider's figure is believed up to the reservation. A figure that is longer, negative or not a
 * number is charged at the reservation, and marked as estimated.
 */
export const lengthOf = (reported: unknown, { bytes, counted, most }: Extent, text: string): Length => {
  if (reported === undefined || reported === null) {
    const seconds = Math.min(most, Math.max(1, counted ?? secondsEstimated(bytes, text)))
    return { duration: undefined, seconds, usage_source: "estimated" }
  }
  // Some providers write the number as a text.
  const duration = typeof reported === "string" && /^\d+(\.\d+)?$/.test(reported) ? Number(reported) : reported
  return typeof duration === "number" && duration >= 0 && Math.ceil(duration) <= most
    ? { duration, seconds: Math.ceil(duration), usage_source: "provider" }
    : { duration: undefined, seconds: most, usage_source: "estimated" }
}
