/** Reads the guides' Markdown from the source folder, the package or the bundle's folder. The executable replaces this module. */
import { readFileSync } from "node:fs"

const folder = (module: string): string => {
  if (module.endsWith("/GuideFiles.ts")) return "./"
  // In the package, the modules are in a subfolder of the bundle.
  return module.endsWith("/GuideFiles.js") ? "../../../guides/" : "./guides/"
}

export const read = (name: string): string =>
  readFileSync(new URL(`${folder(import.meta.url)}${name}.md`, import.meta.url), "utf8")
