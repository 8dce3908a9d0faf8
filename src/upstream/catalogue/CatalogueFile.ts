/** Reads the catalogue file, which is next to this file or the bundle. The single executable has its own module. */
import { readFileSync } from "node:fs"

// In the package, the modules are below the bundle.
const place = import.meta.url.endsWith("/CatalogueFile.js") ? "../../../catalogue.json" : "./catalogue.json"

export const read = (): string => readFileSync(new URL(place, import.meta.url), "utf8")
