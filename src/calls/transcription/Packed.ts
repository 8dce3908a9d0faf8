/** Counts MP3, WAV and AMR. In these formats, every byte belongs to a frame or a sample, so the headers determine the duration. */
import { isMp3 } from "../../kernel/AudioForm.ts"
import type { Frames } from "./Frames.ts"

/** Reads a file from header to header and skips the bytes in between, even across chunks. */
abstract class Walk implements Frames {
  protected lost = false
  private skip: number
  private rest: Buffer = Buffer.alloc(0)
  private readonly header: number

  constructor(header: number, skip = 0) {
    this.header = header
    this.skip = skip
  }

  /** Reads the header at `at` and returns the number of bytes to advance, or 0 if it needs more bytes. */
  protected abstract step(bytes: Buffer, at: number): number

  abstract seconds(): number

  take(bytes: Buffer): void {
    if (this.lost) return
    const all = this.rest.length === 0 ? bytes : Buffer.concat([this.rest, bytes])
    let at = this.skip
    while (!this.lost && at + this.header <= all.length) {
      const forward = this.step(all, at)
      if (forward === 0) break
      at += forward
    }
    this.skip = Math.max(0, at - all.length)
    this.rest = all.subarray(Math.min(at, all.length))
  }

  /** Returns the number of buffered bytes, which begin with an incomplete header. */
  protected left(): number {
    return this.rest.length
  }
}

// ---- MP3 ------------------------------------------------------------------------------------------------------------------------

const kbits1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
const kbits2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
const mp3Rates = [44_100, 48_000, 32_000]
/** The minimum number of frames in an MP3 file. FFmpeg might read a file with fewer frames as another format. */
const framesMin = 7
const id3v1Bytes = 128

/**
 * Counts MP3. Only zeros and an ID3v1 tag may follow the frames. Any other bytes could contain denser audio, such as free-format frames. Some
 * decoders find and play such frames.
 */
export class Mp3 extends Walk {
  private frames = 0
  private counted = 0
  private trailer = 0

  constructor() {
    super(4)
  }

  protected step(bytes: Buffer, at: number): number {
    if (this.trailer === 0 && isMp3(bytes.subarray(at, at + 4))) return this.frame(bytes, at)
    if (this.trailer > 0 || bytes.toString("latin1", at, at + 3) === "TAG") {
      const length = bytes.length - at
      this.trailer += length
      return length
    }
    if (bytes[at] !== 0 || this.frames < framesMin) this.lost = true
    return 1
  }

  private frame(bytes: Buffer, at: number): number {
    const version = (bytes[at + 1]! >> 3) & 3
    const third = bytes[at + 2]!
    const isFirst = version === 3
    const rate = mp3Rates[(third >> 2) & 3]! / (isFirst ? 1 : version === 2 ? 2 : 4)
    const bits = (isFirst ? kbits1 : kbits2)[third >> 4]! * 1_000
    this.frames++
    this.counted += (isFirst ? 1_152 : 576) / rate
    return Math.floor(((isFirst ? 144 : 72) * bits) / rate) + ((third >> 1) & 1)
  }

  seconds(): number {
    const isWhole = !this.lost && this.frames >= framesMin && this.trailer + this.left() <= id3v1Bytes
    return isWhole ? this.counted : Number.POSITIVE_INFINITY
  }
}

// ---- WAV ------------------------------------------------------------------------------------------------------------------------

const riffHead = 12
const chunkHead = 8
const formatBytes = 16
const extensibleBytes = 40
const extensible = 0xfffe
/** Samples as integers, floating-point numbers, A-law and μ-law. */
const plainFormats: ReadonlySet<number> = new Set([1, 3, 6, 7])
const sampleBits: ReadonlySet<number> = new Set([8, 16, 24, 32, 64])

/**
 * Counts WAV with uncompressed samples. The file must have exactly one format chunk, and it must precede the samples, because decoders disagree about
 * which of several chunks to use. They also disagree about the padding byte after a chunk of odd length, so a chunk of odd length must be the last.
 */
export class Wave extends Walk {
  private rate = 0
  private odd = false
  /** The offset of the first sample. */
  private start: number | undefined
  private at = riffHead
  private total = 0

  constructor() {
    super(chunkHead, riffHead)
  }

  override take(bytes: Buffer): void {
    this.total += bytes.length
    super.take(bytes)
  }

  protected step(bytes: Buffer, at: number): number {
    const name = bytes.toString("latin1", at, at + 4)
    const size = bytes.readUInt32LE(at + 4)
    const format = bytes.subarray(at + chunkHead, at + chunkHead + size)
    if (name === "fmt " && format.length < Math.min(size, extensibleBytes)) return 0
    if (this.odd) this.lost = true
    this.odd = size % 2 === 1
    if (name === "fmt ") this.format(format)
    if (name === "data") {
      if (this.rate === 0 || this.start !== undefined) this.lost = true
      this.start = this.at + chunkHead
    }
    // Software that writes WAV can set an unknown length to zero. The samples then extend to the end of the file.
    const length = name === "data" && size === 0 ? Number.POSITIVE_INFINITY : size
    this.at += chunkHead + length
    return chunkHead + length
  }

  private format(bytes: Buffer): void {
    if (this.rate > 0 || bytes.length < formatBytes) {
      this.lost = true
      return
    }
    const named = bytes.readUInt16LE(0)
    const format = named === extensible && bytes.length >= extensibleBytes ? bytes.readUInt16LE(24) : named
    const [channels, rate] = [bytes.readUInt16LE(2), bytes.readUInt32LE(4)]
    const [block, bits] = [bytes.readUInt16LE(12), bytes.readUInt16LE(14)]
    const isPlain = plainFormats.has(format) && sampleBits.has(bits) && block === (channels * bits) / 8
    if (!isPlain) this.lost = true
    // Decoders disagree about which of the two rates to use.
    this.rate = Math.min(block * rate, bytes.readUInt32LE(8))
  }

  seconds(): number {
    // Some decoders also play the bytes that follow the samples.
    return this.lost || this.start === undefined ? Number.POSITIVE_INFINITY : (this.total - this.start) / this.rate
  }
}

// ---- AMR ------------------------------------------------------------------------------------------------------------------------

const narrow = [12, 13, 15, 17, 19, 20, 26, 31, 5, -1, -1, -1, -1, -1, -1, 0]
const wide = [17, 23, 32, 36, 40, 46, 50, 58, 60, 5, -1, -1, -1, -1, 0, 0]
const amrSeconds = 0.02

/** Counts AMR. Every frame lasts 20 milliseconds. A silent frame can consist of a single byte. */
export class Amr extends Walk {
  private counted = 0
  private readonly sizes: ReadonlyArray<number>

  constructor(isWide: boolean) {
    super(1, isWide ? amrWide.length : amrNarrow.length)
    this.sizes = isWide ? wide : narrow
  }

  protected step(bytes: Buffer, at: number): number {
    const size = this.sizes[(bytes[at]! >> 3) & 0x0f]!
    if (size < 0) this.lost = true
    this.counted += amrSeconds
    return 1 + Math.max(0, size)
  }

  seconds(): number {
    return this.lost ? Number.POSITIVE_INFINITY : this.counted
  }
}

export const amrNarrow = "#!AMR\n"
export const amrWide = "#!AMR-WB\n"
