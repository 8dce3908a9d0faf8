/** Reads the catalogue file next to this file or to the bundle. The single executable uses a module of its own. */
import { readFileSync } from "node:fs"

// In the package, modules are in a folder below the bundle.
const place = import.meta.url.endsWith("/CatalogueFile.js") ? "../../../catalogue.json" : "./catalogue.json"

export const read = (): string => readFileSync(new URL(place, import.meta.url), "utf8")
