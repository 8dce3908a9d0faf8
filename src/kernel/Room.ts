/** One response's share of the process's byte budget. */
export interface Room {
  readonly held: number
  /**
   * Reserves bytes before the request to an upstream. Returns `false` if the budget does not allow them or if other responses for the account are
   * waiting for bytes.
   */
  readonly reserve: (bytes: number) => boolean
  /** Takes additional bytes if the budget allows them. Returns whether it does. */
  readonly take: (bytes: number) => boolean
  /**
   * Raises the share to a total of `bytes` in one step, so that two responses never wait for each other. Returns `undefined` if the bytes are
   * available now. Otherwise, it calls `then` with the result later and returns a function that cancels the wait.
   */
  readonly claim: (bytes: number, then: (granted: boolean) => void) => (() => void) | undefined
  /** Sets the share to this many bytes, even if that exceeds the budget. */
  readonly become: (bytes: number) => void
}

/** The bytes reserved for a response of unknown length. Most responses are shorter. */
export const usualResponseBytes = 16 * 1024
