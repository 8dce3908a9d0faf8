/**
 * The sandbox's video. It shows a lighthouse that flashes every second. It is VP9 in MP4, so browsers play it without a license. `FilmFrames`
 * contains one recorded second. A longer video repeats that second, so the file hardly grows.
 */
import { recorded } from "./FilmFrames.ts"

export const fps = 24

export type FilmSize = keyof typeof recorded

const secondsMax = 600

export const framesOf = (seconds: number): number => Math.max(1, Math.round(Math.min(secondsMax, seconds) * fps))

/** Encodes numbers as big-endian 32-bit integers. */
const wide = (...values: ReadonlyArray<number>): Buffer => {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, 4 * index)
  return bytes
}
/** Encodes numbers as big-endian 16-bit integers. */
const narrow = (...values: ReadonlyArray<number>): Buffer => {
  const bytes = Buffer.alloc(2 * values.length)
  for (const [index, value] of values.entries()) bytes.writeUInt16BE(value, 2 * index)
  return bytes
}

const box = (type: string, ...content: ReadonlyArray<Buffer>): Buffer => {
  const body = Buffer.concat(content)
  return Buffer.concat([wide(body.length + 8), Buffer.from(type, "latin1"), body])
}

const zeros = (count: number): ReadonlyArray<number> => Array.from({ length: count }, () => 0)
/** The identity matrix. */
const matrix = wide(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)

/** Builds a track's sample tables. Every chunk points to the same recorded second. */
const tables = (sizes: ReadonlyArray<number>, frames: number, at: number): Buffer => {
  const chunks = Math.ceil(frames / sizes.length)
  const last = frames - (chunks - 1) * sizes.length
  const spread = [...(chunks > 1 ? [1, sizes.length, 1] : []), chunks, last, 1]
  const each = Array.from({ length: chunks }, (_, chunk) => chunk)
  return Buffer.concat([
    box("stts", wide(0, 1, frames, 1)),
    box("stss", wide(0, chunks, ...each.map((chunk) => chunk * sizes.length + 1))),
    box("stsc", wide(0, spread.length / 3, ...spread)),
    box("stsz", wide(0, 0, frames, ...Array.from({ length: frames }, (_, frame) => sizes[frame % sizes.length]!))),
    box("stco", wide(0, chunks, ...each.map(() => at)))
  ])
}

export const film = (size: FilmSize, seconds: number): Buffer => {
  const second = recorded[size].map((frame) => Buffer.from(frame, "base64"))
  const [width, height] = size.split("x").map(Number) as [number, number]
  const frames = framesOf(seconds)
  const kind = box("ftyp", Buffer.from("isom\0\0\x02\0isomiso2mp41", "latin1"))
  const codec = box(
    "vp09",
    narrow(0, 0, 0, 1, ...zeros(8), width, height),
    wide(0x480000, 0x480000, 0),
    narrow(1, ...zeros(16), 24, 0xffff),
    // Profile 0, level 3.1, 8 bits, 4:2:0, unspecified colors.
    box("vpcC", Buffer.from([1, 0, 0, 0, 0, 31, 0x82, 2, 2, 2, 0, 0]))
  )
  const sizes = second.map(({ length }) => length)
  const table = box("stbl", box("stsd", wide(0, 1), codec), tables(sizes, frames, kind.length + 8))
  const media = box(
    "mdia",
    box("mdhd", wide(0, 0, 0, fps, frames, 0x55c40000)),
    box("hdlr", wide(0, 0), Buffer.from("vide", "latin1"), wide(0, 0, 0), Buffer.alloc(1)),
    box("minf", box("vmhd", wide(1, 0, 0)), box("dinf", box("dref", wide(0, 1), box("url ", wide(1)))), table)
  )
  const track = box(
    "trak",
    box("tkhd", wide(3, 0, 0, 1, 0, frames, 0, 0, 0, 0), matrix, wide(width * 0x10000, height * 0x10000)),
    media
  )
  const head = wide(0, 0, 0, fps, frames, 0x10000, 0x1000000, 0, 0)
  const movie = box("moov", box("mvhd", head, matrix, wide(...zeros(6), 2)), track)
  return Buffer.concat([kind, box("mdat", ...second), movie])
}
