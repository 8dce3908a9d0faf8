/**
 * Measures audio duration by counting frames. Only formats that cannot hide audio from this count are supported: MP3, WAV and AMR (`Packed`), FLAC,
 * and Opus and Vorbis in Ogg. In FLAC, Opus and Vorbis, silence takes almost no bytes and a header can be false, so each frame is read as a decoder
 * would read it.
 */
import { isMp3, isWave } from "../../kernel/AudioForm.ts"
import { Amr, amrNarrow, amrWide, Mp3, Wave } from "./Packed.ts"

/** Counts a file's frames as the file is read. */
export interface Frames {
  readonly take: (bytes: Buffer) => void
  /** Returns the maximum duration so far, in seconds, or `Infinity` if it is unknown. */
  readonly seconds: () => number
}

const unknownDuration: Frames = { take: () => {}, seconds: () => Number.POSITIVE_INFINITY }

/** Creates a counter for a file that begins with these bytes. Returns `undefined` if its format is not supported. */
export const framesOf = (head: Buffer): Frames | undefined => {
  const name = head.toString("latin1", 0, 4)
  if (name === "fLaC") return flac(head)
  if (name === "OggS") return new Ogg()
  if (isWave(head)) return new Wave()
  if (isMp3(head)) return new Mp3()
  if (head.toString("latin1", 0, amrNarrow.length) === amrNarrow) return new Amr(false)
  return head.toString("latin1", 0, amrWide.length) === amrWide ? new Amr(true) : undefined
}

// ---- FLAC -----------------------------------------------------------------------------------------------------------------------

/** The maximum length of a frame header, in bytes. */
const headerMax = 16
const rates = [0, 88_200, 176_400, 192_000, 8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000]

const crcs = Uint8Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x80 ? ((crc << 1) ^ 0x07) & 0xff : (crc << 1) & 0xff
  return crc
})

const flac = (head: Buffer): Frames => {
  // If the first block is not STREAMINFO, the rate is unknown.
  if (head.length < 26 || (head[4]! & 0x7f) !== 0) return unknownDuration
  const rate = (head[18]! << 12) | (head[19]! << 4) | (head[20]! >> 4)
  if (rate === 0) return unknownDuration
  const declared = ((head[21]! & 0x0f) * 2 ** 32 + head.readUInt32BE(22)) / rate
  let counted = 0
  let rest: Buffer = Buffer.alloc(0)
  return {
    take: (bytes) => {
      const all = Buffer.concat([rest, bytes])
      const end = all.length - headerMax
      for (let at = all.indexOf(0xff); at !== -1 && at < end; at = all.indexOf(0xff, at + 1))
        counted += secondsAt(all, at, rate)
      rest = all.subarray(Math.max(0, end))
    },
    seconds: () => {
      const all = Buffer.concat([rest, Buffer.alloc(headerMax)])
      let last = 0
      for (let at = 0; at < rest.length; at++) last += secondsAt(all, at, rate)
      return Math.max(declared, counted + last)
    }
  }
}

/** Returns the duration in seconds of the frame that begins at `at`, or 0 if there is no valid frame header. */
const secondsAt = (bytes: Buffer, at: number, usual: number): number => {
  if (bytes[at] !== 0xff || (bytes[at + 1]! & 0xfe) !== 0xf8) return 0
  const [size, rate] = [bytes[at + 2]! >> 4, bytes[at + 2]! & 0x0f]
  const numbers = numberBytes(bytes[at + 4]!)
  if (size === 0 || rate === 15 || (bytes[at + 3]! & 1) !== 0 || numbers === 0) return 0
  const sizeAt = at + 4 + numbers
  const rateAt = sizeAt + (size === 6 ? 1 : size === 7 ? 2 : 0)
  const crcAt = rateAt + (rate === 12 ? 1 : rate > 12 ? 2 : 0)
  let crc = 0
  for (let i = at; i < crcAt; i++) crc = crcs[crc ^ bytes[i]!]!
  if (crc !== bytes[crcAt]) return 0
  const own =
    rate < 12
      ? rates[rate]!
      : rate === 12
        ? bytes[rateAt]! * 1_000
        : bytes.readUInt16BE(rateAt) * (rate === 13 ? 1 : 10)
  // Decoders disagree about which rate to use. The lower rate gives the longer duration.
  return samplesOf(size, bytes, sizeAt) / (own === 0 ? usual : Math.min(own, usual))
}

const samplesOf = (size: number, bytes: Buffer, at: number): number => {
  if (size === 1) return 192
  if (size === 6) return bytes[at]! + 1
  if (size === 7) return bytes.readUInt16BE(at) + 1
  return size < 6 ? 576 << (size - 2) : 256 << (size - 8)
}

/** Returns a frame number's length in bytes, determined by its first byte, or 0 if that byte is invalid. */
const numberBytes = (first: number): number => {
  if (first < 0x80) return 1
  const ones = Math.clz32(~(first << 24))
  return ones === 1 || ones > 7 ? 0 : ones
}

// ---- Ogg ------------------------------------------------------------------------------------------------------------------------

