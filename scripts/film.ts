/**
 * `node --import tsx scripts/film.ts` generates `src/sandbox/FilmFrames.ts`: one second of video, which `src/sandbox/Film.ts` repeats. The tests'
 * Chromium draws the frames on a canvas and encodes them.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { launch } from "../test/console/Browser.ts"
import { root } from "./bundle.ts"

const sizes = [
  { width: 854, height: 480 },
  { width: 1280, height: 720 }
] as const

/** Draws and encodes the frames in the browser. Returns each frame in base64. */
const record = async ({ height, width }: (typeof sizes)[number]): Promise<ReadonlyArray<string>> => {
  const [fps, quantizer] = [24, 48]
  const canvas = new OffscreenCanvas(width, height)
  const paint = canvas.getContext("2d")!
  const frames: Array<string> = []
  const encoder = new VideoEncoder({
    output: (chunk) => {
      const bytes = new Uint8Array(chunk.byteLength)
      chunk.copyTo(bytes)
      frames.push(btoa(String.fromCodePoint(...bytes)))
    },
    error: (error) => {
      throw error
    }
  })
  encoder.configure({ codec: "vp09.00.31.08", width, height, framerate: fps, bitrateMode: "quantizer" })
  for (let frame = 0; frame < fps; frame++) {
    const part = (color: string, x: number, y: number, right: number, bottom: number): void => {
      paint.fillStyle = color
      // Edges on block boundaries compress to almost nothing.
      const [left, top] = [x * width, y * height].map((edge) => 16 * Math.round(edge / 16)) as [number, number]
      const [end, low] = [right * width, bottom * height].map((edge) => 16 * Math.round(edge / 16)) as [number, number]
      paint.fillRect(left, top, end - left, low - top)
    }
    part("#2f3f6b", 0, 0, 1, 1)
    part("#1f5a5c", 0, 0.75, 1, 1)
    part("#e8e2d4", 0.45, 0.3, 0.55, 0.75)
    part(frame < fps / 2 ? "#f6c453" : "#4a4a52", 0.45, 0.2, 0.55, 0.3)
    if (frame < fps / 2) part("#8d8254", 0.6, 0.2, 1, 0.3)
    const picture = new VideoFrame(canvas, { timestamp: (frame * 1_000_000) / fps })
    // The types do not declare a frame's quantizer.
    const options = { keyFrame: frame === 0, vp9: { quantizer } }
    encoder.encode(picture, options)
    picture.close()
  }
  await encoder.flush()
  return frames
}

const browser = await launch()
try {
  const page = await browser.newPage()
  // Browsers provide encoders only in a secure context.
  await page.route("http://localhost/", (route) => route.fulfill({ contentType: "text/html", body: "" }))
  await page.goto("http://localhost/")
  // The TypeScript loader wraps functions in this helper.
  await page.evaluate("globalThis.__name = (named) => named")
  const parts: Array<string> = []
  for (const size of sizes) {
    const frames = await page.evaluate(record, size)
    const bytes = frames.reduce((sum, frame) => sum + Buffer.from(frame, "base64").length, 0)
    console.log(`${size.width}x${size.height}: ${frames.length} frames, ${bytes} bytes`)
    parts.push(`  "${size.width}x${size.height}": [\n${frames.map((frame) => `    "${frame}"`).join(",\n")}\n  ]`)
  }
  const head = "/** One second of VP9, each frame in base64. `scripts/film.ts` generates this file. */"
  const path = join(root, "src", "sandbox", "FilmFrames.ts")
  writeFileSync(path, `${head}\n\nexport const recorded = {\n${parts.join(",\n")}\n} as const\n`)
} finally {
  await browser.close()
}
