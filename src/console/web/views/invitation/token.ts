/**
 * The token of the invitation that this tab has opened. It comes behind the `#` of the address, is taken out of it before anything is shown,
 * and is kept for this tab until it was used: signing in leads away and back. It gives nothing to anybody but the owner of the address that
 * it was mailed to.
 */
const storageName = "console.invitation"

export interface Opened {
  readonly kind: "transfer" | "team"
  readonly token: string
}

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Takes in `#transfer=...` or `#team=...`; whether it was one. A link that was cut in the middle of an escape is none. */
export const takeIn = (hash: string): boolean => {
  const [, kind, text = ""] = /^#?(transfer|team)=(.+)$/.exec(hash) ?? []
  const token = decoded(text)
  if (kind === undefined || token === undefined) return false
  const found = JSON.stringify({ kind, token })
  sessionStorage.setItem(storageName, found)
  return true
}

export const opened = (): Opened | undefined => {
  const text = sessionStorage.getItem(storageName)
  return text === null ? undefined : (JSON.parse(text) as Opened)
}

export const forget = (): void => sessionStorage.removeItem(storageName)
