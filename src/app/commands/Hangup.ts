/** Handles SIGHUP. A signal during startup waits until the service can reload, and a signal during shutdown does nothing. */

let isHeard = false
let hasCome = false
let onHangup: (() => void) | undefined

/** Records SIGHUP from this call on, so that the signal no longer ends the process. */
export const hear = (): void => {
  if (isHeard) return
  isHeard = true
  process.on("SIGHUP", () => {
    if (onHangup === undefined) hasCome = true
    else onHangup()
  })
}

/** Calls `reload` for each SIGHUP, including a signal that has already arrived. The returned function removes the handler. */
export const answer = (reload: () => void): (() => void) => {
  hear()
  onHangup = reload
  if (hasCome) reload()
  hasCome = false
  return () => {
    onHangup = undefined
  }
}
