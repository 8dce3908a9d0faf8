/** The share of one long answer in the process's byte budget. */
export interface Room {
  /** The number of bytes in use. */
  readonly held: number
  /** Reserves bytes before the request to an upstream. Refuses while other answers of the same account wait for bytes. */
  readonly reserve: (bytes: number) => boolean
  /** Takes additional bytes. Returns whether the budget had them. */
  readonly take: (bytes: number) => boolean
  /**
   * Raises the share to `bytes` in total, in one step, so that two answers never wait for each other. Returns `undefined` if the budget has them now.
   * Otherwise returns a function that cancels the wait, and later calls `then` with the result.
   */
  readonly claim: (bytes: number, then: (granted: boolean) => void) => (() => void) | undefined
  /** Sets the share to this many bytes, even beyond the budget. */
  readonly become: (bytes: number) => void
}

/** Bytes reserved for an answer of unknown length. Most are shorter. */
export const usualAnswer = 16 * 1024
