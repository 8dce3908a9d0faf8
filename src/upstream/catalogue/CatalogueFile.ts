/** Reads the catalogue file next to this module or next to the bundle. The single executable replaces this module. */
import { readFileSync } from "node:fs"

// In the package, the modules are in a folder below the bundle.
const place = import.meta.url.endsWith("/CatalogueFile.js") ? "../../../catalogue.json" : "./catalogue.json"

export const read = (): string => readFileSync(new URL(place, import.meta.url), "utf8")
