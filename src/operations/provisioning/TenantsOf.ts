/** Creates, changes and removes tenants for the operator. */
import { Clock, Effect, Option } from "effect"
import { balanceOf } from "../../books/ledger/rules/Transaction.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import { TooManyTenants } from "../../people/tenants/Problems.ts"
import * as Audit from "../operator/Audit.ts"
import type { Operator } from "../operator/Operator.ts"
import { TenantClosed } from "../operator/Problems.ts"
import type { External } from "./Externals.ts"
import { revokeAll } from "./Keys.ts"
import * as Money from "./Money.ts"
import { welcomed } from "./People.ts"
import { ExternalIdNotFound, ExternalIdUsed } from "./Problems.ts"
import type { ProvisionedTenant, TenantWanted } from "./Provision.ts"
import type { Parts, ProvisioningContract } from "./Provisioning.ts"

type TenantsContract = ProvisioningContract["tenants"]

export const make = (parts: Parts): TenantsContract => ({
  put: putting(parts),
  create: creating(parts),
  find: finding(parts),
  remove: removing(parts)
})

const shown = Effect.fnUntraced(function* (
  { ledger, tenancy }: Parts,
  id: TenantId,
  external_id: string | null,
  created: boolean
) {
  const [line] = yield* tenancy.tenantsById([id])
  const account = Option.getOrUndefined(yield* ledger.accountOfTenant(id))
  if (line === undefined || account === undefined) return yield* Effect.dieMessage(`there is no tenant ${id}`)
  const { name, owner_email } = line
  const { status } = account
  return {
    external_id,
    created,
    id,
    name,
    owner_email,
    balance: balanceOf(account),
    status
  } satisfies ProvisionedTenant
})

/** Suspends or activates a tenant. `undefined` leaves the tenant unchanged. */
const setSuspended = ({ ledger }: Parts) =>
  Effect.fnUntraced(function* (by: Operator, tenant: ProvisionedTenant, suspended: boolean | undefined) {
    const status = suspended === true ? "suspended" : "active"
    if (suspended === undefined || tenant.status === status) return
    if (tenant.status === "closed") return yield* new TenantClosed()
    const now = yield* Clock.currentTimeMillis
    const action = suspended ? "tenant.suspend" : "tenant.activate"
    yield* ledger
      .setStatus({ account: billingAccountOf(tenant.id), status }, [
        Audit.entry(by, { action, tenant_id: tenant.id }, now)
      ])
      .pipe(Effect.catchTags({ AccountMissing: Effect.die, Conflict: Effect.die }))
  })

const rename = ({ tenants }: Parts) =>
  Effect.fnUntraced(function* (by: Operator, tenant: ProvisionedTenant, name: string) {
    const newName = name.trim()
    if (newName === tenant.name) return
    const now = yield* Clock.currentTimeMillis
    yield* tenants.renameTenant(tenant.id, newName, [
      Audit.entry(by, { action: "tenant.rename", tenant_id: tenant.id, details: { name: newName } }, now)
    ])
  })

const putting = (parts: Parts): TenantsContract["put"] =>
  Effect.fn("Provisioning.tenants.put")(function* (by, external_id, wanted) {
    const before = yield* parts.externals.find("tenant", external_id)
    const isOpen = before !== undefined && before.removed_at === null
    const id = isOpen
      ? (before.id as TenantId)
      : yield* before === undefined
          ? founded(parts, by, external_id, wanted)
          : claimedAgain(parts, by, external_id, before)
    const tenant = yield* shown(parts, id, external_id, false)
    yield* setSuspended(parts)(by, tenant, wanted.suspended ?? (before !== undefined && !isOpen ? false : undefined))
    yield* rename(parts)(by, tenant, wanted.name)
    yield* Money.creditOnce(parts)(by, "tenant", external_id, id, wanted.credit_usd)
    yield* Money.allow(parts)(by, id, wanted.allowance)
    return yield* shown(parts, id, external_id, !isOpen)
  })

