/**
 * SCIM 2.0 (RFC 7643 and 7644). A company's directory uses it to create, change and remove people. The directory's groups add people to teams.
 *
 * Where the specification is silent:
 * - A user is an account. POST creates the account, or adopts the account that has verified the same address. The user's id is the account's id.
 * - `active: false` and DELETE suspend the person: their sign-ins end and their keys stop working. DELETE also revokes the keys and deletes the
 *   passkeys. The account keeps its credit and records, and a later POST with the same address restores it. `active: true` ends the directory's
 *   suspension, but not the operator's.
 * - A new `userName` or address changes the directory's record. The account keeps its verified address.
 * - Group rules must name the provider `scim`. The groups of the directory and those of an identity provider do not remove each other's memberships.
 * - Filters are limited to `eq` on names and ids. Bulk requests, sorting, ETags and password changes are not supported, as `ServiceProviderConfig`
 *   states.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer } from "effect"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import * as Tenancy from "../../people/tenants/Directory.ts"
import { Registration } from "../../people/tenants/Registration.ts"
import type { RegistrationContract } from "../../people/tenants/Registration.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import type { TenantsContract } from "../../people/tenants/Tenants.ts"
import { OperatorActs } from "../operator/Acts.ts"
import type { OperatorActsContract } from "../operator/Acts.ts"
import { Provisioning } from "../provisioning/Provisioning.ts"
import type { ProvisioningContract } from "../provisioning/Provisioning.ts"
import type { StoredGroup } from "./Group.ts"
import * as Groups from "./Groups.ts"
import type { InvalidFilter, InvalidPath, InvalidValue, NotUnique, ResourceNotFound } from "./Problems.ts"
import type { Body, ListQuery } from "./Resource.ts"
import type { StoredUser } from "./User.ts"
import * as Users from "./Users.ts"

interface Found<A> {
  readonly total: number
  /** The 1-based index of the page's first resource. */
  readonly start: number
  readonly found: ReadonlyArray<A>
}

interface ResourceService<A> {
  readonly list: (query: ListQuery) => Effect.Effect<Found<A>, InvalidFilter>
  readonly find: (id: string) => Effect.Effect<A, ResourceNotFound>
  readonly create: (body: Body) => Effect.Effect<A, InvalidValue | NotUnique | BooksUnavailable>
  readonly replace: (
    id: string,
    body: Body
  ) => Effect.Effect<A, ResourceNotFound | InvalidValue | NotUnique | BooksUnavailable>
  readonly patch: (
    id: string,
    body: Body
  ) => Effect.Effect<A, ResourceNotFound | InvalidValue | InvalidPath | NotUnique | BooksUnavailable>
  readonly remove: (id: string) => Effect.Effect<void, ResourceNotFound | BooksUnavailable>
}

export interface ScimContract {
  readonly users: ResourceService<StoredUser>
  readonly groups: ResourceService<StoredGroup>
}

export class Scim extends Context.Tag("tollgate/scim/Scim")<Scim, ScimContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Scim, make))
}

export interface Parts {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly tenants: TenantsContract
  readonly tenancy: ReturnType<typeof Tenancy.make>
  readonly registration: RegistrationContract
  readonly acts: OperatorActsContract
  readonly provisioning: ProvisioningContract
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const parts: Parts = {
    sql,
    writer: yield* Writer,
    tenants: yield* Tenants,
    tenancy: Tenancy.make(sql),
    registration: yield* Registration,
    acts: yield* OperatorActs,
    provisioning: yield* Provisioning
  }
  return { users: Users.make(parts), groups: Groups.make(parts) } satisfies ScimContract
})
