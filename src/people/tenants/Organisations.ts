/**
 * Tenants that people share: made, joined by invitation, left; and their plans.
 *
 * Where the specification is silent:
 * - Nobody is suspended in, or removed from, their home tenant (409 `home_tenant`); everywhere else the last active owner stays
 *   (409 `last_owner`). Only owners change owners or appoint them. Anybody may leave.
 * - Inviting an address again replaces its open invitation: the earlier link stops. An invitation is open for 14 days, and tells an
 *   account of that address by a notification too, without the token. A suspended member is not let in again by a letter.
 * - Seats are taken by active and suspended members. Without a plan there is nothing to fill, so no limit. Fewer seats than members
 *   remove nobody; they keep others from joining. A plan that ended has no seats, and the next one begins with 25 unless it says
 *   otherwise. Plan and billing settings are for owners and admins.
 * - A membership of status `invited` is never written: who is invited has an invitation, not yet a place.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import type { Caller } from "../../kernel/Caller.ts"
import * as Ids from "../../kernel/Ids.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import { statement } from "../../books/ledger/Transaction.ts"
import { afterCommit, Writer } from "../../books/ledger/Writer.ts"
import { Outbox } from "../mail/Outbox.ts"
import type { TooManyLetters } from "../mail/Problems.ts"
import type { Member, Membership } from "./Account.ts"
import { Belonging } from "./Belonging.ts"
import * as Invites from "./Invites.ts"
import * as Members from "./Members.ts"
import type {
  Invite,
  InviteId,
  InvitePreview,
  MemberChange,
  NewInvite,
  Organisation,
  PlanChange,
  TenantPlan
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

/** Who acts: the tenant in question is named beside it. */
export interface By {
  readonly caller: Pick<Caller, "account_id">
}
export interface InTenant extends By {
  readonly tenant_id: TenantId
}

/** Times are milliseconds since 1970. */
export interface OrganisationsContract {
  /** Makes a tenant with no credit, whose owner the caller is. */
  readonly create: (
    request: By & { readonly name: string }
  ) => Effect.Effect<Organisation, TooManyTenants | BooksUnavailable>
  readonly members: (request: InTenant) => Effect.Effect<ReadonlyArray<Member>, NotAMember>
  /** Changes role or status of a member. One may always take oneself out (`removed`), unless one is the last owner. */
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
  /** The latest 500, newest first; for owners and admins. */
  readonly invites: (request: InTenant) => Effect.Effect<ReadonlyArray<Invite>, NotAMember | InsufficientRole>
  /** Mails a link to the address. An open invitation of the same address is replaced: its link works no more. */
  readonly invite: (
    request: InTenant & { readonly invite: NewInvite }
  ) => Effect.Effect<Invite, NotAMember | InsufficientRole | AlreadyMember | TooManyLetters | BooksUnavailable>
  readonly revoke: (
    request: InTenant & { readonly invite_id: InviteId }
  ) => Effect.Effect<Invite, NotAMember | InsufficientRole | InviteNotFound | BooksUnavailable>
  /** What a letter's link is about, for whoever holds its token. */
  readonly previewInvite: (request: { readonly token: string }) => Effect.Effect<InvitePreview, InviteNotFound>
  /** Joins by the token of a letter. Who has joined by it already gets the same membership again. */
  readonly accept: (
    request: By & { readonly token: string }
  ) => Effect.Effect<Membership, InviteNotFound | EmailMismatch | TeamFull | TooManyTenants | BooksUnavailable>
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

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const tenants = yield* Tenants
  const belonging = yield* Belonging
  const members = Members.make(sql, writer, tenants, belonging)
  const invites = Invites.make({
    sql,
    writer,
    tenants,
    belonging,
    members,
    secret: yield* DeploymentSecret,
    outbox: yield* Outbox,
    info: yield* ServiceInfo
  })

  const create: OrganisationsContract["create"] = Effect.fn("Organisations.create")(function* (request) {
    const { account_id } = request.caller
    yield* members.hasRoom(account_id, true, true)
    const created_at = yield* Clock.currentTimeMillis
    const id = Ids.at("ten", created_at) as TenantId
    const name = request.name.trim()
    const made = writer.submit({
      postings: [{ _tag: "Open", account: Ids.billingAccountOf(id), tenant: id }],
      statements: [
        members.stillHasRoom(account_id, true, true),
        statement(
          sql`INSERT INTO tollgate_tenants_tenants (id, name, created_at) VALUES (${id}, ${name}, ${created_at})`
        ),
        statement(sql`INSERT INTO tollgate_tenants_memberships (account_id, tenant_id, role, status, created_at, updated_at)
          VALUES (${account_id}, ${id}, 'owner', 'active', ${created_at}, ${created_at})`)
      ]
    })
    return yield* afterCommit(made, belonging.changed(account_id)).pipe(
      Effect.as({ id, name, role: "owner", created_at } as const),
      Effect.catchTags({ Conflict: () => create(request), AccountExists: Effect.die })
    )
  })

  const planOf = Effect.fnUntraced(function* (tenant: TenantId): Effect.fn.Return<TenantPlan> {
    const { plan, seats, status } = yield* tenants.plan(tenant)
    const seats_taken = (yield* tenants.members(tenant)).length
    return { plan, status: plan === "none" ? "none" : status, seats, seats_taken }
  })

  const plan: OrganisationsContract["plan"] = Effect.fn("Organisations.plan")(function* ({ caller, tenant_id }) {
    yield* members.membersOf(tenant_id, caller.account_id)
    return yield* planOf(tenant_id)
  })

  const setPlan: OrganisationsContract["setPlan"] = Effect.fn("Organisations.setPlan")(function* (request) {
    const { caller, tenant_id } = request
    const { plan, seats } = request.plan
    yield* members.managed(tenant_id, caller.account_id)
    const before = yield* tenants.plan(tenant_id)
    // A plan that is past due is the operator's to set right; one that was ended begins anew.
    const status = plan === "none" ? "canceled" : before.status === "past_due" ? "past_due" : "active"
    yield* tenants.setPlan(tenant_id, { plan, status, ...(seats !== undefined && { seats }) })
    return yield* planOf(tenant_id)
  })

  return {
    ...invites,
    create,
    members: Effect.fn("Organisations.members")(({ caller, tenant_id }) =>
      Effect.map(members.membersOf(tenant_id, caller.account_id), (found) => found.members)
    ),
    change: members.change,
    plan,
    setPlan
  } satisfies OrganisationsContract
})
