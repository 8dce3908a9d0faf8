import { Schema } from "effect"
import { AccountId, ApplicationId, TenantId } from "../../kernel/Ids.ts"
import { Problem } from "../../kernel/Problem.ts"

export class AccountNotFound extends Problem<AccountNotFound>()("AccountNotFound", {
  status: 404,
  error: "account not found",
  code: "account_not_found",
  fields: { account_id: AccountId },
  details: {}
}) {}

export class ApplicationNotFound extends Problem<ApplicationNotFound>()("ApplicationNotFound", {
  status: 404,
  error: "application not found",
  code: "application_not_found",
  fields: { application_id: ApplicationId },
  details: {}
}) {}

/** The caller is not an active member. Organization routes return this error, and so does a refresh for another tenant. */
export class NotAMember extends Problem<NotAMember>()("NotAMember", {
  status: 403,
  error: "you are not an active member of this tenant",
  code: "not_a_member",
  fields: { tenant_id: TenantId },
  details: {}
}) {}

/** The caller is not a member of the tenant or lacks the required role. */
export class InsufficientRole extends Problem<InsufficientRole>()("InsufficientRole", {
  status: 403,
  error: "your role in this tenant does not allow this request",
  code: "insufficient_role",
  fields: { tenant_id: TenantId },
  details: {}
}) {}

/** The caller's verified address is not the recipient's. */
export class EmailMismatch extends Problem<EmailMismatch>()("EmailMismatch", {
  status: 403,
  error: "this was sent to an address other than your account's verified email address",
  code: "email_mismatch"
}) {}

export class MemberNotFound extends Problem<MemberNotFound>()("MemberNotFound", {
  status: 404,
  error: "no such member in this tenant",
  code: "member_not_found",
  fields: { tenant_id: TenantId, account_id: AccountId },
  details: {}
}) {}

export class LastOwner extends Problem<LastOwner>()("LastOwner", {
  status: 409,
  error: "a tenant needs at least one active owner; make another member an owner first",
  code: "last_owner",
  fields: { tenant_id: TenantId },
  details: {}
}) {}

export class HomeTenant extends Problem<HomeTenant>()("HomeTenant", {
  status: 409,
  error: "this is the account's home tenant; the account cannot be suspended in it or removed from it",
  code: "home_tenant",
  fields: { tenant_id: TenantId, account_id: AccountId },
  details: {}
}) {}

export class AlreadyMember extends Problem<AlreadyMember>()("AlreadyMember", {
  status: 409,
  error: "a user with this address is already a member of the tenant",
  code: "already_member",
  fields: { tenant_id: TenantId, email: Schema.String },
  details: {}
}) {}

/** The invitation is unknown, revoked, expired or deleted, or a later one replaced it. */
export class InviteNotFound extends Problem<InviteNotFound>()("InviteNotFound", {
  status: 404,
  error: "there is no such invitation, or it is no longer open",
  code: "invite_not_found"
}) {}

export class TeamFull extends Problem<TeamFull>()("TeamFull", {
  status: 409,
  error: "all seats in the team's plan are taken; an owner can add or free a seat",
  code: "team_full",
  fields: { tenant_id: TenantId, seats: Schema.Int, members: Schema.Int },
  details: {}
}) {}

export class TooManyTenants extends Problem<TooManyTenants>()("TooManyTenants", {
  status: 409,
  error: "an account may own at most 20 tenants, including its home tenant, and belong to at most 100",
  code: "too_many_tenants"
}) {}

export class TooManyApplications extends Problem<TooManyApplications>()("TooManyApplications", {
  status: 409,
  error: "a member may have at most 1000 applications in a tenant; delete an unused one",
  code: "too_many_applications"
}) {}

export class AccountSuspended extends Problem<AccountSuspended>()("AccountSuspended", {
  status: 403,
  error: "this account is suspended; contact the operator of the service",
  code: "account_suspended"
}) {}

/** The user has no account, and no rule in `registration` admits them. */
export class NotInvited extends Problem<NotInvited>()("NotInvited", {
  status: 403,
  error: "this service is by invitation only; ask its operator or a team to invite your address",
  code: "not_invited"
}) {}
