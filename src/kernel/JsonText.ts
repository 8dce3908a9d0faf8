/** Searches JSON bytes without parsing them. */

export const quote = 0x22
export const backslash = 0x5c
const walked = 64

/**
 * Returns the position of the closing quote of the string that begins at `from`, or the length of `bytes` if there is none. Short strings are scanned
 * byte by byte. Long strings are searched with `indexOf`.
 */
export const endOfString = (bytes: Buffer, from: number): number => {
  for (let at = from; at < bytes.length;) {
    for (const stop = at + walked; at < stop; at++) {
      const byte = bytes[at]
      if (byte === quote) return at
      if (byte === backslash) at++
    }
    const found = bytes.indexOf(quote, at)
    if (found === -1) break
    let slashes = 0
    while (found - slashes > at && bytes[found - 1 - slashes] === backslash) slashes++
    if (slashes % 2 === 0) return found
    at = found + 1
  }
  return bytes.length
}

/** A member's value, in bytes. */
export interface MemberValue {
  readonly bytes: Buffer
  /** The number of members in the value's objects, including repeated names. */
  readonly members: number
}

/**
 * Finds the value of a member in an object's JSON. Returns `undefined` if the member is missing or repeated, or if the object has an escaped name,
 * because that name might repeat it.
 */
export const memberOf = (json: Buffer, name: string): MemberValue | undefined => {
  let depth = 0
  let members = 0
  /** The start of the last name on the outermost level. */
  let named = 0
  let from = 0
  let to = 0
  let within = false
  for (let at = 0; at < json.length; at++) {
    switch (json[at]) {
      case quote: {
        const end = endOfString(json, at + 1)
        if (depth === 1) named = at + 1
        at = end
        break
      }
      case 0x3a: // :
        if (depth > 1) {
          if (within) members++
          break
        }
        // The colon follows a name, possibly after spaces.
        if (isEscaped(json, named, at)) return undefined
        if (!isName(json, named, name)) break
        if (to > 0) return undefined
        within = true
        from = at + 1
        break
      case 0x5b: // [
      case 0x7b: // {
        depth++
        break
      case 0x2c: // ,
        if (depth > 1 || !within) break
        within = false
        to = at
        break
      case 0x5d: // ]
      case 0x7d: // }
        if (--depth > 0 || !within) break
        within = false
        to = at
        break
    }
  }
  return to === 0 ? undefined : { bytes: json.subarray(from, to), members }
}

const isEscaped = (json: Buffer, from: number, to: number): boolean => {
  for (let at = from; at < to; at++) if (json[at] === backslash) return true
  return false
}

const isName = (json: Buffer, from: number, name: string): boolean => {
  for (let i = 0; i < name.length; i++) if (json[from + i] !== name.charCodeAt(i)) return false
  return json[from + name.length] === quote
}

/** Counts the members of all objects in a parsed value. */
export const membersIn = (value: unknown): number => {
  if (typeof value !== "object" || value === null) return 0
  let members = 0
  if (Array.isArray(value)) {
    for (const item of value) members += membersIn(item)
    return members
  }
  for (const name in value) members += 1 + membersIn((value as Readonly<Record<string, unknown>>)[name])
  return members
}

/** Returns the limit that a JSON text exceeds: its number of values and names, or its depth. Returns `undefined` if it exceeds neither. */
export const exceeded = (bytes: Buffer, partsMax: number, depthMax: number): "parts" | "depth" | undefined => {
  const end = bytes.length
  let depth = 0
  let parts = 0
  for (let i = 0; i < end; i++) {
    const kind = kinds[bytes[i]!]
    if (kind === other) continue
    if (kind === string) {
      i = endOfString(bytes, i + 1)
    } else if (kind === closing) {
      depth--
    } else {
      if (++parts > partsMax) return "parts"
      if (kind === opening && ++depth > depthMax) return "depth"
    }
  }
  return undefined
}

const [other, string, opening, closing, between] = [0, 1, 2, 3, 4]
const kinds = new Uint8Array(256)
for (const [characters, kind] of [
  ['"', string],
  ["[{", opening],
  ["]}", closing],
  [",:", between]
] as const) {
  for (const character of characters) kinds[character.charCodeAt(0)] = kind
}
