/**
 * The vendors' ids of the requests of one call, in the order of its attempts. A record stores them as one text with spaces between. The last one
 * served the call, or was its last failure; `-` stands for a request without an id.
 */

/** The maximum length of the text. Beyond it, the oldest ids are dropped. */
const lengthMax = 1_000
const none = "-"

/** Whether a text can be an id: printable ASCII without spaces, not empty and not too long. */
export const isVendorId = (text: string): boolean => text.length <= 200 && /^[\x21-\x7e]+$/.test(text) && text !== none

/** Adds the id of a further attempt. */
export const withAttempt = (before: string | undefined, id: string | undefined): string | undefined => {
  if (before === undefined) return id
  const all = `${before} ${id ?? none}`
  return all.length > lengthMax ? all.slice(all.indexOf(" ", all.length - lengthMax - 1) + 1) : all
}

/** Replaces the id of the last attempt. */
export const withLast = (before: string | undefined, id: string): string =>
  before === undefined ? id : before.slice(0, before.lastIndexOf(" ") + 1) + id

export interface VendorRequests {
  /** Absent if the last attempt has no id. */
  readonly last: string | undefined
  /** The ids of the attempts before it, all of them failures. */
  readonly retried: ReadonlyArray<string>
}

export const vendorRequestsOf = (text: string | null | undefined): VendorRequests => {
  const ids = text === null || text === undefined ? [] : text.split(" ")
  const last = ids.at(-1)
  return { last: last === none ? undefined : last, retried: ids.slice(0, -1).filter((id) => id !== none) }
}
