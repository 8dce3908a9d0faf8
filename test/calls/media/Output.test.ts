/** What a vendor says that it has made: taken in the documented shape alone. */
import { expect, it } from "vitest"
import { outputOf } from "../../../src/calls/media/Poll.ts"

const video = { url: "https://vendor.example/video.mp4" }

it("an output is taken where what was to be made has an address", () => {
  const output = { video, seed: 7, timings: { inference: 1 } }
  expect(outputOf("video", output)).toBe(output)
  expect(outputOf("video", { video: {} })).toBeUndefined()
  expect(outputOf("image", { images: [video] })).toEqual({ images: [video] })
  expect(outputOf("image", { images: [video, { url: "file:///etc/passwd" }] })).toBeUndefined()
})

it("one that is nested too deeply to be written down is none", () => {
  const nested = (depth: number) => JSON.parse(`${"[".repeat(depth)}${"]".repeat(depth)}`) as unknown
  expect(outputOf("video", { video, more: nested(900) })).toBeDefined()
  expect(outputOf("video", { video, more: nested(50_000) })).toBeUndefined()
  expect(outputOf("video", { video: nested(50_000) })).toBeUndefined()
})
