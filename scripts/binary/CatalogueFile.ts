/** Reads the model catalogue from the executable's assets. */
import { bytesOf } from "./Assets.ts"

export const read = (): string => bytesOf("catalogue.json").toString("utf8")
