/** Creates, changes and revokes API keys by external id. */
import { Clock, Effect } from "effect"
import * as Statements from "../../books/ledger/write/Statements.ts"
import type { AccountId, ApplicationId, TenantId } from "../../kernel/Ids.ts"
import { textOf } from "../../kernel/Labels.ts"
import type { Application } from "../../people/tenants/Application.ts"
import type { Key } from "../../people/tenants/Directory.ts"
import * as Audit from "../operator/Audit.ts"
import type { Operator } from "../operator/Operator.ts"
import { TenantNotFound } from "../operator/Problems.ts"
import { ExternalIdNotFound, ExternalIdUsed, NoHolder } from "./Problems.ts"
import type { KeyWanted, ProvisionedKey } from "./Provision.ts"
import type { Parts, ProvisioningContract } from "./Provisioning.ts"

type KeysContract = ProvisioningContract["keys"]

export const make = (parts: Parts): KeysContract => ({
  put: putting(parts),
  find: finding(parts),
  remove: removing(parts),
  list: parts.tenancy.keys
})

const shownOf = (
  key: Application,
  tenant_id: TenantId,
  external_id: string,
  api_key: string | undefined
): ProvisionedKey => ({
  external_id,
  created: api_key !== undefined,
  id: key.id,
  tenant_id,
  account_id: key.account_id,
  name: key.name,
  key_prefix: key.key_prefix,
  spending_limit_usd: key.spending_limit_usd ?? null,
  spending_limit_period: key.spending_limit_period ?? null,
  spent_usd: key.spent_usd ?? null,
  expires_at: key.expires_at ?? null,
  allowed_models: key.allowed_models ?? null,
  tags: key.tags ?? null,
  ...(api_key !== undefined && { api_key })
})

// ---- the key's tenant and holder ----------------------------------------------------------------------------------------

const idOf = ({ externals }: Parts, kind: "person" | "tenant", external_id: string) =>
  Effect.flatMap(externals.find(kind, external_id), (found) =>
    found === undefined || found.removed_at !== null
      ? new ExternalIdNotFound({ external_id })
      : Effect.succeed(found.id)
  )

/** Finds the tenant that a key belongs to and the member who holds the key. */
const holderOf = Effect.fnUntraced(function* (parts: Parts, wanted: KeyWanted) {
  const { person_external_id, tenant_external_id } = wanted
  const account = person_external_id === undefined ? undefined : yield* idOf(parts, "person", person_external_id)
  const home = account === undefined ? undefined : (yield* parts.tenancy.person(account))?.home_tenant_id
  const named =
    wanted.tenant_id ??
    (tenant_external_id === undefined ? undefined : yield* idOf(parts, "tenant", tenant_external_id))
  const tenant_id = (named ?? home) as TenantId
  const members = yield* parts.tenants.members(tenant_id)
  if (members.length === 0) return yield* new TenantNotFound({ tenant_id })
  const holder = members.find(
    ({ account_id, role, status }) =>
      status === "active" && (account === undefined ? role === "owner" : account_id === account)
  )
  if (holder === undefined) return yield* new NoHolder({ tenant_id })
  return { tenant_id, account_id: holder.account_id as AccountId }
})

// ---- creating and changing ----------------------------------------------------------------------------------------------

/** Reads the key with an external id. `key` is `undefined` if there is no such key or if it was revoked elsewhere. */
const keyOf = Effect.fnUntraced(function* ({ applications, externals, tenancy }: Parts, external_id: string) {
  const found = yield* externals.find("key", external_id)
  const line = found === undefined || found.removed_at !== null ? undefined : yield* tenancy.key(found.id)
  if (line === undefined) return { found, line: undefined, key: undefined }
  const key = yield* applications
    .find({ caller: { tenant_id: line.tenant_id, account_id: null }, application_id: line.id })
    .pipe(Effect.catchTags({ ApplicationNotFound: () => Effect.void, InsufficientRole: Effect.die }))
  return key === undefined ? { found, line: undefined, key } : { found, line, key }
})

const limitsOf = ({ allowed_models, expires_at, spending_limit_period, spending_limit_usd, tags }: KeyWanted) => ({
  spending_limit_usd: spending_limit_usd ?? null,
  ...(spending_limit_usd != null && { spending_limit_period: spending_limit_period ?? ("total" as const) }),
  expires_at: expires_at ?? null,
  allowed_models: allowed_models ?? null,
  tags: tags ?? null
})

const isAsWanted = (key: Application, wanted: KeyWanted): boolean => {
  const limits = limitsOf(wanted)
  return (
    key.name === wanted.name &&
    (key.spending_limit_usd ?? null) === limits.spending_limit_usd &&
    (limits.spending_limit_usd === null || key.spending_limit_period === limits.spending_limit_period) &&
    (key.expires_at ?? null) === limits.expires_at &&
    textOf(Object.entries(key.tags ?? {})) === textOf(Object.entries(limits.tags ?? {})) &&
    JSON.stringify(key.allowed_models ?? null) ===
      JSON.stringify(limits.allowed_models === null ? null : [...new Set(limits.allowed_models)])
  )
}

