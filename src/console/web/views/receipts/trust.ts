/**
 * Decides which verifier keys the page trusts. The browser saves the first keys that it receives and trusts them from then on. If the
 * service later returns another key for the log or a known witness, the page warns, because only the user can tell a rotated key from a forged one.
 */
import { apiRoot } from "../../app/Base.ts"
import type { Schemas } from "../../app/Client.ts"

/** The storage key contains the URL, because an origin can host several services. */
const storageKey = `console.log-keys ${apiRoot}`

/** A witness's key, and when the browser first received or trusted it, as an ISO time. */
export interface WitnessKey {
  readonly key: string
  readonly since: string
}

interface Pinned {
  readonly keys: ReadonlyArray<string>
  /** When the first keys were received, as an ISO time. */
  readonly since: string
  readonly witnesses: ReadonlyArray<WitnessKey>
}

export interface Trust {
  /** The log's verifier keys. */
  readonly keys: ReadonlyArray<string>
  readonly since: string
  readonly witnesses: ReadonlyArray<WitnessKey>
  /** The service's keys that conflict with the saved ones. */
  readonly changed: Changed
}

export interface Changed {
  readonly keys: ReadonlyArray<string>
  readonly witnesses: ReadonlyArray<string>
}

/** Returns whether the value has the form `<name>+<id>+<base64>` (C2SP signed-note). */
const isKey = (value: unknown): value is string =>
  typeof value === "string" && /^[^\s+]+\+[0-9a-f]{8}\+[A-Za-z0-9+/=]+$/.test(value)

export const keyName = (key: string): string => key.split("+", 1)[0]!

/** Returns whether the key has the cosignature type (first byte 4). Any other key could pass for a log key. */
const isCosigner = (key: unknown): key is string => {
  try {
    return isKey(key) && atob(key.slice(key.indexOf("+", key.indexOf("+") + 1) + 1)).charCodeAt(0) === 4
  } catch {
    return false
  }
}

const isWitness = (value: unknown): value is WitnessKey => {
  const { key, since } = (value ?? {}) as Partial<Record<keyof WitnessKey, unknown>>
  return isCosigner(key) && typeof since === "string"
}

const read = (): Pinned | undefined => {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(storageKey) ?? "null")
    const { keys, since, witnesses = [] } = (value ?? {}) as Partial<Record<keyof Pinned, unknown>>
    const isPinned =
      Array.isArray(keys) &&
      keys.every(isKey) &&
      typeof since === "string" &&
      Array.isArray(witnesses) &&
      witnesses.every(isWitness)
    return isPinned ? { keys, since, witnesses } : undefined
  } catch {
    return undefined
  }
}

const write = (pinned: Pinned): void => localStorage.setItem(storageKey, JSON.stringify(pinned))

/** Compares the service's keys with the saved keys, or saves them if there are none yet. A witness with a new name is saved without a warning. */
export const evaluateTrust = (served: Schemas["LogKeys"], now: string): Trust => {
  const pinned = read() ?? { keys: served.keys, since: now, witnesses: [] }
  const cosigners = served.witnesses.map(({ key }) => key).filter(isCosigner)
  const fresh = cosigners.filter((key) => pinned.witnesses.every((one) => one.key !== key))
  const isReplaced = (key: string) => pinned.witnesses.some((one) => keyName(one.key) === keyName(key))
  const added = fresh.filter((key) => !isReplaced(key)).map((key) => ({ key, since: now }))
  const trusted = { ...pinned, witnesses: [...pinned.witnesses, ...added] }
  // The log has no key before its first checkpoint.
  if (pinned.keys.length > 0) write(trusted)
  return {
    ...trusted,
    changed: { keys: served.keys.filter((key) => !pinned.keys.includes(key)), witnesses: fresh.filter(isReplaced) }
  }
}

/** Adds these keys to the trusted keys. */
export const trustKeys = ({ keys, witnesses }: Changed, now: string): void => {
  const { keys: earlier, since, witnesses: known } = read() ?? { keys: [], since: now, witnesses: [] }
  write({
    keys: [...new Set([...earlier, ...keys])],
    since,
    witnesses: [...known, ...witnesses.map((key) => ({ key, since: now }))]
  })
}
