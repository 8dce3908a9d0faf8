/**
 * The seconds of audio to reserve and to charge.
 *
 * Where the specification is silent:
 * - At least one second is reserved per 1,000 bytes. If the frames or samples can be counted (`Frames`), the counted length is reserved if it is
 *   longer.
 * - If the audio cannot be counted, at least the model's `max_seconds` is reserved. The file size does not bound its length, because an M4A can play
 *   the same bytes repeatedly, and WebM can compress its blocks.
 * - If a vendor reports no duration, the counted length is charged. For uncounted audio, an estimate is charged (`secondsEstimated`).
 */
import { bytesASecond } from "../../kernel/AudioForm.ts"

/** The audio file limit, in bytes. */
export const fileBytesMax = 25 * 1024 * 1024

/** The limits of a file's duration. */
export interface Extent {
  /** The seconds to reserve. The charge is never higher. */
  readonly most: number
  /** The seconds counted from frames or samples; `undefined` if they cannot be counted. */
  readonly counted: number | undefined
  readonly bytes: number
}

/** Returns the limits. `seconds` is the counted length; infinity if it is unknown. */
export const extentOf = (bytes: number, seconds: number, max_seconds: number): Extent => {
  const bySize = Math.ceil(bytes / bytesASecond)
  if (!Number.isFinite(seconds)) return { most: Math.max(bySize, max_seconds), counted: undefined, bytes }
  // Some decoders add a fraction of a second at the beginning and end.
  return { most: Math.max(bySize, Math.ceil(seconds) + 1), counted: Math.ceil(seconds), bytes }
}

/** 32 kbit/s. Recorded speech seldom uses a lower rate, and music uses a higher one. */
const usualBytesASecond = 4_000
/** Speech at 150 words a minute. */
const charactersASecond = 15
/** Models like Whisper process audio in windows of 30 seconds and pad the last window. */
const windowSeconds = 30

/** The estimate for uncounted audio. A sparse file counts as at least its transcript's length and one window. */
const secondsEstimated = (bytes: number, text: string): number =>
  Math.max(windowSeconds, Math.ceil(bytes / usualBytesASecond), Math.ceil(text.length / charactersASecond))

/** The audio's duration, if known, and the seconds to charge. */
export interface Length {
  /** The provider's figure in seconds, if it is plausible. */
  readonly duration: number | undefined
  readonly seconds: number
  readonly usage_source: "provider" | "estimated"
}

/**
 * The seconds to charge. The provider's figure is accepted up to the reservation. If it is larger, negative or not a number, the reservation is
 * charged and marked as estimated.
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
