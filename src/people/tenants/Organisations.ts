/**
 * Shared tenants: their creation, members, invitations and plans.
 *
 * Where the specification is silent:
 * - A member cannot be suspended in or removed from their home tenant (409 `home_tenant`). The last active owner of a tenant cannot leave and cannot
 *   be demoted or suspended (409 `last_owner`). Every other member may leave. Only owners change or appoint owners.
 * - A second invitation to an address replaces the open invitation and invalidates its link. An invitation is open for 14 days. If an account has
 *   verified the address, the account also receives a notification, without the token. An invitation does not lift a suspension. When a member is
 *   removed, suspended or demoted, their open invitations to roles that they may no longer grant are revoked.
 * - Active and suspended members take seats. Without a plan, there is no limit. If a plan has fewer seats than the tenant has members, all members
 *   remain, but no further user can join. Setting the plan to `none` ends the plan. The next plan starts with 25 seats by default. Owners and admins
 *   change the plan and the billing settings.
 * - `attribution_tags` is off by default. A change takes effect within a minute, because keys and tokens are cached for a minute.
 * - A membership never has the status `invited`, because an invited user has an invitation instead.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import type { Caller } from "../../kernel/Caller.ts"
import * as Ids from "../../kernel/Ids.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { afterCommit, Writer } from "../../books/ledger/write/Writer.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import { Outbox } from "../mail/Outbox.ts"
import type { TooManyLetters } from "../mail/Problems.ts"
import type { Member, Membership } from "./Account.ts"
import { Belonging } from "./Belonging.ts"
import type { BelongingContract } from "./Belonging.ts"
import * as Invites from "./Invites.ts"
import * as Members from "./Members.ts"
import { NewTenantBudgets } from "./NewTenantBudgets.ts"
import type {
  Invite,
  InviteId,
  InvitePreview,
  MemberChange,
  NewInvite,
  Organisation,
  PlanChange,
  TenantChange,
  TenantPlan,
  TenantSettings
} from "./Organisation.ts"
import type {
  AlreadyMember,
  EmailMismatch,
  HomeTenant,
  InsufficientRole,
  InviteNotFound,
  LastOwner,
  MemberNotFound,
  NotAMember,
  TeamFull,
  TooManyTenants
} from "./Problems.ts"
import { Tenants } from "./Tenants.ts"
import type { TenantsContract } from "./Tenants.ts"

/** The acting account. The tenant comes from the request, not from the caller's credential. */
export interface By {
  readonly caller: Pick<Caller, "account_id">
}
export interface InTenant extends By {
  readonly tenant_id: TenantId
}

/** Times are Unix times in milliseconds. */
export interface OrganisationsContract {
  /** Creates a tenant without credit. The caller becomes its owner. */
  readonly create: (
    request: By & { readonly name: string }
  ) => Effect.Effect<Organisation, TooManyTenants | BooksUnavailable>
  readonly members: (request: InTenant) => Effect.Effect<ReadonlyArray<Member>, NotAMember>
  /** Changes a member's role or status. Members may leave (`removed`) any tenant except their home, unless they are its last active owner. */
  readonly change: (
    request: InTenant & { readonly account_id: AccountId; readonly change: MemberChange }
  ) => Effect.Effect<
    Member,
    | NotAMember
    | InsufficientRole
    | MemberNotFound
    | LastOwner
    | HomeTenant
    | TooManyTenants
    | InvalidRequest
    | BooksUnavailable
  >
  /** Lists up to 500 invitations, newest first. Only owners and admins may list them. */
  readonly invites: (request: InTenant) => Effect.Effect<ReadonlyArray<Invite>, NotAMember | InsufficientRole>
  /**
   * Saves the invitation and queues its email, in the same transaction as `beside`. Replaces an open invitation to the same address and invalidates
   * its link.
   */
  readonly invite: (
    request: InTenant & { readonly invite: NewInvite; readonly beside?: ReadonlyArray<Statement> }
  ) => Effect.Effect<Invite, NotAMember | InsufficientRole | AlreadyMember | TooManyLetters | BooksUnavailable>
  readonly revoke: (
    request: InTenant & { readonly invite_id: InviteId }
  ) => Effect.Effect<Invite, NotAMember | InsufficientRole | InviteNotFound | BooksUnavailable>
  /** Finds an invitation by its token, without a credential. */
  readonly previewInvite: (request: { readonly token: string }) => Effect.Effect<InvitePreview, InviteNotFound>
  /** Joins the tenant with the token from an email. A repeated request returns the same membership. */
  readonly accept: (
    request: By & { readonly token: string }
  ) => Effect.Effect<Membership, InviteNotFound | EmailMismatch | TeamFull | TooManyTenants | BooksUnavailable>
  readonly settings: (request: InTenant) => Effect.Effect<TenantSettings, NotAMember>
  /** Changes settings. The change takes effect within a minute. */
  readonly setSettings: (
    request: InTenant & { readonly change: TenantChange }
  ) => Effect.Effect<TenantSettings, NotAMember | InsufficientRole | BooksUnavailable>
  readonly plan: (request: InTenant) => Effect.Effect<TenantPlan, NotAMember>
  readonly setPlan: (
    request: InTenant & { readonly plan: PlanChange }
  ) => Effect.Effect<TenantPlan, NotAMember | InsufficientRole | BooksUnavailable>
}

