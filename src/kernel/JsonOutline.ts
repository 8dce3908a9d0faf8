/**
 * Builds the outline of a long JSON object from its bytes as they arrive. The outline is the object without the content of its long members. It is
 * enough to check the form of a long response and to read the reported usage, without storing or parsing the complete response.
 */
import { quote, backslash } from "./JsonText.ts"

/** The names of the members to empty, and the depth of the objects that contain them. The outermost object has depth 1. */
export interface LongMembers {
  readonly names: ReadonlySet<string>
  readonly depth: number
}

/** The position of a long member's value in the bytes, without the value's first and last byte. */
export interface Place {
  readonly from: number
  readonly to: number
}

const outlineMax = 2 * 1024 * 1024
/**
 * The maximum length in bytes of other members of the outermost object. Longer members are emptied as well, if the long members belong to that
 * object.
 */
const memberMax = 256 * 1024
const placesMax = 100_000

const [other, opensObject, opensList, closing, comma, colon, string] = [0, 1, 2, 3, 4, 5, 6]
const kinds = new Uint8Array(256)
for (const [character, kind] of [
  ["{", opensObject],
  ["[", opensList],
  ["}", closing],
  ["]", closing],
  [",", comma],
  [":", colon],
  ['"', string]
] as const) {
  kinds[character.charCodeAt(0)] = kind
}

export class JsonOutline {
  private readonly long: LongMembers
  private readonly places: Array<Place> = []
  private readonly pieces: Array<Buffer> = []
  private size = 0
  /** The outline's size up to the first byte of the current outermost member's value; -1 outside these values. */
  private member = -1
  private before = 0
  private depth = 0
  /** Whether each open value is an object. Excludes emptied values. */
  private readonly objects: Array<boolean> = []
  private name = ""
  private awaitsName = false
  private inString = false
  private inName = false
  /** Whether the part of the string read so far ends with an odd number of backslashes. */
  private escaped = false
  /** The depth of the object that contains the value being emptied; -1 if there is none. */
  private outside = -1
  private emptyFrom = 0
  /** Whether the value is emptied only because of its length. */
  private isOther = false
  private failed = false

  constructor(long: LongMembers) {
    this.long = long
  }

  take(chunk: Buffer): void {
    /** The start of the chunk's bytes that belong to the outline; -1 while a value is being emptied. */
    let from = this.outside === -1 ? 0 : -1
    for (let at = 0; at < chunk.length && !this.failed; at++) {
      if (this.inString) {
        const end = this.endOfString(chunk, at)
        if (this.inName) this.name += chunk.toString("latin1", at, end)
        at = end
        if (end === chunk.length) break
        this.inString = this.inName = false
        if (this.outside === this.depth) from = this.endEmpty(at)
        else if (this.depth === 1) this.member = -1
        continue
      }
      if (this.outside !== -1) {
        at = this.skip(chunk, at)
        if (at < chunk.length && !this.inString) from = this.endEmpty(at)
        continue
      }
      const kind = kinds[chunk[at]!]!
      if (kind === other) continue
      const begins = this.beginsMember(kind)
      if (begins && this.long.names.has(this.name)) {
        this.keep(chunk, from, at + 1)
        this.beginEmpty(at, kind)
        from = -1
      } else {
        if (begins && this.depth === 1) this.member = this.size + at + 1 - from
        this.step(kind)
      }
    }
    if (from !== -1) this.keep(chunk, from, chunk.length)
    if (this.member !== -1 && this.outside === -1 && this.size - this.member > memberMax) this.emptyMember()
    this.before += chunk.length
  }

  /** Returns the outline's bytes, which might not be valid JSON. */
  get bytes(): Buffer {
    return Buffer.concat(this.pieces)
  }

  /**
   * Returns the parsed outline, after all bytes have been read. Returns `undefined` if they are not a JSON object, or if the outline is too long or
   * has too many emptied values.
   */
  get value(): Readonly<Record<string, unknown>> | undefined {
    if (this.failed || this.depth !== 0) return undefined
    try {
      const value: unknown = JSON.parse(this.bytes.toString())
      return typeof value === "object" && value !== null && !Array.isArray(value)
        ? (value as Record<string, unknown>)
        : undefined
    } catch {
      return undefined
    }
  }

