/**
 * Management keys: credentials with scopes and an expiry, for programs that call the operator's routes.
 *
 * Where the specification is silent:
 * - A management key consists of `{KEY_PREFIX}-admin-` and 64 hex digits. It is shown once and stored as a keyed hash.
 * - `read` opens every GET on the operator's routes. Any other scope opens the writes and GETs in its area, and `operate` opens all remaining writes.
 *   No key opens the routes for management keys and operators' sessions, which require an operator's own session.
 * - A request with a key that lacks the required scope fails with 403 `insufficient_scope`. The error contains the scope.
 * - In the audit log, the operator is the key's name and first characters, and `via` is `token`.
 */
import { Schema } from "effect"
import { Moment } from "../../kernel/Moment.ts"
import { Line } from "./Act.ts"
import { nameMax } from "./Operator.ts"

export const Scope = Schema.Literal("read", "people", "tenants", "keys", "grants", "operate").annotations({
  identifier: "ManagementScope"
})
export type Scope = typeof Scope.Type

const Scopes = Schema.Array(Scope).pipe(
  Schema.filter((scopes) => scopes.length > 0 && new Set(scopes).size === scopes.length, {
    message: () => `must be an array of 1 to ${Scope.literals.length} different scopes`
  })
)

const Name = Line.pipe(
  Schema.filter((name) => name.length <= nameMax, { message: () => `must be a string of 1 to ${nameMax} characters` })
)

export const NewManagementKey = Schema.Struct({ name: Name, scopes: Scopes, expires_at: Moment }).annotations({
  identifier: "NewManagementKey"
})
export interface NewManagementKey extends Schema.Schema.Type<typeof NewManagementKey> {}

const fields = {
  id: Schema.String,
  name: Schema.String,
  /** The first characters of the key, so that people can recognize it. */
  key_prefix: Schema.String,
  scopes: Schema.Array(Scope),
  created_by: Schema.String,
  created_at: Moment,
  expires_at: Moment,
  /** The time of the key's last use, to the minute. */
  last_used_at: Schema.NullOr(Moment)
} as const

export const ManagementKey = Schema.Struct(fields).annotations({ identifier: "ManagementKey" })
export interface ManagementKey extends Schema.Schema.Type<typeof ManagementKey> {}

/** A new management key. No other response contains the key itself. */
export const CreatedManagementKey = Schema.Struct({ ...fields, management_key: Schema.String }).annotations({
  identifier: "CreatedManagementKey"
})
export interface CreatedManagementKey extends Schema.Schema.Type<typeof CreatedManagementKey> {}

export const ManagementKeys = Schema.Struct({ keys: Schema.Array(ManagementKey) }).annotations({
  identifier: "ManagementKeys"
})
export const ManagementKeyEnded = Schema.Struct({ ended: Schema.Boolean }).annotations({
  identifier: "ManagementKeyEnded"
})

/** A route's area, by the prefix of its path below `/v1/operator`. The first match applies. */
const areas: ReadonlyArray<readonly [RegExp, Scope | undefined]> = [
  [/^\/(management-keys|sessions)(\/|$)/, undefined],
  [/^\/(people|invites)(\/|$)/, "people"],
  [/^\/tenants\/[^/]+\/(grants|take-backs|purchases|allowance)$/, "grants"],
  [/^\/(vouchers|budgets)(\/|$)/, "grants"],
  [/^\/keys(\/|$)/, "keys"],
  [/^\/tenants(\/|$)/, "tenants"]
]

/**
 * Returns the scopes that open a route. Any one of them is enough, and a refusal names the first. Returns `undefined` if no management key opens the
 * route. `path` is the contract's path, with parameter names.
 */
export const scopesOf = (method: string, path: string): ReadonlyArray<Scope> | undefined => {
  const below = path.replace(/^\/v1\/operator/, "")
  const found = areas.find(([area]) => area.test(below))
  if (found !== undefined && found[1] === undefined) return undefined
  const area = found?.[1]
  if (method === "GET" || method === "HEAD") return area === undefined ? ["read"] : ["read", area]
  return [area ?? "operate"]
}
