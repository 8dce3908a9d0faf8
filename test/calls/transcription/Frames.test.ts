/** The frames of audio, counted as a decoder reads them, whatever its header says. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Readable } from "node:stream"
import { afterAll, describe, expect, it } from "vitest"
import { secondsIn as lengthOf } from "../../../src/calls/transcription/Audio.ts"
import { framesOf } from "../../../src/calls/transcription/Frames.ts"
import { amr, flac, flacFrame, mp3s, opus, oggPages, tagged, vorbis, wave } from "../../support/Sounds.ts"

const folder = mkdtempSync(join(tmpdir(), "tollgate-"))
afterAll(() => rmSync(folder, { recursive: true }))

/** In pieces of any length it comes to the same. */
const secondsIn = (bytes: Buffer): number | undefined => {
  const lengths = [bytes.length, 1, 7, 4_096].map((size) => {
    const frames = framesOf(bytes)
    if (frames === undefined) return undefined
    for (let at = 0; at < bytes.length; at += size) frames.take(bytes.subarray(at, at + size))
    return frames.seconds()
  })
  for (const one of lengths) expect(one === undefined ? -1 : one).toBeCloseTo(lengths[0] ?? -1, 6)
  return lengths[0]
}

describe("how long audio lasts", () => {
  it("is what the frames of FLAC come to, or what its header says if that is more", () => {
    expect(secondsIn(flac({ samples: 0, frames: 100 }))).toBeCloseTo((100 * 4_096) / 44_100, 6)
    expect(secondsIn(flac({ samples: 1, frames: 100 }))).toBeCloseTo((100 * 4_096) / 44_100, 6)
    expect(secondsIn(flac({ samples: 441_000_000, frames: 1 }))).toBeCloseTo(10_000, 6)
    expect(secondsIn(flac({ samples: 0, frames: 0 }))).toBe(0)
    expect(secondsIn(flac({ samples: 0, frames: 10, rate: 0 }))).toBe(Number.POSITIVE_INFINITY)
  })

  it("is no longer for a frame whose header is broken, or whose rate is its own", () => {
    const broken = flacFrame()
    broken[broken.length - 1]! ^= 1
    expect(secondsIn(Buffer.concat([flac({ samples: 0, frames: 1 }), broken]))).toBeCloseTo(4_096 / 44_100, 6)
    // At 8,000 a second, in a file of 44,100.
    const slow = Buffer.concat([flac({ samples: 0, frames: 0 }), flacFrame({ rate: 4 })])
    expect(secondsIn(slow)).toBeCloseTo(4_096 / 8_000, 6)
  })

  it("is what the packets of Opus come to, or its pages if they say more", () => {
    // 20 ms a packet; three frames of 20 ms; none longer than 120 ms.
    expect(secondsIn(opus(Array.from({ length: 500 }, () => Buffer.from([1 << 3]))))).toBeCloseTo(10, 6)
    expect(secondsIn(opus([Buffer.from([(1 << 3) | 3, 3])]))).toBeCloseTo(0.06, 6)
    expect(secondsIn(opus([Buffer.from([(3 << 3) | 3, 63])]))).toBeCloseTo(0.12, 6)
    expect(secondsIn(opus([Buffer.alloc(600, 8), Buffer.from([8])], [48_000n, 480_000_000n]))).toBeCloseTo(9_999, 6)
  })

  it("is at the most what the blocks of Vorbis come to", () => {
    expect(secondsIn(vorbis(100))).toBeCloseTo((102 * 1_024) / 44_100, 6)
  })

  it("is not known of other audio in Ogg, nor of pages that break off", () => {
    expect(secondsIn(oggPages([Buffer.from("Speex   1.2")]))).toBe(Number.POSITIVE_INFINITY)
    expect(secondsIn(Buffer.concat([opus([Buffer.from([8])]), Buffer.alloc(100, 7)]))).toBe(Number.POSITIVE_INFINITY)
  })

  it("adds up chained streams of one number, whatever their codecs", () => {
    const second = Array.from({ length: 50 }, () => Buffer.from([1 << 3]))
    expect(secondsIn(Buffer.concat([opus(second), vorbis(100)]))).toBeCloseTo(1 + (102 * 1_024) / 44_100, 6)
  })

  it("is not known of Ogg with more streams than a recording has", () => {
    const streams = (count: number) =>
      Buffer.concat(
        Array.from({ length: count }, (_, serial) => {
          const file = opus([Buffer.from([1 << 3])])
          for (let at = file.indexOf("OggS"); at !== -1; at = file.indexOf("OggS", at + 1))
            file.writeUInt32LE(serial, at + 14)
          return file
        })
      )
    expect(secondsIn(streams(100))).toBeCloseTo(100 * 0.02, 6)
    expect(secondsIn(streams(101))).toBe(Number.POSITIVE_INFINITY)
  })

  it("is not known of FLAC that does not begin with its format", () => {
    const file = flac({ frames: 100 })
    file[4] = 0x81
    expect(secondsIn(file)).toBe(Number.POSITIVE_INFINITY)
  })

  it("is what the frames of MP3 come to", () => {
    expect(secondsIn(mp3s(100))).toBeCloseTo((100 * 1_152) / 44_100, 6)
    const id3v1 = Buffer.concat([Buffer.from("TAG"), Buffer.alloc(125, "x")])
    expect(secondsIn(Buffer.concat([mp3s(100), Buffer.alloc(999), id3v1]))).toBeCloseTo((100 * 1_152) / 44_100, 6)
  })

  it("is not known of MP3 with other bytes before, between or behind its frames, or with hardly a frame", () => {
    const free = Buffer.from([0xff, 0xfb, 0x00, 0x00])
    for (const parts of [
      [mp3s(100), Buffer.from("junk"), mp3s(100)],
      [mp3s(100), free, mp3s(100)],
      [mp3s(1), Buffer.alloc(9), mp3s(100)],
      [mp3s(100), Buffer.from("TAG"), Buffer.alloc(126, "x")],
      [mp3s(100), Buffer.from("APETAGEX")],
      [mp3s(6)]
    ])
      expect(secondsIn(Buffer.concat(parts))).toBe(Number.POSITIVE_INFINITY)
  })

  it("is what the samples of WAV come to, wherever its format stands before them", () => {
    expect(secondsIn(wave({ rate: 8_000, bytes: 4_000 }))).toBe(0.5)
    expect(secondsIn(wave({ rate: 10, bytes: 500 }))).toBe(50)
    expect(secondsIn(wave({ rate: 10, bytes: 5 }))).toBe(0.5)
    expect(secondsIn(chunksBefore(list(30), wave({ rate: 10 })))).toBe(50)
  })

  it("is not known of WAV with two formats, an odd chunk, packed samples, or none", () => {
    const plain = wave({ rate: 8_000 })
    const packed = Buffer.from(plain)
    packed.writeUInt16LE(2, 20)
    for (const bytes of [
      chunksBefore(plain.subarray(12, 36), plain),
      chunksBefore(list(31), plain),
      packed,
      plain.subarray(0, 36),
      Buffer.concat([plain.subarray(0, 12), plain.subarray(36), plain.subarray(12, 36)])
    ])
      expect(secondsIn(bytes)).toBe(Number.POSITIVE_INFINITY)
  })

  it("is 20 milliseconds for each frame of AMR, also of silence", () => {
    expect(secondsIn(amr("#!AMR\n", [7, 31], [15, 0], [8, 5]))).toBeCloseTo(0.06, 6)
    expect(secondsIn(amr("#!AMR-WB\n", [8, 60], [14, 0], [9, 5]))).toBeCloseTo(0.06, 6)
    expect(secondsIn(amr("#!AMR\n", [9, 0]))).toBe(Number.POSITIVE_INFINITY)
  })

  it("is not known of other files", () => {
    expect(secondsIn(Buffer.alloc(500, "a"))).toBeUndefined()
    expect(secondsIn(Buffer.from("\0\0\0\x20ftypM4A "))).toBeUndefined()
  })
})

