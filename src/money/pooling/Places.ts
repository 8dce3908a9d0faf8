/** Finds the tenants that can pay for a user's calls: the credential's tenant, and the user's teams with an active plan. */
import { Effect } from "effect"
import type { BillingAccountsContract, MemberSpend } from "../billing/BillingAccounts.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import type { LedgerContract } from "../../books/ledger/Ledger.ts"
import { balanceOf } from "../../books/ledger/rules/Transaction.ts"
import type { Account } from "../../books/ledger/rules/Transaction.ts"
import type { Membership } from "../../people/tenants/Account.ts"
import { manages } from "../../people/tenants/Organisation.ts"
import type { TenantsContract } from "../../people/tenants/Tenants.ts"
import type { BillingSource } from "./Source.ts"

/** The caller's own tenant, or one of the caller's teams with an active plan and membership. */
export interface Place {
  readonly membership: Membership
  readonly kind: "own" | "team"
  readonly member_spend: MemberSpend
}

export interface FundedPlace extends Place {
  readonly account: Account | undefined
}

interface Parts {
  readonly tenants: TenantsContract
  readonly billing: BillingAccountsContract
  readonly ledger: LedgerContract
}

export type Places = ReturnType<typeof make>

export const make = ({ billing, ledger, tenants }: Parts) => {
  /** Lists the caller's own tenant first, then all teams with an active plan. */
  const among = Effect.fnUntraced(function* (tenant: TenantId, memberships: ReadonlyArray<Membership>) {
    const active = memberships.filter(({ status }) => status === "active")
    const own = active.filter(({ tenant_id }) => tenant_id === tenant)
    const teams = active.filter(({ plan, tenant_id }) => tenant_id !== tenant && plan.status === "active")
    const spend = yield* billing.memberSpend([...own, ...teams])
    return [...own, ...teams].map((membership): Place => ({
      membership,
      kind: membership.tenant_id === tenant ? "own" : "team",
      member_spend: spend.get(membership.tenant_id)!
    }))
  })

  const funded = Effect.fnUntraced(function* ({ account_id, tenant_id }: Pick<Caller, "account_id" | "tenant_id">) {
    const places = yield* among(tenant_id, yield* tenants.memberships(account_id))
    const accounts = yield* ledger.accounts(places.map(({ membership }) => billingAccountOf(membership.tenant_id)))
    return places.map((place): FundedPlace => ({
      ...place,
      account: accounts.get(billingAccountOf(place.membership.tenant_id))
    }))
  })

  return { among, funded }
}

/** Returns whether a place is a source. The gate skips a team with an inactive billing account. */
export const isSource = ({ account, kind }: FundedPlace): boolean => kind === "own" || account?.status === "active"

/** Returns whether the user may spend the place's credit. Owners and admins always may. Plain members need the tenant's permission. */
export const maySpend = ({ member_spend, membership }: Place): boolean =>
  member_spend.enabled || manages(membership.role)

export const billingSourceOf = (
  { account, kind, member_spend, membership }: FundedPlace,
  available: boolean,
  selected: boolean
): BillingSource => ({
  billing_account_id: billingAccountOf(membership.tenant_id),
  tenant_id: membership.tenant_id,
  tenant_name: membership.tenant_name,
  kind,
  role: membership.role,
  is_home: membership.is_home,
  available,
  selected,
  credits: { balance: account === undefined ? 0n : balanceOf(account) },
  ...(kind === "team" && {
    member_spend_enabled: member_spend.enabled,
    member_spend_source: member_spend.source
  })
})
