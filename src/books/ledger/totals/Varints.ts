/** Lists of whole numbers from 0 on as bytes: seven bits of a number in each byte, the lowest first; the highest bit says that more follow. */

/** A number where that is exact, else a bigint: the two compare with each other. */
export type Value = number | bigint

export const exactMax = Number.MAX_SAFE_INTEGER

export const valueOf = (amount: bigint): Value =>
  amount <= BigInt(exactMax) && amount >= -BigInt(exactMax) ? Number(amount) : amount

/** The most bytes of one number: up to 2^64. */
const widthMax = 10

/** Takes numbers, and gives their bytes. */
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

/** Gives the numbers of bytes that `VarintWriter` made. */
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

  /** Passes over the next one. */
  skip(): void {
    while (this.bytes[this.at++]! >= 128);
  }

  /** The next one, which is known to be exact as a number. */
  number(): number {
    return this.next() as number
  }
}

const exactly = (bytes: Uint8Array): bigint => bytes.reduceRight((sum, byte) => (sum << 7n) | BigInt(byte & 127), 0n)
