/**
 * The files of the service in the executable: they follow its own bytes (`Pack`). They are read, and not mapped as Node.js maps its assets:
 * what is mapped stays in memory once it was touched.
 */
import { fstatSync, openSync, readSync } from "node:fs"
import { placesIn } from "./Pack.ts"
import type { Place } from "./Pack.ts"

// It stays open: another version may be put in its place.
const file = openSync(process.execPath, "r")

const read = ({ length, position }: Place): Buffer => {
  const bytes = Buffer.allocUnsafeSlow(length)
  for (let done = 0; done < length;) {
    const more = readSync(file, bytes, done, length - done, position + done)
    if (more === 0) throw new Error(`${process.execPath} is not whole`)
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

/** The build has seen to it that there is nothing but ASCII in them: a character of theirs takes one byte in memory too. */
export const textOf = (name: string): string => bytesOf(name).toString("latin1")

/** What V8 had compiled of a file; `undefined` where the executable was built on another architecture. */
export const cacheOf = (name: string): Buffer | undefined =>
  places.has(`${name}.cache`) ? bytesOf(`${name}.cache`) : undefined
