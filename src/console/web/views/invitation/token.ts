/**
 * This tab's invitation token. It arrives in the URL's fragment (`#`). The page removes the token from the URL before rendering. The tab stores it
 * until it is used, because signing in navigates away and back. Only the owner of the invited address can redeem it.
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

/** Saves the token from `#transfer=...` or `#team=...`. Returns `false` if there is none or it has an invalid escape sequence. */
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
