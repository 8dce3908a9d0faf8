/** The name of a text that is too long to be stored: its SHA-256. */
import { createHash } from "node:crypto"

export const hashOf = (text: string): string => `sha256:${createHash("sha256").update(text).digest("hex")}`
