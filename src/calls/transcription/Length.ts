/**
 * Computes the seconds of audio to reserve and to charge.
 *
 * Where the specification is silent:
 * - At least one second is reserved per 1,000 bytes. If the frames or samples can be counted (`Frames`) and show a longer duration, that duration is
 *   reserved instead.
 * - If the audio cannot be counted, at least the model's `max_seconds` is reserved. The size of an uncountable file does not bound its duration,
 *   because an M4A file can play the same bytes repeatedly and WebM can compress its blocks.
 * - If a vendor reports no duration, the counted duration is charged. For audio that cannot be counted, an estimate is charged (`secondsEstimated`).
 */
import { bytesASecond } from "../../kernel/AudioForm.ts"

export const fileBytesMax = 25 * 1024 * 1024

/** The bounds on a file's duration. */
export interface Extent {
  /** The seconds to reserve. The charge never exceeds them. */
  readonly most: number
  /** The seconds counted from frames or samples, or `undefined` if they cannot be counted. */
  readonly counted: number | undefined
  readonly bytes: number
}

/** Computes the bounds. `seconds` is the counted duration, or infinity if it is unknown. */
export const extentOf = (bytes: number, seconds: number, max_seconds: number): Extent => {
  const bySize = Math.ceil(bytes / bytesASecond)
  if (!Number.isFinite(seconds)) return { most: Math.max(bySize, max_seconds), counted: undefined, bytes }
  // Some decoders add a fraction of a second at the beginning and at the end.
  return { most: Math.max(bySize, Math.ceil(seconds) + 1), counted: Math.ceil(seconds), bytes }
}

/** The assumed bytes per second: 32 kbit/s. Recorded speech is seldom encoded at a lower rate, and music is usually encoded at a higher one. */
const assumedBytesPerSecond = 4_000
/** The assumed speed of speech: 150 words per minute. */
const charactersPerSecond = 15
/** The window of models like Whisper, in seconds. They pad the last window. */
const windowSeconds = 30

/** Estimates the duration of audio that cannot be counted. A sparse file counts as at least one window and as the time to speak its transcript. */
const secondsEstimated = (bytes: number, text: string): number =>
  Math.max(windowSeconds, Math.ceil(bytes / assumedBytesPerSecond), Math.ceil(text.length / charactersPerSecond))

/** The audio's duration, if known, and the seconds to charge. */
export interface Length {
  /** The provider's figure in seconds, if it is plausible. */
  readonly duration: number | undefined
  readonly seconds: number
  readonly usage_source: "provider" | "estimated"
}

/**
 * Computes the seconds to charge. The provider's figure is accepted up to the reservation. If the figure is larger, negative or not a number, the
 * full reservation is charged and marked as estimated.
 */
export const lengthOf = (reported: unknown, { bytes, counted, most }: Extent, text: string): Length => {
  if (reported === undefined || reported === null) {
    const seconds = Math.min(most, Math.max(1, counted ?? secondsEstimated(bytes, text)))
    return { duration: undefined, seconds, usage_source: "estimated" }
  }
  // Some providers send the number as a string.
  const duration = typeof reported === "string" && /^\d+(\.\d+)?$/.test(reported) ? Number(reported) : reported
  return typeof duration === "number" && duration >= 0 && Math.ceil(duration) <= most
    ? { duration, seconds: Math.ceil(duration), usage_source: "provider" }
    : { duration: undefined, seconds: most, usage_source: "estimated" }
}
