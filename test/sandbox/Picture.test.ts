/** The sandbox's picture: a valid PNG of the requested size, the same for the same text. */
import { inflateSync } from "node:zlib"
import { describe, expect, it } from "vitest"
import { picture } from "../../src/sandbox/Picture.ts"

describe("a picture", () => {
  const bytes = picture("a lighthouse 1 0", { width: 512, height: 384 })

  it("is a PNG of the requested size", () => {
    expect(bytes.subarray(0, 8).toString("latin1")).toBe("\x89PNG\r\n\x1a\n")
    expect([bytes.readUInt32BE(16), bytes.readUInt32BE(20)]).toEqual([512, 384])
    const at = bytes.indexOf("IDAT")
    const data = bytes.subarray(at + 4, at + 4 + bytes.readUInt32BE(at - 4))
    // A row is a filter byte and one byte per pixel.
    expect(inflateSync(data).length).toBe(513 * 384)
    // The checksum of an empty chunk is known.
    expect(bytes.subarray(-12).toString("hex")).toBe("0000000049454e44ae426082")
  })

  it("depends on the text alone", () => {
    expect(picture("a lighthouse 1 0", { width: 512, height: 384 }).equals(bytes)).toBe(true)
    expect(picture("a lighthouse 2 0", { width: 512, height: 384 }).equals(bytes)).toBe(false)
  })

  it("has a maximum size", () => {
    const [width, height] = [16, 20].map((at) => picture("x", { width: 1e9, height: 0 }).readUInt32BE(at))
    expect([width, height]).toEqual([2048, 1])
  })
})
