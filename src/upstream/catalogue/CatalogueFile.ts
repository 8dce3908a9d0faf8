/** Where the file of known models is: beside this one, or beside the bundle. (The single executable has another way.) */
import { readFileSync } from "node:fs"

// In the package the modules are below the bundle.
const place = import.meta.url.endsWith("/CatalogueFile.js") ? "../../../catalogue.json" : "./catalogue.json"

export const read = (): string => readFileSync(new URL(place, import.meta.url), "utf8")
