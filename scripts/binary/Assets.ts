/** The files of the service in the executable. */
import { getRawAsset } from "node:sea"

const bytesOf = (name: string): Buffer => Buffer.from(getRawAsset(name) as ArrayBuffer)

/** The build has seen to it that there is nothing but ASCII in them: a character of theirs takes one byte in memory too. */
export const textOf = (name: string): string => bytesOf(name).toString("latin1")

/** What V8 had compiled of a file; `undefined` where the executable was built on another architecture. */
export const cacheOf = (name: string): Buffer | undefined => {
  try {
    return bytesOf(`${name}.cache`)
  } catch {
    return undefined
  }
}
