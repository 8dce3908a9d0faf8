/**
 * The vendors' request ids for one call, in the order of its attempts. A record contains them as one text, separated by spaces. The last id belongs
 * to the attempt that served the call, or to the last failure; `-` stands for a request without an id.
 */

/** The maximum length of the text, in characters. If it is longer, the oldest ids are dropped. */
const lengthMax = 1_000
const none = "-"

/** Returns whether a string is a valid id: printable ASCII without spaces, not empty and not too long. */
export const isVendorId = (text: string): boolean => text.length <= 200 && /^[\x21-\x7e]+$/.test(text) && text !== none

/** Adds another attempt's id. */
export const withAttempt = (before: string | undefined, id: string | undefined): string | undefined => {
  if (before === undefined) return id
  const all = `${before} ${id ?? none}`
  return all.length > lengthMax ? all.slice(all.indexOf(" ", all.length - lengthMax - 1) + 1) : all
}

/** Replaces the last attempt's id. */
export const withLast = (before: string | undefined, id: string): string =>
  before === undefined ? id : before.slice(0, before.lastIndexOf(" ") + 1) + id

export interface VendorRequests {
  /** Absent if the last attempt has no id. */
  readonly last: string | undefined
  /** The ids of the earlier, failed attempts. */
  readonly retried: ReadonlyArray<string>
}

export const vendorRequestsOf = (text: string | null | undefined): VendorRequests => {
  const ids = text === null || text === undefined ? [] : text.split(" ")
  const last = ids.at(-1)
  return { last: last === none ? undefined : last, retried: ids.slice(0, -1).filter((id) => id !== none) }
}
