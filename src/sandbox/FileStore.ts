/** Stores the sandbox's state across restarts, in small files in the data folder. */
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from "node:fs"
import { join } from "node:path"

/** Reads a file. Returns `undefined` if there is no folder or the file does not exist. */
export const read = (data_dir: string | undefined, name: string): string | undefined => {
  if (data_dir === undefined) return undefined
  try {
    return readFileSync(join(data_dir, name), "utf8")
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined
    throw error
  }
}

/** Writes a file durably. After a crash, it contains either the old text or the new one. */
export const write = (data_dir: string | undefined, name: string, text: string): void => {
  if (data_dir === undefined) return
  mkdirSync(data_dir, { recursive: true })
  const path = join(data_dir, name)
  const file = openSync(`${path}.new`, "w", 0o600)
  try {
    writeSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(`${path}.new`, path)
}
