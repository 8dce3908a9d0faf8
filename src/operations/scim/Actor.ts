/** The directory, as the actor in audit log entries. */
import type { Operator } from "../operator/Operator.ts"

export const by: Operator = { name: "scim", via: "token" }
