/** Creates, changes and removes people for the operator. */
import { Clock, Effect } from "effect"
import * as Statements from "../../books/ledger/write/Statements.ts"
import type { AccountId } from "../../kernel/Ids.ts"
import * as Families from "../../people/credentials/Families.ts"
import { removingAll } from "../../people/passkeys/Removal.ts"
import type { Person } from "../../people/tenants/Directory.ts"
import * as Audit from "../operator/Audit.ts"
import type { Operator } from "../operator/Operator.ts"
import type { External } from "./Externals.ts"
import { revokeAll } from "./Keys.ts"
import * as Money from "./Money.ts"
import { ExternalIdNotFound, ExternalIdUsed } from "./Problems.ts"
import type { PersonWanted, ProvisionedPerson } from "./Provision.ts"
import type { Parts, ProvisioningContract } from "./Provisioning.ts"
import * as Teams from "./Teams.ts"

type PeopleContract = ProvisioningContract["people"]

export const make = (parts: Parts): PeopleContract => ({
  put: putting(parts),
  create: creating(parts),
  find: finding(parts),
  remove: removing(parts),
  isKnown: (email) => Effect.map(parts.tenants.accountOfEmail(email), (account) => account !== undefined),
  list: parts.tenancy.people
})

const nameIn = (email: string): string => email.slice(0, email.lastIndexOf("@")).slice(0, 100)

/** Returns the account with an address. Creates it if necessary. The operator vouches for the address. */
export const welcomed = ({ tenants }: Parts, email: string, name = nameIn(email)) =>
  tenants.welcome({ provider: "email", subject: email, email, email_verified: true, name })

const shownOf = (person: Person, external_id: string | null, created: boolean): ProvisionedPerson => ({
  external_id,
  created,
  id: person.id,
  home_tenant_id: person.home_tenant_id,
  email: person.email,
  name: person.name,
  status: person.suspended_at === null ? "active" : "suspended"
})

/** Reads a person. Every external id of a person refers to an account, and accounts are never deleted. */
const personOf = ({ tenancy }: Parts, id: string) =>
  Effect.flatMap(tenancy.person(id), (person) =>
    person === undefined ? Effect.dieMessage(`there is no account ${id}`) : Effect.succeed(person)
  )

/** Suspends or activates a person. `undefined` leaves the person unchanged. */
const setSuspended = ({ sql, tenants }: Parts) =>
  Effect.fnUntraced(function* (by: Operator, person: Person, suspended: boolean | undefined) {
    // Suspends the person even if the directory has already done so, because the directory can end its own suspension.
    if (suspended === undefined || (!suspended && person.suspended_at === null)) return
    const now = yield* Clock.currentTimeMillis
    const account_id = person.id
    const entry = (action: string) => Audit.entry(by, { action, account_id }, now)
    const ended = Families.endingAll(sql, account_id)
    yield* suspended
      ? tenants.suspend(account_id, [...ended, entry("person.suspend")])
      : tenants.activate(account_id, [entry("person.activate")])
  })

const rename = ({ tenants }: Parts) =>
  Effect.fnUntraced(function* (by: Operator, { id, name: before }: Person, name: string | undefined) {
    const newName = name?.trim()
    if (newName === undefined || newName === before) return
    const now = yield* Clock.currentTimeMillis
    yield* tenants.renameAccount(id, newName, [
      Audit.entry(by, { action: "person.rename", account_id: id, details: { name: newName } }, now)
    ])
  })

const putting = (parts: Parts): PeopleContract["put"] =>
  Effect.fn("Provisioning.people.put")(function* (by, external_id, wanted) {
    const team = yield* Teams.named(parts, wanted.team_external_id)
    const before = yield* parts.externals.find("person", external_id)
    const isOpen = before !== undefined && before.removed_at === null
    const id = isOpen
      ? yield* sameAddress(parts, external_id, before, wanted)
      : yield* claimed(parts, by, external_id, before, wanted)
    const person = yield* personOf(parts, id)
    yield* setSuspended(parts)(by, person, wanted.suspended ?? (before !== undefined && !isOpen ? false : undefined))
    yield* rename(parts)(by, person, wanted.name)
    yield* Money.creditOnce(parts)(by, "person", external_id, person.home_tenant_id, wanted.credit_usd)
    yield* Money.allow(parts)(by, person.home_tenant_id, wanted.allowance)
    yield* Teams.join(parts)(by, person, team)
    return shownOf(yield* personOf(parts, id), external_id, !isOpen)
  })

const sameAddress = Effect.fnUntraced(function* (
  parts: Parts,
  external_id: string,
  { id }: External,
  { email }: PersonWanted
) {
  const person = yield* personOf(parts, id)
  return person.email === email ? person.id : yield* new ExternalIdUsed({ external_id })
})

const claimed = Effect.fnUntraced(function* (
  parts: Parts,
  by: Operator,
  external_id: string,
  before: External | undefined,
  { email, name }: PersonWanted
) {
  const { account_id } = yield* welcomed(parts, email, name?.trim())
  const now = yield* Clock.currentTimeMillis
  const isNew = yield* Statements.tryWrite(
    parts.writer,
    parts.externals.claim("person", external_id, account_id, before, now),
    Audit.entry(by, { action: "person.create", account_id, subject: external_id }, now)
  )
  return isNew ? account_id : yield* new ExternalIdUsed({ external_id })
})

const creating = (parts: Parts): PeopleContract["create"] =>
  Effect.fn("Provisioning.people.create")(function* (by, { allowance, email, name, suspended, team_external_id }) {
    const team = yield* Teams.named(parts, team_external_id)
    const { account_id, created } = yield* welcomed(parts, email, name?.trim())
    const now = yield* Clock.currentTimeMillis
    if (created) yield* Statements.write(parts.writer, Audit.entry(by, { action: "person.create", account_id }, now))
    const person = yield* personOf(parts, account_id)
    yield* setSuspended(parts)(by, person, suspended)
    yield* Money.allow(parts)(by, person.home_tenant_id, allowance)
    yield* Teams.join(parts)(by, person, team)
    return shownOf(yield* personOf(parts, account_id), null, created)
  })

const openOf = ({ externals }: Parts, external_id: string) =>
  Effect.flatMap(externals.find("person", external_id), (found) =>
    found === undefined || found.removed_at !== null
      ? new ExternalIdNotFound({ external_id })
      : Effect.succeed(found.id as AccountId)
  )

const finding = (parts: Parts): PeopleContract["find"] =>
  Effect.fn("Provisioning.people.find")(function* (external_id) {
    const id = yield* openOf(parts, external_id)
    return shownOf(yield* personOf(parts, id), external_id, false)
  })

/**
 * Removes a person. Suspends the person first, so that no key is used or created during the removal. If a removal is interrupted, the next request
 * completes it.
 */
const removing = (parts: Parts): PeopleContract["remove"] =>
  Effect.fn("Provisioning.people.remove")(function* (by, external_id) {
    const id = yield* openOf(parts, external_id)
    yield* setSuspended(parts)(by, yield* personOf(parts, id), true)
    const keys_revoked = yield* revokeAll(parts)(by, parts.tenancy.keysOfAccount(id, 200))
    const now = yield* Clock.currentTimeMillis
    yield* Statements.write(
      parts.writer,
      parts.externals.removed("person", external_id, now),
      ...removingAll(parts.sql, id),
      Audit.entry(by, { action: "person.remove", account_id: id, subject: external_id, details: { keys_revoked } }, now)
    )
    return { external_id, keys_revoked }
  })
