/** The sandbox's video: an MP4 of the requested size and length. Playback is tested in a real browser. */
import { describe, expect, it } from "vitest"
import { film, framesOf } from "../../src/sandbox/Film.ts"

/** The content of a box. */
const inside = (bytes: Buffer, type: string): Buffer => {
  const at = bytes.indexOf(type)
  return bytes.subarray(at + 4, at - 4 + bytes.readUInt32BE(at - 4))
}

const numbers = (bytes: Buffer): ReadonlyArray<number> =>
  Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readUInt32BE(4 * index))

describe("a film", () => {
  it.each([5, 2.5])("of %d seconds has all its frames, at the beginnings of their chunks", (seconds) => {
    const bytes = film("854x480", seconds)
    const [, , , scale, length] = numbers(inside(bytes, "mvhd").subarray(0, 20))
    expect(length! / scale!).toBe(seconds)
    expect(numbers(inside(bytes, "stts")).slice(1)).toEqual([1, seconds * 24, 1])
    const [, , count, ...sizes] = numbers(inside(bytes, "stsz"))
    expect([count, sizes.length]).toEqual([framesOf(seconds), framesOf(seconds)])
    const [, chunks, ...offsets] = numbers(inside(bytes, "stco"))
    expect([chunks, offsets.length]).toEqual([Math.ceil(seconds), Math.ceil(seconds)])
    const data = inside(bytes, "mdat")
    expect(new Set(offsets)).toEqual(new Set([bytes.indexOf("mdat") + 4]))
    expect(sizes.slice(0, 24).reduce((sum, size) => sum + size, 0)).toBe(data.length)
    expect(numbers(inside(bytes, "stss")).slice(2)).toEqual(offsets.map((_, chunk) => chunk * 24 + 1))
  })

  it("has the requested size, and grows little with its length", () => {
    const bytes = film("1280x720", 60)
    const track = inside(bytes, "tkhd")
    expect(numbers(track.subarray(-8)).map((side) => side / 0x10000)).toEqual([1280, 720])
    expect(bytes.length - film("1280x720", 1).length).toBeLessThan(8 * 60 * 24)
  })
})
