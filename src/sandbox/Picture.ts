/** The sandbox's picture for a prompt: a sun over a gradient, as a PNG with a palette. Equal prompts always produce equal bytes. */
import { createHash } from "node:crypto"
import { deflateSync } from "node:zlib"

const sideMax = 2048
/** The palette's last color is for the sun; the sky uses the others. */
const sun = 255

export const picture = (
  text: string,
  { height, width }: { readonly height: number; readonly width: number }
): Buffer => {
  const [w, h] = [width, height].map((side) => Math.max(1, Math.min(sideMax, Math.round(side)))) as [number, number]
  const textDigest = createHash("sha256").update(text).digest()
  const part = (index: number): number => textDigest[index]! / 255
  const radius = Math.min(w, h) * (0.08 + 0.1 * part(0))
  const [x, y] = [w * (0.2 + 0.6 * part(1)), h * (0.25 + 0.35 * part(2))]

  // Each row consists of a filter byte (none) and one byte per pixel.
  const rows = Buffer.alloc((w + 1) * h)
  for (let row = 0; row < h; row++) {
    const at = row * (w + 1) + 1
    rows.fill(Math.floor((row * sun) / h), at, at + w)
    const half = Math.sqrt(Math.max(0, radius ** 2 - (row - y) ** 2))
    if (half > 0) rows.fill(sun, at + Math.max(0, Math.round(x - half)), at + Math.min(w, Math.round(x + half)))
  }

  // Three shifted cosine waves produce the palette's red, green and blue.
  const wave = (share: number, index: number): number =>
    Math.round(150 + 85 * Math.cos(2 * Math.PI * (part(3) + 0.35 * share + 0.15 * index)))
  const sky = Array.from({ length: sun }, (_, color) => [0, 1, 2].map((index) => wave(color / sun, index)))
  const header = Buffer.alloc(13)
  header.writeUInt32BE(w, 0)
  header.writeUInt32BE(h, 4)
  header.set([8, 3], 8)
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", header),
    chunk("PLTE", Buffer.from([...sky.flat(), 255, 246, 214])),
    chunk("IDAT", deflateSync(rows)),
    chunk("IEND", Buffer.alloc(0))
  ])
}

const chunk = (type: string, content: Buffer): Buffer => {
  const body = Buffer.concat([Buffer.from(type, "latin1"), content])
  const frame = Buffer.alloc(8)
  frame.writeUInt32BE(content.length, 0)
  frame.writeUInt32BE(checksum(body), 4)
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)])
}

/** Computes a CRC-32. In the oldest supported version of Node, `node:zlib` does not offer one. */
const checksum = (bytes: Buffer): number => {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0)
  }
  return ~crc >>> 0
}
