/** Schemas for organizations with their members, invitations and plans, and the rules about roles. */
import { Schema } from "effect"
import { Email } from "../../kernel/Email.ts"
import { AccountId, TenantId } from "../../kernel/Ids.ts"
import { Moment } from "../../kernel/Moment.ts"
import { StoredText } from "../../kernel/StoredText.ts"
import { Member, PlanName, PlanStatus, Role } from "./Account.ts"

export const Organisation = Schema.Struct({
  id: TenantId,
  name: Schema.String,
  role: Role,
  created_at: Moment
}).annotations({ identifier: "Organisation" })
export interface Organisation extends Schema.Schema.Type<typeof Organisation> {}

export const TenantSettings = Schema.Struct({
  /** Whether calls are tagged with the session and agent in the headers of Claude Code and Codex (`session`, `agent`). */
  attribution_tags: Schema.Boolean
}).annotations({ identifier: "TenantSettings" })
export interface TenantSettings extends Schema.Schema.Type<typeof TenantSettings> {}

export const TenantChange = Schema.Struct({
  attribution_tags: Schema.optional(Schema.Boolean)
}).annotations({ identifier: "TenantChange" })
export interface TenantChange extends Schema.Schema.Type<typeof TenantChange> {}

export const NewOrganisation = Schema.Struct({
  name: StoredText.pipe(
    Schema.filter((name) => name.trim() !== "" && name.length <= 100, {
      message: () => "1 to 100 characters"
    })
  )
}).annotations({ identifier: "NewOrganisation" })

export const Members = Schema.Struct({ members: Schema.Array(Member) })

export const MemberChange = Schema.Struct({
  role: Schema.optional(Role),
  status: Schema.optional(Schema.Literal("active", "suspended", "removed"))
}).annotations({ identifier: "MemberChange" })
export interface MemberChange extends Schema.Schema.Type<typeof MemberChange> {}

export const InviteId = Schema.String.pipe(Schema.brand("InviteId"))
export type InviteId = typeof InviteId.Type

export const NewInvite = Schema.Struct({
  email: Email,
  role: Schema.optionalWith(Role, { default: () => "member" })
}).annotations({ identifier: "NewInvite" })
export interface NewInvite extends Schema.Schema.Type<typeof NewInvite> {}

/** An invitation as shown to the tenant. Only the email contains its token. */
export const Invite = Schema.Struct({
  id: InviteId,
  tenant_id: TenantId,
  email: Schema.String,
  role: Role,
  status: Schema.Literal("pending", "accepted", "revoked", "expired"),
  invited_by: AccountId,
  created_at: Moment,
  expires_at: Moment
}).annotations({ identifier: "Invite" })
export interface Invite extends Schema.Schema.Type<typeof Invite> {}

/** An invitation as shown to anyone with its link. */
export const InvitePreview = Schema.Struct({
  tenant_name: Schema.String,
  role: Role,
  inviter_name: Schema.String,
  email_masked: Schema.String,
  status: Invite.fields.status,
  expires_at: Moment
}).annotations({ identifier: "InvitePreview" })
export interface InvitePreview extends Schema.Schema.Type<typeof InvitePreview> {}

export const Invites = Schema.Struct({ invites: Schema.Array(Invite) })

export const PlanChange = Schema.Struct({
  plan: PlanName,
  seats: Schema.optional(
    Schema.Int.pipe(Schema.between(1, 10_000, { message: () => "must be a whole number from 1 to 10000" }))
  )
}).annotations({ identifier: "PlanChange" })
export interface PlanChange extends Schema.Schema.Type<typeof PlanChange> {}

/** A tenant's plan. The status is `none` if there is no plan. */
export const TenantPlan = Schema.Struct({
  plan: PlanName,
  status: Schema.Literal("none", ...PlanStatus.literals),
  seats: Schema.Int,
  /** The number of active and suspended members. Each takes a seat. */
  seats_taken: Schema.Int
}).annotations({ identifier: "TenantPlan" })
export interface TenantPlan extends Schema.Schema.Type<typeof TenantPlan> {}

/** Returns whether the role may change the tenant's settings, members and invitations. */
export const manages = (role: Role): boolean => role !== "member"

/** Returns whether a member with the role `by` may grant, remove or change the role `of`. Only owners may change owners. */
export const mayTouch = (by: Role, of: Role): boolean => by === "owner" || (by === "admin" && of !== "owner")
