/**
 * Encodes tapes as bytes for a local socket between two processes of the same build. A frame is a header of 32 bytes, the tape's numbers, its strings
 * as JSON and its new terms. Both processes run on one machine, so numbers keep the machine's byte order.
 */
import type { Tape } from "./Codec.ts"

export interface Frame {
  /** The Unix time of sending, in milliseconds; 0 in a greeting or a reply. */
  readonly now: number
  readonly tape: Tape
}

/** The header's size and field offsets. It contains five four-byte numbers, four unused bytes, and the time as a double. */
const head = 32
const at = { length: 0, count: 4, first: 8, numbers: 12, texts: 16, now: 24 } as const

const numberBytes = Float64Array.BYTES_PER_ELEMENT

export const encode = (now: number, { count, first, numbers, terms, texts }: Tape): Buffer => {
  const strings = texts.length === 0 ? "" : JSON.stringify(texts)
  const stringBytes = Buffer.byteLength(strings)
  const termBytes = terms === "" ? 0 : Buffer.byteLength(terms)
  const length = head + numbers.byteLength + stringBytes + termBytes
  const bytes = Buffer.allocUnsafe(length)
  bytes.writeUInt32LE(length, at.length)
  bytes.writeUInt32LE(count, at.count)
  bytes.writeUInt32LE(first, at.first)
  bytes.writeUInt32LE(numbers.length, at.numbers)
  bytes.writeUInt32LE(stringBytes, at.texts)
  bytes.writeDoubleLE(now, at.now)
  bytes.set(new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength), head)
  let end = head + numbers.byteLength
  end += write(bytes, strings, stringBytes, end)
  write(bytes, terms, termBytes, end)
  return bytes
}

/** Writes a string and returns its byte count. Most strings are ASCII, which is faster to write as Latin-1. */
const write = (bytes: Buffer, text: string, length: number, offset: number): number =>
  length === 0 ? 0 : bytes.write(text, offset, length === text.length ? "latin1" : "utf8")

const decode = (bytes: Buffer): Frame => {
  const numbers = new Float64Array(bytes.readUInt32LE(at.numbers))
  // Copy the numbers, because they are not aligned if the frame is part of a longer read.
  const texts = head + numbers.length * numberBytes
  const terms = texts + bytes.readUInt32LE(at.texts)
  if (terms > bytes.length) throw new Error("a frame is cut short")
  new Uint8Array(numbers.buffer).set(bytes.subarray(head, texts))
  return {
    now: bytes.readDoubleLE(at.now),
    tape: {
      count: bytes.readUInt32LE(at.count),
      first: bytes.readUInt32LE(at.first),
      numbers,
      texts: terms === texts ? [] : (JSON.parse(bytes.toString("utf8", texts, terms)) as ReadonlyArray<string>),
      terms: bytes.toString("utf8", terms)
    }
  }
}

/** Returns a function that takes a stream's chunks. It passes each complete frame to `onFrame`, and throws if the bytes are not frames. */
export const reader = (onFrame: (frame: Frame) => void): ((bytes: Buffer) => void) => {
  let parts: Array<Buffer> = []
  let length = 0
  return (more) => {
    parts.push(more)
    length += more.length
    if (length < head) return
    if (parts[0]!.length < 4) parts = [Buffer.concat(parts)]
    if (length < lengthOf(parts[0]!)) return
    let rest = parts.length === 1 ? parts[0]! : Buffer.concat(parts)
    while (rest.length >= head && rest.length >= lengthOf(rest)) {
      const end = lengthOf(rest)
      onFrame(decode(rest.subarray(0, end)))
      rest = rest.subarray(end)
    }
    parts = rest.length === 0 ? [] : [rest]
    length = rest.length
  }
}

const lengthOf = (bytes: Buffer): number => {
  const length = bytes.readUInt32LE(at.length)
  if (length < head) throw new Error("this is not a frame")
  return length
}

/** Encodes the first frame of a process. The token shows that the process may submit transactions. */
export const greeting = (token: string): Buffer =>
  encode(0, { count: 0, numbers: new Float64Array(), texts: [token], first: 0, terms: "" })