export class Organisations extends Context.Tag("tollgate/tenants/Organisations")<
  Organisations,
  OrganisationsContract
>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Organisations, make))
}

interface Dependencies {
  readonly writer: WriterContract
  readonly sql: SqlClient
  readonly tenants: TenantsContract
  readonly belonging: BelongingContract
  readonly members: Members.Members
  readonly budgetsOf: NewTenantBudgets["Type"]
}

const make = Effect.gen(function* () {
  const [sql, writer, tenants, belonging] = [yield* SqlClient, yield* Writer, yield* Tenants, yield* Belonging]
  const members = Members.make(sql, writer, tenants, belonging)
  const budgetsOf = yield* NewTenantBudgets
  const dependencies: Dependencies = { sql, writer, tenants, belonging, members, budgetsOf }
  const invites = Invites.make({
    ...dependencies,
    secret: yield* DeploymentSecret,
    outbox: yield* Outbox,
    info: yield* ServiceInfo
  })
  return {
    ...invites,
    create: makeCreate(dependencies),
    members: Effect.fn("Organisations.members")(({ caller, tenant_id }) =>
      Effect.map(members.membersOf(tenant_id, caller.account_id), (found) => found.members)
    ),
    change: members.change,
    settings: Effect.fn("Organisations.settings")(({ caller, tenant_id }) =>
      Effect.zipRight(members.membersOf(tenant_id, caller.account_id), settingsOf(tenants, tenant_id))
    ),
    setSettings: settingSettings(dependencies),
    plan: Effect.fn("Organisations.plan")(({ caller, tenant_id }) =>
      Effect.zipRight(members.membersOf(tenant_id, caller.account_id), planOf(tenants, tenant_id))
    ),
    setPlan: settingPlan(dependencies)
  } satisfies OrganisationsContract
})

const makeCreate = ({ belonging, budgetsOf, members, sql, writer }: Dependencies): OrganisationsContract["create"] => {
  const create: OrganisationsContract["create"] = Effect.fn("Organisations.create")(function* (request) {
    const { account_id } = request.caller
    yield* members.hasRoom(account_id, true, true)
    const created_at = yield* Clock.currentTimeMillis
    const id = Ids.at("ten", created_at) as TenantId
    const name = request.name.trim()
    const budgets = yield* budgetsOf(id, created_at)
    const made = writer.submit({
      postings: [{ _tag: "Open", account: Ids.billingAccountOf(id), tenant: id }, ...budgets.postings],
      statements: [
        members.stillHasRoom(account_id, true, true),
        statement(
          sql`INSERT INTO tollgate_tenants_tenants (id, name, created_at) VALUES (${id}, ${name}, ${created_at})`
        ),
        statement(sql`INSERT INTO tollgate_tenants_memberships (account_id, tenant_id, role, status, created_at, updated_at)
          VALUES (${account_id}, ${id}, 'owner', 'active', ${created_at}, ${created_at})`),
        ...budgets.statements
      ]
    })
    return yield* afterCommit(made, belonging.changed(account_id)).pipe(
      Effect.as({ id, name, role: "owner", created_at } as const),
      Effect.catchTags({ Conflict: () => create(request), AccountExists: Effect.die, AccountMissing: Effect.die })
    )
  })
  return create
}

const settingsOf = (tenants: TenantsContract, tenant: TenantId): Effect.Effect<TenantSettings> =>
  Effect.map(tenants.attributes(tenant), (attribution_tags) => ({ attribution_tags }))

const settingSettings = ({ members, sql, tenants, writer }: Dependencies): OrganisationsContract["setSettings"] =>
  Effect.fn("Organisations.setSettings")(function* ({ caller, change, tenant_id }) {
    yield* members.managed(tenant_id, caller.account_id)
    const { attribution_tags } = change
    if (attribution_tags !== undefined)
      yield* Statements.write(
        writer,
        statement(
          sql`UPDATE tollgate_tenants_tenants SET attribution_tags = ${Number(attribution_tags)} WHERE id = ${tenant_id}`
        )
      )
    return yield* settingsOf(tenants, tenant_id)
  })

const planOf = Effect.fnUntraced(function* (tenants: TenantsContract, tenant: TenantId): Effect.fn.Return<TenantPlan> {
  const { plan, seats, status } = yield* tenants.plan(tenant)
  const seats_taken = (yield* tenants.members(tenant)).length
  return { plan, status: plan === "none" ? "none" : status, seats, seats_taken }
})

const settingPlan = ({ members, tenants }: Dependencies): OrganisationsContract["setPlan"] =>
  Effect.fn("Organisations.setPlan")(function* (request) {
    const { caller, tenant_id } = request
    const { plan, seats } = request.plan
    yield* members.managed(tenant_id, caller.account_id)
    const before = yield* tenants.plan(tenant_id)
    // Only the operator ends `past_due`.
    const status = before.status === "past_due" ? "past_due" : plan === "none" ? "canceled" : "active"
    yield* tenants.setPlan(tenant_id, { plan, status, ...(seats !== undefined && { seats }) })
    return yield* planOf(tenants, tenant_id)
  })
