/**
 * Decides which verifier keys the page trusts. The browser stores the first keys that it receives and trusts them from then on. If the service later
 * returns another key for the log, the page warns. Only the user can tell a replaced key from a second log.
 */
import { apiRoot } from "../../app/Base.ts"

/** The name contains the URL, because an origin can serve several services. */
const stored = `console.log-keys ${apiRoot}`

interface Pinned {
  readonly keys: ReadonlyArray<string>
  /** When the keys were first seen, as an ISO time. */
  readonly since: string
}

export interface Trust {
  readonly keys: ReadonlyArray<string>
  /** The service's keys that contradict the stored keys. */
  readonly changed: ReadonlyArray<string>
  readonly since: string
}

/** Returns whether the value has the form `<name>+<id>+<base64>` (C2SP signed-note). */
const isKey = (value: unknown): value is string =>
  typeof value === "string" && /^[^\s+]+\+[0-9a-f]{8}\+[A-Za-z0-9+/=]+$/.test(value)

const isPinned = (value: unknown): value is Pinned => {
  const { keys, since } = (value ?? {}) as Partial<Record<keyof Pinned, unknown>>
  return Array.isArray(keys) && keys.every(isKey) && typeof since === "string"
}

const read = (): Pinned | undefined => {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(stored) ?? "null")
    return isPinned(value) ? value : undefined
  } catch {
    return undefined
  }
}

const write = (keys: ReadonlyArray<string>, since: string): void =>
  localStorage.setItem(stored, JSON.stringify({ keys, since } satisfies Pinned))

const keyName = (key: string): string => key.split("+", 1)[0]!

/**
 * Returns whether the key belongs to a log. The first byte is the key's type: 1 (Ed25519) for a log, another type for a witness. A key that cannot be
 * decoded counts as a log's.
 */
const isLogKey = (key: string): boolean => {
  try {
    return atob(key.slice(key.indexOf("+", key.indexOf("+") + 1) + 1)).charCodeAt(0) === 1
  } catch {
    return true
  }
}

/**
 * Compares the service's keys with the stored keys. Stores the service's keys if none are stored yet. Adds a witness with a new name without a
 * warning.
 */
export const trustIn = (served: ReadonlyArray<string>, now: string): Trust => {
  const pinned = read()
  if (pinned === undefined) {
    if (served.length > 0) write(served, now)
    return { keys: served, changed: [], since: now }
  }
  const names = new Set(pinned.keys.map(keyName))
  const fresh = served.filter((key) => !pinned.keys.includes(key))
  const changed = fresh.filter((key) => isLogKey(key) || names.has(keyName(key)))
  const added = fresh.filter((key) => !changed.includes(key))
  const keys = [...pinned.keys, ...added]
  if (added.length > 0) write(keys, pinned.since)
  return { keys, changed, since: pinned.since }
}

/** Adds these keys to the stored keys. */
export const trustToo = (keys: ReadonlyArray<string>, now: string): void => {
  const pinned = read()
  write([...new Set([...(pinned?.keys ?? []), ...keys])], pinned?.since ?? now)
}
