/** The conditions for a new account, and the teams of each group. */
import { Context, Layer } from "effect"
import type { TenantId } from "../../kernel/Ids.ts"
import type { VerifiedIdentity } from "../../upstream/identity/Identity.ts"
import type { Role } from "./Account.ts"

/** A rule for a provider's group. With `team`, the group's users become members of that team with this role. */
export interface GroupRule {
  readonly provider: string
  readonly group: string
  readonly team?: TenantId | undefined
  readonly role: Exclude<Role, "owner">
}

export interface Policy {
  /** Admits every user that a provider has authenticated. */
  readonly open: boolean
  /** Domains of verified addresses, in lower case. */
  readonly domains: ReadonlyArray<string>
  /** Verified addresses, in lower case. */
  readonly emails: ReadonlyArray<string>
  readonly groups: ReadonlyArray<GroupRule>
}

export const invitedOnly: Policy = { open: false, domains: [], emails: [], groups: [] }

export class RegistrationPolicy extends Context.Tag("tollgate/tenants/RegistrationPolicy")<
  RegistrationPolicy,
  Policy
>() {
  static readonly layer = (policy: Policy) => Layer.succeed(RegistrationPolicy, policy)
  /** Provides a policy that admits only invited users, for a service without a configuration. */
  static readonly layerInvitedOnly = Layer.succeed(RegistrationPolicy, invitedOnly)
}

/** Returns the rules for the groups that the provider reported for this user. */
export const rulesFor = (
  rules: ReadonlyArray<GroupRule>,
  { groups = [], provider }: Pick<VerifiedIdentity, "groups" | "provider">
) => rules.filter((rule) => rule.provider === provider && groups.includes(rule.group))

/** Returns whether a rule admits a user without an account. */
export const admits = (policy: Policy, identity: VerifiedIdentity): boolean => {
  const { email, email_verified } = identity
  if (policy.open || rulesFor(policy.groups, identity).length > 0) return true
  if (!email_verified) return false
  return policy.emails.includes(email) || policy.domains.includes(email.slice(email.lastIndexOf("@") + 1))
}
