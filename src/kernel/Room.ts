/** Room for one long answer, out of the bytes that the process holds at once. */
export interface Room {
  /** How many bytes are held. */
  readonly held: number
  /** Takes room before an upstream is asked. Refuses while other answers of the same account wait for room. */
  readonly reserve: (bytes: number) => boolean
  /** Takes this many bytes more. Answers whether there was room. */
  readonly take: (bytes: number) => boolean
  /**
   * Holds `bytes` in all, as soon as there is room for all of them at once, so that two answers never wait for each other. Returns
   * `undefined` if there is room now. Otherwise returns a function that ends the wait, and later calls `then` with the outcome.
   */
  readonly claim: (bytes: number, then: (granted: boolean) => void) => (() => void) | undefined
  /** Holds this many from now on, even beyond the budget. */
  readonly become: (bytes: number) => void
}

/** Bytes reserved for an answer of unknown length. Most are shorter. */
export const usualAnswer = 16 * 1024
