/** Builds silent audio files. Their frames are almost empty. */

const crcOf = (bytes: Buffer): number => {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x80 ? ((crc << 1) ^ 0x07) & 0xff : (crc << 1) & 0xff
  }
  return crc
}

/** The header of a frame with 4,096 samples. */
export const flacFrame = ({ rate = 0 } = {}): Buffer => {
  const header = Buffer.from([0xff, 0xf8, (12 << 4) | rate, 0x08, 0])
  return Buffer.concat([header, Buffer.from([crcOf(header)])])
}

/** Builds a FLAC file. `samples` is the count in the file's header. `bytes` is each frame's size without its header. */
export const flac = ({ bytes = 8, frames = 0, rate = 44_100, samples = 0 }): Buffer => {
  const info = Buffer.alloc(34)
  info.writeUInt16BE(4_096, 0)
  info.writeUInt16BE(4_096, 2)
  info.writeUIntBE(rate * 16, 10, 3)
  info[13] = Math.floor(samples / 2 ** 32)
  info.writeUInt32BE(samples % 2 ** 32, 14)
  const frame = Buffer.concat([flacFrame(), Buffer.alloc(bytes)])
  return Buffer.concat([
    Buffer.from("fLaC"),
    Buffer.from([0x80, 0, 0, info.length]),
    info,
    ...Array.from({ length: frames }, () => frame)
  ])
}

/** Builds Ogg pages, one per packet. */
export const oggPages = (packets: ReadonlyArray<Buffer>, positions: ReadonlyArray<bigint> = []): Buffer =>
  Buffer.concat(
    packets.flatMap((packet, i) => {
      const segments = [...Array.from({ length: Math.floor(packet.length / 255) }, () => 255), packet.length % 255]
      const head = Buffer.alloc(27)
      head.write("OggS")
      if (i === 0) head[5] = 0x02
      head.writeBigInt64LE(positions[i] ?? 0n, 6)
      head.writeUInt32LE(77, 14)
      head[26] = segments.length
      return [head, Buffer.from(segments), packet]
    })
  )

export const opus = (packets: ReadonlyArray<Buffer>, positions: ReadonlyArray<bigint> = []): Buffer =>
  oggPages(
    [Buffer.concat([Buffer.from("OpusHead"), Buffer.alloc(11)]), Buffer.alloc(0), ...packets],
    [0n, 0n, ...positions]
  )

/** Builds Vorbis audio with 44,100 samples per second, in blocks of up to 2,048 samples. */
export const vorbis = (packets: number): Buffer => {
  const head = Buffer.alloc(30)
  head.write("\x01vorbis", "latin1")
  head.writeUInt32LE(44_100, 12)
  head[28] = (11 << 4) | 8
  return oggPages([head, ...Array.from({ length: 2 + packets }, () => Buffer.from([0]))])
}

/** Builds a WAVE file with one byte per sample. */
export const wave = ({ rate = 8_000, bytes = 500 }): Buffer => {
  const head = Buffer.alloc(44)
  head.write("RIFF")
  head.write("WAVEfmt ", 8)
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(rate, 24)
  head.writeUInt32LE(rate, 28)
  head.writeUInt16LE(1, 32)
  head.writeUInt16LE(8, 34)
  head.write("data", 36)
  return Buffer.concat([head, Buffer.alloc(bytes)])
}

export const mp3 = (bytes = 500): Buffer => Buffer.concat([Buffer.from([0xff, 0xfb, 0x90, 0x00]), Buffer.alloc(bytes)])

/** Adds an ID3 tag in front. */
export const tagged = (audio: Buffer): Buffer =>
  Buffer.concat([Buffer.from("ID3\x04\x00\x00\x00\x00\x0f\x50", "latin1"), Buffer.alloc(15 * 128 + 80), audio])

/** Builds MP3 frames with 128 kbit/s at 44,100 Hz. */
export const mp3s = (frames: number): Buffer => Buffer.concat(Array.from({ length: frames }, () => mp3(413)))

/** Builds AMR frames. Each has a type, and a number of bytes after the first byte. */
export const amr = (magic: string, ...frames: ReadonlyArray<readonly [type: number, bytes: number]>): Buffer =>
  Buffer.concat([
    Buffer.from(magic),
    ...frames.map(([type, bytes]) => Buffer.from([type << 3, ...Array(bytes).fill(0)]))
  ])
