/** The directory as an actor in the audit log. */
import type { Operator } from "../operator/Operator.ts"

export const by: Operator = { name: "scim", via: "token" }
