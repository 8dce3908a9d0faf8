/** The file of known models in the executable: one of its assets. */
import { bytesOf } from "./Assets.ts"

export const read = (): string => bytesOf("catalogue.json").toString("utf8")
