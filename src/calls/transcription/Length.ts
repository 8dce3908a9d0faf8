/**
 * The seconds of audio to reserve and to charge.
 *
 * Where the specification is silent:
 * - A reservation is never below a second for each 1,000 bytes. Audio whose frames or samples can be counted (`Frames`) reserves its counted
 *   length if that is more.
 * - The size of a file that cannot be counted does not bound its length: an M4A can play the same bytes repeatedly, and WebM can compress its
 *   blocks. Such a file reserves at least the `max_seconds` of its model.
 * - If a vendor reports no duration, the counted length is charged. For uncounted audio, an estimate is charged (`secondsEstimated`).
 */
import { bytesASecond } from "../../kernel/AudioForm.ts"

/** The longest audio file. */
export const fileBytesMax = 25 * 1024 * 1024

/** The limits of one file's length in seconds. */
export interface Extent {
  /** The seconds to reserve. The charge is never higher. */
  readonly most: number
  /** The length by the file's own frames or samples; `undefined` if they cannot be counted. */
  readonly counted: number | undefined
  readonly bytes: number
}

/** `seconds` is the counted length, infinity if unknown. */
export const extentOf = (bytes: number, seconds: number, max_seconds: number): Extent => {
  const bySize = Math.ceil(bytes / bytesASecond)
  if (!Number.isFinite(seconds)) return { most: Math.max(bySize, max_seconds), counted: undefined, bytes }
  // Some decoders add a fraction of a second at the beginning and end.
  return { most: Math.max(bySize, Math.ceil(seconds) + 1), counted: Math.ceil(seconds), bytes }
}

/** 32 kbit/s. Recorded speech seldom takes fewer, and music takes more. */
const usualBytesASecond = 4_000
/** Speech at 150 words a minute. */
const charactersASecond = 15
/** Models like Whisper process audio in windows of 30 seconds, and pad the last one. */
const windowSeconds = 30

/** The estimate for uncounted audio. A sparse file counts at least its transcript's length, and at least one window. */
const secondsEstimated = (bytes: number, text: string): number =>
  Math.max(windowSeconds, Math.ceil(bytes / usualBytesASecond), Math.ceil(text.length / charactersASecond))

/** The audio's duration, if known, and the seconds to charge. */
export interface Length {
  /** The provider's figure, if plausible. */
  readonly duration: number | undefined
  readonly seconds: number
  readonly usage_source: "provider" | "estimated"
}

/**
 * The seconds to charge. The provider's figure is accepted up to the reservation. A figure that is longer, negative or not a number is charged
 * at the reservation and marked as estimated.
 */
export const lengthOf = (reported: unknown, { bytes, counted, most }: Extent, text: string): Length => {
  if (reported === undefined || reported === null) {
    const seconds = Math.min(most, Math.max(1, counted ?? secondsEstimated(bytes, text)))
    return { duration: undefined, seconds, usage_source: "estimated" }
  }
  // Some providers write the number as a string.
  const duration = typeof reported === "string" && /^\d+(\.\d+)?$/.test(reported) ? Number(reported) : reported
  return typeof duration === "number" && duration >= 0 && Math.ceil(duration) <= most
    ? { duration, seconds: Math.ceil(duration), usage_source: "provider" }
    : { duration: undefined, seconds: most, usage_source: "estimated" }
}