const creating = (parts: Parts): TenantsContract["create"] =>
  Effect.fn("Provisioning.tenants.create")(function* (by, { allowance, name, owner_email, suspended }) {
    const { account_id } = yield* welcomed(parts, owner_email)
    const now = yield* Clock.currentTimeMillis
    const made = parts.founding({ account_id, name }, (tenant_id) => [
      Audit.entry(by, { action: "tenant.create", tenant_id, account_id }, now)
    ])
    // An earlier check allowed the owner another tenant, so a conflict means that the owner has since reached the limit.
    const { id } = yield* Effect.catchTag(made, "Conflict", () => new TooManyTenants())
    yield* setSuspended(parts)(by, yield* shown(parts, id, null, true), suspended)
    yield* Money.allow(parts)(by, id, allowance)
    return yield* shown(parts, id, null, true)
  })

/** Creates the tenant and its external id in one transaction. */
const founded = Effect.fnUntraced(function* (
  parts: Parts,
  by: Operator,
  external_id: string,
  { name, owner_email }: TenantWanted
) {
  const { account_id } = yield* welcomed(parts, owner_email)
  const now = yield* Clock.currentTimeMillis
  return yield* parts
    .founding({ account_id, name }, (tenant_id) => [
      parts.externals.claim("tenant", external_id, tenant_id, undefined, now),
      Audit.entry(by, { action: "tenant.create", tenant_id, account_id, subject: external_id }, now)
    ])
    .pipe(
      Effect.map(({ id }) => id),
      Effect.catchTag("Conflict", () =>
        Effect.flatMap(parts.externals.find("tenant", external_id), (found) =>
          found === undefined ? new ExternalIdUsed({ external_id }) : Effect.succeed(found.id as TenantId)
        )
      )
    )
})

const claimedAgain = Effect.fnUntraced(function* (parts: Parts, by: Operator, external_id: string, before: External) {
  const now = yield* Clock.currentTimeMillis
  const tenant_id = before.id as TenantId
  const done = yield* Statements.tryWrite(
    parts.writer,
    parts.externals.claim("tenant", external_id, tenant_id, before, now),
    Audit.entry(by, { action: "tenant.create", tenant_id, subject: external_id }, now)
  )
  return done ? tenant_id : yield* new ExternalIdUsed({ external_id })
})

const openOf = ({ externals }: Parts, external_id: string) =>
  Effect.flatMap(externals.find("tenant", external_id), (found) =>
    found === undefined || found.removed_at !== null
      ? new ExternalIdNotFound({ external_id })
      : Effect.succeed(found.id as TenantId)
  )

const finding = (parts: Parts): TenantsContract["find"] =>
  Effect.fn("Provisioning.tenants.find")(function* (external_id) {
    return yield* shown(parts, yield* openOf(parts, external_id), external_id, false)
  })

const removing = (parts: Parts): TenantsContract["remove"] =>
  Effect.fn("Provisioning.tenants.remove")(function* (by, external_id) {
    const id = yield* openOf(parts, external_id)
    const tenant = yield* shown(parts, id, external_id, false)
    if (tenant.status !== "closed")
      yield* Effect.catchTag(setSuspended(parts)(by, tenant, true), "TenantClosed", Effect.die)
    const keys = parts.applications.list({ caller: { tenant_id: id, account_id: null }, page: 1, per_page: 200 })
    const keys_revoked = yield* revokeAll(parts)(
      by,
      Effect.map(keys, ({ records }) => records.map((key) => ({ ...key, tenant_id: id })))
    )
    const now = yield* Clock.currentTimeMillis
    yield* Statements.write(
      parts.writer,
      parts.externals.removed("tenant", external_id, now),
      Audit.entry(by, { action: "tenant.remove", tenant_id: id, subject: external_id, details: { keys_revoked } }, now)
    )
    return { external_id, keys_revoked }
  })
