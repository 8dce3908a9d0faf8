/** The frames of audio, counted as a decoder reads them, whatever its header says. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { lastsLonger } from "../../../src/calls/transcription/Audio.ts"
import { framesOf } from "../../../src/calls/transcription/Frames.ts"
import { flac, flacFrame, opus, oggPages, tagged, vorbis, wave } from "../../support/Sounds.ts"

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

  it("is bounded by the bytes of other audio, unless its samples are some few a second", () => {
    expect(secondsIn(wave({ rate: 8_000 }))).toBeUndefined()
    expect(secondsIn(wave({ rate: 10 }))).toBe(Number.POSITIVE_INFINITY)
    expect(secondsIn(Buffer.alloc(500, "a"))).toBeUndefined()
  })
})

describe("audio that lasts longer than its bytes may", () => {
  const file = { name: "a.flac", content_type: "audio/flac" }
  const silence = flac({ samples: 0, frames: 20_000 })
  const seconds = silence.length / 1_000

  it("is found as bytes, as a file, and behind a tag", async () => {
    for (const [bytes, is] of [
      [silence, true],
      [tagged(silence), true],
      [tagged(tagged(silence)), true],
      [Buffer.alloc(silence.length, "a"), false],
      [tagged(Buffer.alloc(100, "a")), false],
      [Array.from({ length: 9 }).reduce<Buffer>(tagged, silence), true]
    ] as const) {
      const path = join(folder, "audio")
      writeFileSync(path, bytes)
      expect(await lastsLonger({ ...file, bytes }, seconds)).toBe(is)
      expect(await lastsLonger({ ...file, path, length: bytes.length }, seconds)).toBe(is)
    }
    const loud = flac({ samples: 0, frames: 100, bytes: 500 })
    expect(await lastsLonger({ ...file, bytes: loud }, loud.length / 1_000)).toBe(false)
  })
})
