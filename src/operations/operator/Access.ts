/** Access control: suspends and activates tenants and people, revokes keys, ends sign-ins, and lists and deletes passkeys. */
import { Clock, Effect } from "effect"
import type { SessionsContract } from "../../people/auth/Sessions.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { AccountId } from "../../kernel/Ids.ts"
import type { LedgerContract } from "../../books/ledger/Ledger.ts"
import type { PasskeysContract } from "../../people/passkeys/Passkeys.ts"
import type { ApplicationsContract } from "../../people/tenants/Applications.ts"
import type * as Tenancy from "../../people/tenants/Directory.ts"
import { AccountNotFound, ApplicationNotFound } from "../../people/tenants/Problems.ts"
import type { TenantsContract } from "../../people/tenants/Tenants.ts"
import type { OperatorActsContract } from "./Acts.ts"
import * as Audit from "./Audit.ts"
import { accountOf } from "./Credits.ts"
import { TenantClosed } from "./Problems.ts"

interface Parts {
  readonly ledger: LedgerContract
  readonly tenants: TenantsContract
  readonly applications: ApplicationsContract
  readonly sessions: SessionsContract
  readonly passkeys: PasskeysContract
  readonly tenancy: ReturnType<typeof Tenancy.make>
}

export const setTenant = ({ ledger }: Parts): OperatorActsContract["setTenant"] =>
  Effect.fn("OperatorActs.setTenant")(function* (by, tenant_id, status, { reason }) {
    const account = yield* accountOf(ledger, tenant_id)
    if (account.status === "closed") return yield* new TenantClosed()
    if (account.status === status) return { tenant_id, status, changed: false }
    const now = yield* Clock.currentTimeMillis
    const action = status === "active" ? "tenant.activate" : "tenant.suspend"
    yield* ledger
      .setStatus({ account: billingAccountOf(tenant_id), status }, [
        Audit.entry(by, { action, tenant_id, details: { reason } }, now)
      ])
      .pipe(Effect.catchTags({ AccountMissing: Effect.die, Conflict: Effect.die }))
    return { tenant_id, status, changed: true }
  })

export const setPerson = ({ sessions, tenancy, tenants }: Parts): OperatorActsContract["setPerson"] =>
  Effect.fn("OperatorActs.setPerson")(function* (by, account_id, status, { reason, suspender }) {
    yield* personOf(tenancy, account_id)
    const now = yield* Clock.currentTimeMillis
    const entry = (action: string) => Audit.entry(by, { action, account_id, details: { reason } }, now)
    const changed =
      status === "suspended"
        ? yield* tenants.suspend(account_id, [...sessions.endingAll(account_id), entry("person.suspend")], suspender)
        : yield* tenants.activate(account_id, [entry("person.activate")], suspender)
    // The operator's suspension can remain after the directory ends its own.
    const isSuspended = yield* tenants.isSuspended(account_id)
    return { account_id, status: isSuspended ? ("suspended" as const) : ("active" as const), changed }
  })

export const revokeKey = ({ applications, tenancy }: Parts): OperatorActsContract["revokeKey"] =>
  Effect.fn("OperatorActs.revokeKey")(function* (by, application_id, { reason }) {
    const key = yield* tenancy.key(application_id)
    if (key === undefined) return yield* new ApplicationNotFound({ application_id })
    const { account_id, key_prefix, tenant_id } = key
    const now = yield* Clock.currentTimeMillis
    const details = { key_prefix, reason }
    const act = { action: "key.revoke", tenant_id, account_id, subject: application_id, details }
    const removed = applications.remove({ caller: { tenant_id, account_id: null }, application_id }, [
      Audit.entry(by, act, now)
    ])
    yield* Effect.catchTag(removed, "InsufficientRole", Effect.die)
    return { id: application_id, revoked: true }
  })

export const endSignIns = ({ passkeys, sessions, tenancy }: Parts): OperatorActsContract["endSignIns"] =>
  Effect.fn("OperatorActs.endSignIns")(function* (by, account_id, { passkeys: isDeleting = false, reason }) {
    yield* personOf(tenancy, account_id)
    const now = yield* Clock.currentTimeMillis
    const found = (yield* passkeys.list(account_id)).length
    const [passkeys_deleted, passkeys_left] = isDeleting ? [found, 0] : [0, found]
    const ended = yield* sessions.endAll(account_id, (open) => [
      ...(isDeleting ? passkeys.removingAll(account_id) : []),
      Audit.entry(
        by,
        { action: "sign_ins.revoke", account_id, details: { open, passkeys_deleted, passkeys_left, reason } },
        now
      )
    ])
    return { account_id, ended, passkeys_deleted, passkeys_left }
  })

export const passkeysOf = ({ passkeys, tenancy }: Parts): OperatorActsContract["passkeys"] =>
  Effect.fn("OperatorActs.passkeys")(function* (account_id) {
    yield* personOf(tenancy, account_id)
    return yield* passkeys.list(account_id)
  })

export const deletePasskey = ({ passkeys, tenancy }: Parts): OperatorActsContract["deletePasskey"] =>
  Effect.fn("OperatorActs.deletePasskey")(function* (by, account_id, id, { reason }) {
    yield* personOf(tenancy, account_id)
    const now = yield* Clock.currentTimeMillis
    const act = { action: "passkey.delete", account_id, subject: id, details: { reason } }
    yield* passkeys.remove(account_id, id, [Audit.entry(by, act, now)])
    return { id, deleted: true }
  })

const personOf = (tenancy: Parts["tenancy"], account_id: AccountId) =>
  Effect.flatMap(tenancy.person(account_id), (person) =>
    person === undefined ? new AccountNotFound({ account_id }) : Effect.succeed(person)
  )
