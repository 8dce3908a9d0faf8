/** How long audio is: the longest that its bytes can last, and what a provider says. */
import { bytesASecond } from "../../kernel/AudioForm.ts"

/** The longest audio file. */
export const fileBytesMax = 25 * 1024 * 1024

/** The most seconds that audio of so many bytes can last: one for each 1,000 bytes. It bounds what is set aside and what is charged. */
export const secondsMost = (bytes: number): number => Math.ceil(bytes / bytesASecond)
/** The seconds that are charged where the provider reports none: one for each 16,000 bytes, the usual rate of MP3. */
const secondsEstimated = (bytes: number): number => Math.ceil(bytes / 16_000)

/** How long the audio was, where that is known, and the seconds that are charged. */
export interface Length {
  /** The provider's figure, where it can be true. */
  readonly duration: number | undefined
  readonly seconds: number
  readonly usage_source: "provider" | "estimated"
}

/**
 * The seconds that are charged for a file of so many bytes. The provider's figure is believed up to `secondsMost`. Any other figure
 * (longer, below zero, no number) is charged as `secondsMost`, and estimated.
 */
export const lengthOf = (reported: unknown, bytes: number): Length => {
  if (reported === undefined || reported === null) {
    return { duration: undefined, seconds: secondsEstimated(bytes), usage_source: "estimated" }
  }
  // Some providers write the number as a text.
  const duration = typeof reported === "string" && /^\d+(\.\d+)?$/.test(reported) ? Number(reported) : reported
  return typeof duration === "number" && duration >= 0 && Math.ceil(duration) <= secondsMost(bytes)
    ? { duration, seconds: Math.ceil(duration), usage_source: "provider" }
    : { duration: undefined, seconds: secondsMost(bytes), usage_source: "estimated" }
}
