/** How long audio is: the longest that its bytes can last, and what a provider says. */

/** The longest audio file. */
export const fileBytesMax = 25 * 1024 * 1024

/** The longest that audio of so many bytes can last: a second for each 1,000 bytes. It bounds what is set aside and what is charged. */
export const secondsMost = (bytes: number): number => Math.ceil(bytes / 1_000)
/** Where the provider says nothing: 16 kilobytes a second, the usual measure of MP3. */
const secondsGuessed = (bytes: number): number => Math.ceil(bytes / 16_000)

/** How long the audio was, as far as that is known, and the seconds that are charged. */
export interface Length {
  /** What the provider says, where that can be true. */
  readonly duration: number | undefined
  readonly seconds: number
  readonly usage_source: "provider" | "estimated"
}

/**
 * The seconds of an answer about a file of so many bytes. What the provider says is believed as far as the bytes can last; anything
 * else that it says (longer, below zero, no number) is charged as the longest that they can, and estimated.
 */
export const lengthOf = (reported: unknown, bytes: number): Length => {
  if (reported === undefined || reported === null) {
    return { duration: undefined, seconds: secondsGuessed(bytes), usage_source: "estimated" }
  }
  // Some providers write the number as a text.
  const duration = typeof reported === "string" && /^\d+(\.\d+)?$/.test(reported) ? Number(reported) : reported
  return typeof duration === "number" && duration >= 0 && Math.ceil(duration) <= secondsMost(bytes)
    ? { duration, seconds: Math.ceil(duration), usage_source: "provider" }
    : { duration: undefined, seconds: secondsMost(bytes), usage_source: "estimated" }
}
