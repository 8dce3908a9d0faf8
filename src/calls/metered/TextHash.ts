/** Hashes strings that are too long to save. */
import { createHash } from "node:crypto"

export const hashOf = (text: string): string => `sha256:${createHash("sha256").update(text).digest("hex")}`

const endUsers: ReadonlySet<string> = new Set(["user", "safety_identifier"])

/** Returns the hash of a long member that names the end user; the call's label is the same hash. Returns `undefined` for any other member. */
export const shortName = (member: string, value: unknown): string | undefined =>
  endUsers.has(member) && typeof value === "string" ? hashOf(value) : undefined
