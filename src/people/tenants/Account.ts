/** Schemas for accounts, memberships and plans. */
import { Schema } from "effect"
import { AccountId, TenantId } from "../../kernel/Ids.ts"
import { Moment } from "../../kernel/Moment.ts"
import { Usd } from "../../kernel/Money.ts"

export const Role = Schema.Literal("owner", "admin", "member")
export type Role = typeof Role.Type

export const MembershipStatus = Schema.Literal("active", "invited", "suspended", "removed")

/** An account. `tenant_id`, `role` and `status` refer to its home tenant. */
export const Account = Schema.Struct({
  id: AccountId,
  tenant_id: TenantId,
  email: Schema.String,
  name: Schema.String,
  role: Role,
  status: MembershipStatus,
  created_at: Moment,
  updated_at: Moment
}).annotations({ identifier: "Account" })
export interface Account extends Schema.Schema.Type<typeof Account> {}

export const Me = Schema.Struct({
  account: Account,
  identity: Schema.Struct({ email: Schema.String, provider: Schema.String, provider_id: Schema.String }),
  verification: Schema.Struct({
    email_verified: Schema.Boolean,
    /** `pending` means that the grant is waiting for a verified address. */
    signup_grant: Schema.Literal("claimed", "pending", "none"),
    grant_amount: Schema.optional(Usd)
  })
}).annotations({ identifier: "Me" })
export interface Me extends Schema.Schema.Type<typeof Me> {}

/** `none` means that there is no plan. `status` tells whether a plan is active. */
export const PlanName = Schema.Literal("none", "team")
export const PlanStatus = Schema.Literal("active", "past_due", "canceled")
export interface Plan {
  readonly plan: typeof PlanName.Type
  readonly status: typeof PlanStatus.Type
  readonly seats: number
}

export const noPlan: Plan = { plan: "none", status: "canceled", seats: 0 }

/** Returns whether the tenant is a team. If so, its pool may pay for its members, and they may see those payments. */
export const isTeam = ({ plan, status }: Plan): boolean => plan === "team" && status === "active"

export const Membership = Schema.Struct({
  tenant_id: TenantId,
  tenant_name: Schema.String,
  role: Role,
  status: MembershipStatus,
  is_home: Schema.Boolean,
  /** The tenant's plan. Its status is `none` if there is no plan. */
  plan: Schema.Struct({ status: Schema.Literal("none", ...PlanStatus.literals), seats: Schema.Int })
}).annotations({ identifier: "Membership" })
export interface Membership extends Schema.Schema.Type<typeof Membership> {}

export const Member = Schema.Struct({
  account_id: AccountId,
  name: Schema.String,
  email: Schema.String,
  role: Role,
  status: MembershipStatus,
  is_home: Schema.Boolean,
  /** When the member joined, and the time of the last change to their role or status. */
  created_at: Moment,
  updated_at: Moment
}).annotations({ identifier: "Member" })
export interface Member extends Schema.Schema.Type<typeof Member> {}