const list = (size: number): Buffer => {
  const head = Buffer.from("LIST\0\0\0\0")
  head.writeUInt32LE(size, 4)
  return Buffer.concat([head, Buffer.alloc(size)])
}

const chunksBefore = (chunks: Buffer, file: Buffer): Buffer =>
  Buffer.concat([file.subarray(0, 12), chunks, file.subarray(12)])

describe("the length of audio", () => {
  const file = { name: "a.flac", content_type: "audio/flac" }
  const silence = flac({ samples: 0, frames: 20_000 })

  it("is found in bytes, in a file, and behind tags", async () => {
    for (const [bytes, seconds] of [
      [silence, (20_000 * 4_096) / 44_100],
      [tagged(silence), (20_000 * 4_096) / 44_100],
      [tagged(tagged(silence)), (20_000 * 4_096) / 44_100],
      [mp3s(2_000), (2_000 * 1_152) / 44_100],
      [Buffer.alloc(silence.length, "a"), Number.POSITIVE_INFINITY],
      [tagged(Buffer.alloc(100, "a")), Number.POSITIVE_INFINITY],
      [Array.from({ length: 9 }).reduce<Buffer>(tagged, silence), Number.POSITIVE_INFINITY]
    ] as const) {
      const path = join(folder, "audio")
      writeFileSync(path, bytes)
      expect(await lengthOf({ ...file, bytes })).toBeCloseTo(seconds, 5)
      expect(await lengthOf({ ...file, path, length: bytes.length })).toBeCloseTo(seconds, 5)
    }
  })

  it("is not known of a stream, nor behind a tag whose size decoders read differently", async () => {
    expect(await lengthOf({ ...file, stream: Readable.from([silence]), length: silence.length })).toBe(
      Number.POSITIVE_INFINITY
    )
    const bytes = tagged(silence)
    bytes[8] = 0x8f
    expect(await lengthOf({ ...file, bytes })).toBe(Number.POSITIVE_INFINITY)
  })
})