const pageHead = 27
/** The maximum number of streams in a countable file. Each stream takes memory, and a 27-byte page can begin a stream. */
const streamsMax = 100
/** The page flag that marks the beginning of a stream. */
const beginningFlag = 0x02
/** The number of bytes to buffer of each packet. In Vorbis, these bytes contain the sample rate and the maximum block size. */
const packetHead = 30

interface Stream {
  codec: "opus" | "vorbis" | undefined
  /** Samples per second. */
  rate: number
  /** Samples per Vorbis packet. */
  block: number
  packets: number
  seconds: number
  /** The current packet's first bytes. */
  packet: Buffer
  first: number | undefined
  last: number
}

class Ogg implements Frames {
  private readonly streams = new Map<number, Stream>()
  /** The total duration of the streams that have ended, in seconds. A later stream can reuse a serial number with another codec. */
  private ended = 0
  private rest: Buffer = Buffer.alloc(0)
  private lost = false

  readonly take: Frames["take"] = (bytes) => {
    let left = Buffer.concat([this.rest, bytes])
    while (!this.lost && left.length >= pageHead) {
      const length = this.page(left)
      if (length === 0) break
      left = left.subarray(length)
    }
    this.rest = left
  }

  readonly seconds: Frames["seconds"] = () => {
    // Some decoders play a truncated page.
    if (this.lost || this.rest.length > 0) return Number.POSITIVE_INFINITY
    return [...this.streams.values()].reduce((seconds, stream) => seconds + secondsOf(stream), this.ended)
  }

  /** Reads a page and returns its length, or 0 if the page is incomplete or invalid. */
  private page(bytes: Buffer): number {
    if (bytes.toString("latin1", 0, 4) !== "OggS") {
      this.lost = true
      return 0
    }
    const segments = bytes[26]!
    const sizes = bytes.subarray(pageHead, pageHead + segments)
    if (sizes.length < segments) return 0
    const body = pageHead + segments
    const length = sizes.reduce((sum, size) => sum + size, body)
    if (bytes.length < length) return 0
    const stream = this.streamOf(bytes.readUInt32LE(14), (bytes[5]! & beginningFlag) !== 0)
    if (this.streams.size > streamsMax) this.lost = true
    let at = body
    for (const size of sizes) {
      const room = packetHead - stream.packet.length
      if (room > 0) stream.packet = Buffer.concat([stream.packet, bytes.subarray(at, at + Math.min(size, room))])
      at += size
      if (size < 255) this.packet(stream)
    }
    const position = bytes.readBigInt64LE(6)
    if (position > 0n) {
      stream.first ??= Number(position)
      stream.last = Math.max(stream.last, Number(position))
    }
    return length
  }

  private streamOf(serial: number, begins: boolean): Stream {
    const found = this.streams.get(serial)
    if (found !== undefined && !begins) return found
    if (found !== undefined) this.ended += secondsOf(found)
    const packet = Buffer.alloc(0)
    const stream = {
      codec: undefined,
      rate: 48_000,
      block: 0,
      packets: 0,
      seconds: 0,
      packet,
      first: undefined,
      last: 0
    }
    this.streams.set(serial, stream)
    return stream
  }

  /** Ends the current packet and adds its duration. */
  private packet(stream: Stream): void {
    const { packet } = stream
    stream.packet = Buffer.alloc(0)
    if (stream.packets++ === 0) this.begin(stream, packet)
    else if (stream.codec === "opus") stream.seconds += opusSeconds(packet)
    else stream.seconds += stream.block / stream.rate
  }

  private begin(stream: Stream, packet: Buffer): void {
    if (packet.toString("latin1", 0, 8) === "OpusHead") stream.codec = "opus"
    else if (packet.toString("latin1", 0, 7) === "\x01vorbis" && packet.length >= 29) {
      stream.codec = "vorbis"
      stream.rate = packet.readUInt32LE(12)
      // Half of each block overlaps the next block.
      stream.block = 2 ** (packet[28]! >> 4) / 2
    }
    if (stream.codec === undefined || stream.rate === 0) this.lost = true
  }
}

/** Returns the duration in seconds according to the packets or the page positions, whichever is longer. */
const secondsOf = ({ first = 0, last, rate, seconds }: Stream): number => Math.max(seconds, (last - first) / rate)

const silkMillis = [10, 20, 40, 60]
const celtMillis = [2.5, 5, 10, 20]
/** The maximum duration of an Opus packet, in seconds. */
const opusPacketMax = 0.12

/** Returns an Opus packet's duration in seconds, determined by its first two bytes. */
const opusSeconds = ([first, second]: Buffer): number => {
  if (first === undefined) return 0
  const [config, code] = [first >> 3, first & 3]
  const millis = config < 12 ? silkMillis[config & 3]! : config < 16 ? silkMillis[config & 1]! : celtMillis[config & 3]!
  const frames = code === 0 ? 1 : code === 3 ? (second ?? 0) & 0x3f : 2
  return Math.min((millis * frames) / 1_000, opusPacketMax)
}
