/** The SHA-256 of a string. It identifies strings that are too long to store. */
import { createHash } from "node:crypto"

export const hashOf = (text: string): string => `sha256:${createHash("sha256").update(text).digest("hex")}`
