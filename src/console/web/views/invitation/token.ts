/**
 * The token of the invitation that this tab has opened. It comes behind the `#` of the address, is taken out of it before anything is shown,
 * and is kept for this tab until it was used: signing in leads away and back.
 */
const storageName = "console.invitation"

export interface Opened {
  readonly kind: "transfer" | "team"
  readonly token: string
}

/** Takes in `#transfer=...` or `#team=...`; whether it was one. */
export const takeIn = (hash: string): boolean => {
  const [, kind, token] = /^#?(transfer|team)=(.+)$/.exec(hash) ?? []
  if (kind === undefined || token === undefined) return false
  sessionStorage.setItem(storageName, JSON.stringify({ kind, token: decodeURIComponent(token) }))
  return true
}

export const opened = (): Opened | undefined => {
  const text = sessionStorage.getItem(storageName)
  return text === null ? undefined : (JSON.parse(text) as Opened)
}

export const forget = (): void => sessionStorage.removeItem(storageName)