  /** Returns the positions of the emptied values of long members, in order. */
  get emptied(): ReadonlyArray<Place> {
    return this.places
  }

  /**
   * Skips the array or object that is being emptied, up to its end, a long string or the end of the chunk. This loop must be fast, because a vendor
   * can send megabytes of brackets.
   */
  private skip(chunk: Buffer, from: number): number {
    const { length } = chunk
    const { outside } = this
    let { depth } = this
    let at = from
    for (; at < length; at++) {
      const kind = kinds[chunk[at]!]!
      if (kind === opensObject || kind === opensList) depth++
      else if (kind === closing) {
        if (--depth === outside) break
      } else if (kind === string) {
        const end = endOfShort(chunk, at + 1)
        if (end === -1) {
          this.inString = true
          break
        }
        at = end
      }
    }
    this.depth = depth
    return at
  }

  /** Handles an outline byte that is not inside a string. */
  private step(kind: number): void {
    switch (kind) {
      case opensObject:
      case opensList:
        this.depth++
        this.objects.push(kind === opensObject)
        this.awaitsName = kind === opensObject
        break
      case closing:
        this.depth--
        this.objects.pop()
        if (this.depth === 1) this.member = -1
        break
      case comma:
        this.awaitsName = this.objects.at(-1) === true
        break
      case colon:
        this.awaitsName = false
        break
      case string:
        this.inString = true
        this.inName = this.awaitsName && this.depth === this.long.depth
        if (this.inName) this.name = ""
        break
    }
  }

  /** Returns whether a value that might have to be emptied begins here. */
  private beginsMember(kind: number): boolean {
    return (
      (kind === string || kind === opensObject || kind === opensList) &&
      this.depth === this.long.depth &&
      this.objects[this.depth - 1] === true &&
      !this.awaitsName
    )
  }

  private beginEmpty(at: number, kind: number): void {
    this.outside = this.depth
    this.emptyFrom = this.before + at + 1
    if (kind === string) this.inString = true
    else this.depth++
  }

  private emptyMember(): void {
    const kept = this.bytes.subarray(0, this.member)
    this.pieces.length = 0
    this.pieces.push(Buffer.from(kept))
    this.size = kept.length
    this.outside = 1
    this.objects.length = 1
    this.awaitsName = false
    this.isOther = true
  }

  /** Stops emptying. Returns the position of the value's last byte, where the outline resumes. */
  private endEmpty(at: number): number {
    this.outside = -1
    this.member = -1
    // A name applies to a single value.
    this.name = ""
    if (this.isOther) {
      this.isOther = false
      return at
    }
    if (this.places.push({ from: this.emptyFrom, to: this.before + at }) > placesMax) this.failed = true
    return at
  }

  private keep(chunk: Buffer, from: number, to: number): void {
    if (to <= from || this.failed) return
    this.size += to - from
    if (this.size > outlineMax) this.failed = true
    else this.pieces.push(Buffer.from(chunk.subarray(from, to)))
  }

  /** Returns the position of the string's closing quote, or the chunk's length if the string does not end in the chunk. */
  private endOfString(chunk: Buffer, from: number): number {
    let at = from
    if (this.escaped) {
      this.escaped = false
      at++
    }
    for (;;) {
      const found = chunk.indexOf(quote, at)
      const end = found === -1 ? chunk.length : found
      let slashes = 0
      while (end - slashes > at && chunk[end - 1 - slashes] === backslash) slashes++
      if (found === -1) {
        this.escaped = slashes % 2 === 1
        return end
      }
      if (slashes % 2 === 0) return end
      at = end + 1
    }
  }
}

const walked = 64

/** Finds the closing quote of a short string that begins at `from`. Returns -1 if it is not among the next `walked` bytes of the chunk. */
const endOfShort = (chunk: Buffer, from: number): number => {
  const stop = Math.min(chunk.length, from + walked)
  for (let at = from; at < stop; at++) {
    const byte = chunk[at]
    if (byte === quote) return at
    if (byte === backslash) at++
  }
  return -1
}
