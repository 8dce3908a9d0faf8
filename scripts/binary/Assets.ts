/**
 * Reads the service's files from the executable's end, where `Pack` appends them. Node.js would map its own kind of assets, and mapped pages
 * remain in memory.
 */
import { fstatSync, openSync, readSync } from "node:fs"
import { placesIn } from "./Pack.ts"
import type { Place } from "./Pack.ts"

// Keep the file open, because another version may replace it on disk.
const file = openSync(process.execPath, "r")

const read = ({ length, position }: Place): Buffer => {
  const bytes = Buffer.allocUnsafeSlow(length)
  for (let done = 0; done < length;) {
    const more = readSync(file, bytes, done, length - done, position + done)
    if (more === 0) throw new Error(`${process.execPath} is incomplete`)
    done += more
  }
  return bytes
}

const places = placesIn(fstatSync(file).size, read)

export const names = (): ReadonlyArray<string> => [...places.keys()]

export const bytesOf = (name: string): Buffer => {
  const place = places.get(name)
  if (place === undefined) throw new Error(`${name} is not in ${process.execPath}`)
  return read(place)
}

/** Returns a file's text. The build ensures that the text is pure ASCII, so each character takes one byte in memory. */
export const textOf = (name: string): string => bytesOf(name).toString("latin1")

/** Returns V8's compiled code for a file, or `undefined` if the executable was built on another architecture. */
export const cacheOf = (name: string): Buffer | undefined =>
  places.has(`${name}.cache`) ? bytesOf(`${name}.cache`) : undefined
