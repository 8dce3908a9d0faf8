/** Reads the console's page from the executable's assets. */
import { bytesOf, names } from "./Assets.ts"

const folder = "console/"

export const list = async (): Promise<ReadonlyArray<string>> =>
  names()
    .filter((name) => name.startsWith(folder))
    .map((name) => name.slice(folder.length))

export const read = async (path: string): Promise<Buffer> => bytesOf(folder + path)
