/**
 * Encodes sequences of non-negative integers as bytes, with seven bits per byte, lowest bits first. The highest bit of a byte means that another byte
 * follows.
 */

/** A number if that is exact, otherwise a bigint. Numbers and bigints can be compared with each other. */
export type Value = number | bigint

export const exactMax = Number.MAX_SAFE_INTEGER

export const valueOf = (amount: bigint): Value =>
  amount <= BigInt(exactMax) && amount >= -BigInt(exactMax) ? Number(amount) : amount

/** The maximum size of an encoded number, in bytes. Numbers are below 2^64. */
const widthMax = 10

export class VarintWriter {
  private bytes = new Uint8Array(1024)
  private at = 0

  put(value: Value): void {
    if (this.at + widthMax > this.bytes.length) this.grow()
    const { bytes } = this
    let rest = value
    for (; typeof rest === "bigint"; rest = valueOf(rest >> 7n)) bytes[this.at++] = Number(rest & 127n) | 128
    for (; rest >= 128; rest = Math.floor(rest / 128)) bytes[this.at++] = (rest % 128) | 128
    bytes[this.at++] = rest
  }

  written(): Uint8Array {
    return this.bytes.slice(0, this.at)
  }

  private grow(): void {
    const more = new Uint8Array(2 * this.bytes.length)
    more.set(this.bytes)
    this.bytes = more
  }
}

export class VarintReader {
  private readonly bytes: Uint8Array
  private at = 0

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }

  get isDone(): boolean {
    return this.at >= this.bytes.length
  }

  next(): Value {
    const { bytes } = this
    const start = this.at
    let byte = bytes[this.at++]!
    if (byte < 128) return byte
    let sum = byte & 127
    let scale = 128
    do {
      byte = bytes[this.at++]!
      sum += (byte & 127) * scale
      scale *= 128
    } while (byte >= 128)
    return sum <= exactMax ? sum : exactly(bytes.subarray(start, this.at))
  }

  skip(): void {
    while (this.bytes[this.at++]! >= 128);
  }

  /** Reads the next value. It must be exact as a JavaScript number. */
  number(): number {
    return this.next() as number
  }
}

const exactly = (bytes: Uint8Array): bigint => bytes.reduceRight((sum, byte) => (sum << 7n) | BigInt(byte & 127), 0n)
