/** Reads the guides' Markdown in the executable, from its assets. */
import { bytesOf } from "./Assets.ts"

export const read = (name: string): string => bytesOf(`guides/${name}.md`).toString("utf8")
