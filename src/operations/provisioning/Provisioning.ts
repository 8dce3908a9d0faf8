/** Creates, changes and removes people, tenants and keys for the operator. Requests by external id are idempotent. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer } from "effect"
import { Ledger } from "../../books/ledger/Ledger.ts"
import type { LedgerContract } from "../../books/ledger/Ledger.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import { Allowances } from "../../money/allowances/Allowances.ts"
import type { AllowancesContract } from "../../money/allowances/Allowances.ts"
import * as ConsoleLinks from "../../people/auth/ConsoleLinks.ts"
import { Outbox } from "../../people/mail/Outbox.ts"
import type { TooManyLetters } from "../../people/mail/Problems.ts"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import { Applications } from "../../people/tenants/Applications.ts"
import type { ApplicationsContract } from "../../people/tenants/Applications.ts"
import { Belonging } from "../../people/tenants/Belonging.ts"
import * as Tenancy from "../../people/tenants/Directory.ts"
import type { Key, Person } from "../../people/tenants/Directory.ts"
import * as Founding from "../../people/tenants/Founding.ts"
import { NewTenantBudgets } from "../../people/tenants/NewTenantBudgets.ts"
import type { BelongingContract } from "../../people/tenants/Belonging.ts"
import * as Invites from "../../people/tenants/Invites.ts"
import * as Members from "../../people/tenants/Members.ts"
import type { AlreadyMember, TeamFull, TooManyApplications, TooManyTenants } from "../../people/tenants/Problems.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import type { TenantsContract } from "../../people/tenants/Tenants.ts"
import type { Operator } from "../operator/Operator.ts"
import type { BalanceBeyondBooks, TenantClosed, TenantNotFound } from "../operator/Problems.ts"
import * as Externals from "./Externals.ts"
import * as Keys from "./Keys.ts"
import * as Letters from "./Letters.ts"
import * as People from "./People.ts"
import type {
  InviteSent,
  InviteWanted,
  KeyWanted,
  PersonWanted,
  ProvisionedKey,
  ProvisionedPerson,
  ProvisionedTenant,
  Removed,
  TenantWanted
} from "./Provision.ts"
import type { ExternalIdNotFound, ExternalIdUsed, NoHolder } from "./Problems.ts"
import * as TenantsOf from "./TenantsOf.ts"

interface ResourceService<Input, Resource, E> {
  /** Creates the resource, or updates the fields that differ. */
  readonly put: (
    by: Operator,
    external_id: string,
    wanted: Input
  ) => Effect.Effect<Resource, E | ExternalIdUsed | BooksUnavailable>
  readonly find: (external_id: string) => Effect.Effect<Resource, ExternalIdNotFound>
  readonly remove: (by: Operator, external_id: string) => Effect.Effect<Removed, ExternalIdNotFound | BooksUnavailable>
}

type MoneyProblem = BalanceBeyondBooks | TenantClosed
type TeamProblem = ExternalIdNotFound | TeamFull | TooManyTenants

/** `by` is the operator who acts. Lists are newest first, with ids below `before`. */
export interface ProvisioningContract {
  readonly people: ResourceService<PersonWanted, ProvisionedPerson, MoneyProblem | TeamProblem> & {
    /** Creates a person without an external id, unless an account already has the address. */
    readonly create: (
      by: Operator,
      wanted: Omit<PersonWanted, "credit_usd">
    ) => Effect.Effect<ProvisionedPerson, MoneyProblem | TeamProblem | BooksUnavailable>
    /** Returns whether an account has verified this address. */
    readonly isKnown: (email: string) => Effect.Effect<boolean>
    readonly list: (before: string | undefined, limit: number) => Effect.Effect<ReadonlyArray<Person>>
  }
  readonly tenants: ResourceService<TenantWanted, ProvisionedTenant, MoneyProblem | TooManyTenants> & {
    /** Creates a tenant without an external id. Each request creates another tenant. */
    readonly create: (
      by: Operator,
      wanted: Omit<TenantWanted, "credit_usd">
    ) => Effect.Effect<ProvisionedTenant, MoneyProblem | TooManyTenants | BooksUnavailable>
  }
  readonly keys: ResourceService<
    KeyWanted,
    ProvisionedKey,
    InvalidRequest | ExternalIdNotFound | TenantNotFound | NoHolder | TooManyApplications
  > & {
    readonly list: (before: string | undefined, limit: number) => Effect.Effect<ReadonlyArray<Key>>
  }
  readonly letters: {
    /** Queues a person's welcome email once. Returns `false` if it was queued before, the account is too old, or the person is suspended. */
    readonly welcome: (by: Operator, person: ProvisionedPerson) => Effect.Effect<boolean, BooksUnavailable>
    /** Invites an address to the service or to a tenant. Each invitation sends another email. */
    readonly invite: (
      by: Operator,
      wanted: InviteWanted
    ) => Effect.Effect<InviteSent, TenantNotFound | NoHolder | AlreadyMember | TooManyLetters | BooksUnavailable>
  }
}

export class Provisioning extends Context.Tag("tollgate/provisioning/Provisioning")<
  Provisioning,
  ProvisioningContract
>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Provisioning, make))
}

export interface Parts {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly ledger: LedgerContract
  readonly allowances: AllowancesContract
  readonly applications: ApplicationsContract
  readonly tenants: TenantsContract
  readonly belonging: BelongingContract
  readonly tenancy: ReturnType<typeof Tenancy.make>
  readonly founding: ReturnType<typeof Founding.make>
  readonly externals: Externals.Externals
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const tenants = yield* Tenants
  const belonging = yield* Belonging
  const parts: Parts = {
    sql,
    writer,
    tenants,
    belonging,
    ledger: yield* Ledger,
    allowances: yield* Allowances,
    applications: yield* Applications,
    tenancy: Tenancy.make(sql),
    founding: Founding.make(sql, writer, tenants, belonging, yield* NewTenantBudgets),
    externals: Externals.make(sql)
  }
  const secret = yield* DeploymentSecret
  const [outbox, info] = [yield* Outbox, yield* ServiceInfo]
  const members = Members.make(sql, writer, tenants, belonging)
  const { invite } = Invites.make({ sql, writer, secret, outbox, tenants, belonging, members, info })
  const links = ConsoleLinks.make(sql, writer, secret)
  return {
    people: People.make(parts),
    tenants: TenantsOf.make(parts),
    keys: Keys.make(parts),
    letters: Letters.make({ ...parts, outbox, links, invite, info })
  } satisfies ProvisioningContract
})