const putting = (parts: Parts): KeysContract["put"] => {
  const put: KeysContract["put"] = Effect.fn("Provisioning.keys.put")(function* (by, external_id, wanted) {
    const holder = yield* holderOf(parts, wanted)
    const { found, key, line } = yield* keyOf(parts, external_id)
    if (key === undefined || line === undefined) return yield* created(parts, by, external_id, wanted, holder, found)
    if (line.tenant_id !== holder.tenant_id) return yield* new ExternalIdUsed({ external_id })
    if (isAsWanted(key, wanted)) return shownOf(key, line.tenant_id, external_id, undefined)
    const change = { name: wanted.name, ...limitsOf(wanted) }
    const changed = parts.applications.change({
      caller: { tenant_id: line.tenant_id, account_id: null },
      application_id: key.id,
      change
    })
    const now = yield* Clock.currentTimeMillis
    const after = yield* Effect.catchTag(changed, "InsufficientRole", Effect.die).pipe(
      Effect.catchTag("ApplicationNotFound", () => new ExternalIdNotFound({ external_id }))
    )
    const act = { action: "key.change", tenant_id: line.tenant_id, subject: key.id, details: { external_id } }
    yield* Statements.write(parts.writer, Audit.entry(by, act, now))
    return shownOf(after, line.tenant_id, external_id, undefined)
  })
  return put
}

const created = Effect.fnUntraced(function* (
  parts: Parts,
  by: Operator,
  external_id: string,
  wanted: KeyWanted,
  holder: { readonly tenant_id: TenantId; readonly account_id: AccountId },
  found: Parameters<Parts["externals"]["claim"]>[3]
) {
  const now = yield* Clock.currentTimeMillis
  const { name } = wanted
  const made = parts.applications.create({
    caller: holder,
    application: { name, description: "created by the operator", ...limitsOf(wanted) },
    isBound: true,
    beside: (id) => [
      parts.externals.claim("key", external_id, id, found, now),
      Audit.entry(by, { action: "key.create", ...holder, subject: id, details: { name, external_id } }, now)
    ]
  })
  const key = yield* Effect.catchTag(made, "TooManyApplications", (problem) =>
    Effect.flatMap(parts.externals.find("key", external_id), (other) =>
      // A concurrent request created the key.
      Effect.fail(other !== undefined && other.id !== found?.id ? new ExternalIdUsed({ external_id }) : problem)
    )
  )
  return shownOf(key, holder.tenant_id, external_id, key.api_key)
})

// ---- reading and removing -----------------------------------------------------------------------------------------------

const openOf = Effect.fnUntraced(function* (parts: Parts, external_id: string) {
  const { key, line } = yield* keyOf(parts, external_id)
  if (key === undefined || line === undefined) return yield* new ExternalIdNotFound({ external_id })
  return { key, tenant_id: line.tenant_id }
})

const finding = (parts: Parts): KeysContract["find"] =>
  Effect.fn("Provisioning.keys.find")(function* (external_id) {
    const { key, tenant_id } = yield* openOf(parts, external_id)
    return shownOf(key, tenant_id, external_id, undefined)
  })

type Revocable = Pick<Key, "id" | "tenant_id" | "account_id" | "key_prefix">

/** Revokes a key. Returns `false` if it was already revoked. */
const revoke = Effect.fnUntraced(function* (
  { applications }: Parts,
  by: Operator,
  { account_id, id, key_prefix, tenant_id }: Revocable
) {
  const now = yield* Clock.currentTimeMillis
  const act = { action: "key.revoke", tenant_id, account_id, subject: id, details: { key_prefix } }
  return yield* applications
    .remove({ caller: { tenant_id, account_id: null }, application_id: id }, [Audit.entry(by, act, now)])
    .pipe(
      Effect.as(true),
      Effect.catchTags({ ApplicationNotFound: () => Effect.succeed(false), InsufficientRole: Effect.die })
    )
})

/** Revokes keys, page by page, until no revocable key is left. Returns how many were revoked. */
export const revokeAll = (parts: Parts) =>
  Effect.fnUntraced(function* (by: Operator, page: Effect.Effect<ReadonlyArray<Revocable>>) {
    let revoked = 0
    for (;;) {
      const done = yield* Effect.forEach(yield* page, (key) => revoke(parts, by, key))
      const count = done.filter(Boolean).length
      if (count === 0) return revoked
      revoked += count
    }
  })

const removing = (parts: Parts): KeysContract["remove"] =>
  Effect.fn("Provisioning.keys.remove")(function* (by, external_id) {
    const { key, tenant_id } = yield* openOf(parts, external_id)
    const wasOpen = yield* revoke(parts, by, { ...key, tenant_id, id: key.id as ApplicationId })
    const now = yield* Clock.currentTimeMillis
    yield* Statements.write(parts.writer, parts.externals.removed("key", external_id, now))
    return { external_id, keys_revoked: wasOpen ? 1 : 0 }
  })
