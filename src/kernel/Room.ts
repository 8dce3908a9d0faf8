/** The share of one response in the process's byte budget. */
export interface Room {
  /** The number of bytes in use. */
  readonly held: number
  /** Reserves bytes before the request to an upstream. Refuses while other responses for the same account wait for bytes. */
  readonly reserve: (bytes: number) => boolean
  /** Takes additional bytes. Returns whether the budget had them. */
  readonly take: (bytes: number) => boolean
  /**
   * Raises the share to `bytes` in total, in one step, so that two responses never wait for each other. Returns `undefined` if the budget has the
   * bytes now. Otherwise returns a function that cancels the wait, and later calls `then` with the result.
   */
  readonly claim: (bytes: number, then: (granted: boolean) => void) => (() => void) | undefined
  /** Sets the share to this many bytes, even beyond the budget. */
  readonly become: (bytes: number) => void
}

/** Bytes reserved for a response of unknown length. Most responses are shorter. */
export const usualAnswer = 16 * 1024
