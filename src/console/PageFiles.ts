/** Lists and reads the built page's files in `dist/console`, next to the bundle. The single executable replaces this module. */
import { readdir, readFile } from "node:fs/promises"

const place = (module: string): string => {
  if (module.endsWith("/console/PageFiles.ts")) return "../../dist/console/"
  // In the package, the modules are in folders below the bundle.
  return module.endsWith("/console/PageFiles.js") ? "../../console/" : "./console/"
}
const folder = new URL(place(import.meta.url), import.meta.url)

/** Returns the paths of all files and folders, relative to the page's root. The array is empty if the page was not built. */
export const list = async (): Promise<ReadonlyArray<string>> => {
  const found = await readdir(folder, { recursive: true }).catch(() => [])
  return found.map((name) => name.replaceAll("\\", "/"))
}

export const read = (path: string): Promise<Buffer> => readFile(new URL(path, folder))
