/** Handles SIGHUP. A signal during the start waits until the service can reload. A signal during the stop does nothing. */

let isHeard = false
let hasCome = false
let onHangup: (() => void) | undefined

/** After this call SIGHUP does not end the process. */
export const hear = (): void => {
  if (isHeard) return
  isHeard = true
  process.on("SIGHUP", () => {
    if (onHangup === undefined) hasCome = true
    else onHangup()
  })
}

/** Calls `reload` for each SIGHUP, including one that has already arrived. Returns a function that stops this. */
export const answer = (reload: () => void): (() => void) => {
  hear()
  onHangup = reload
  if (hasCome) reload()
  hasCome = false
  return () => {
    onHangup = undefined
  }
}
