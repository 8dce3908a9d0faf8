/**
 * Detects audio formats with a minimum byte rate, so that a file's size limits its duration: MP3 at a constant or variable bit rate, and WAV with raw
 * samples. FLAC, Opus, Vorbis and AAC are excluded, because they encode silence in almost no bytes.
 */

/** The minimum number of bytes per second of MP3 audio, at its lowest bit rate. */
export const bytesASecond = 1_000

const tagHead = 10

/** Returns the byte length of a file's ID3 tag; 0 if there is none, or if decoders disagree about its length. */
export const tagBytesOf = (head: Buffer): number => {
  if (head.length < tagHead || head.toString("latin1", 0, 3) !== "ID3") return 0
  const sizes = head.subarray(6, tagHead)
  // A size uses seven bits of each byte. Decoders disagree about sizes that use the eighth bit.
  if (sizes.some((byte) => byte > 0x7f)) return 0
  const size = sizes.reduce((sum, byte) => sum * 128 + byte, 0)
  return tagHead + size
}

/** Returns whether the bytes after the tag begin with the header of an MP3 frame with a fixed bit rate. */
export const isMp3 = (head: Buffer): boolean => {
  if (head.length < 4 || head[0] !== 0xff) return false
  const [, second, third] = head
  const rate = third! >> 4
  const isLayer3 = (second! & 0xe6) === 0xe2 && (second! & 0x18) !== 0x08
  return isLayer3 && rate !== 0 && rate !== 15 && ((third! >> 2) & 3) !== 3
}

export const isWave = (head: Buffer): boolean =>
  head.toString("latin1", 0, 4) === "RIFF" && head.toString("latin1", 8, 12) === "WAVE"

/** The format codes of raw samples: PCM, floating point, A-law and mu-law. */
const plainFormats: ReadonlySet<number> = new Set([1, 3, 6, 7])
const extensible = 0xfffe

/** Returns the bytes per second of a WAV file, or 0 if its samples are not raw or its format is not the first chunk. */
export const bytesASecondOf = (head: Buffer): number => {
  if (head.length < 36 || !isWave(head) || head.toString("latin1", 12, 16) !== "fmt ") return 0
  const named = head.readUInt16LE(20)
  const format = named === extensible && head.length >= 46 ? head.readUInt16LE(44) : named
  if (!plainFormats.has(format)) return 0
  const [channels, rate, bits] = [head.readUInt16LE(22), head.readUInt32LE(24), head.readUInt16LE(34)]
  return Math.floor((channels * rate * bits) / 8)
}
