/**
 * The order of charging, as one function of what is known of a caller: the pinned source while it applies; the teams first for a
 * token of the OAuth code exchange; else one's own first. The gate then charges the first that has enough.
 *
 * Where the specification is silent:
 * - Where members may not spend, the own source of a plain member is *barred*: it must be active as always, but pays nothing. Owners
 *   and admins may spend their team's credit all the same, by a token of the team as by one of their home.
 */
import { ownOf } from "../../books/gate/Payers.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import type { Source } from "../../books/ledger/Transaction.ts"

/** What the order follows from. */
export interface Standing {
  /** The tenant of the credential: its billing account is the caller's own. */
  readonly tenant_id: TenantId
  /** Whether the credential charges teams before the caller's own. */
  readonly team_first: boolean
  /** The other tenants whose pool the caller may draw on, in the order in which they joined them. */
  readonly teams: ReadonlyArray<TenantId>
  /** The billing account that they pinned; it applies while it is among the others. */
  readonly pinned: string | undefined
  /** Whether the caller may not spend the credit of the credential's tenant: a plain member where members may not. */
  readonly barred: boolean
}

const teamOf = (tenant_id: TenantId): Source => ({
  billing_account_id: billingAccountOf(tenant_id),
  tenant_id,
  kind: "team",
  why: "fall_through"
})

/** Never empty: one's own is always in it, since nothing is charged where it is not active. Barred, it pays nothing and stands last. */
export const orderOf = ({ barred, pinned, team_first, teams, tenant_id }: Standing): ReadonlyArray<Source> => {
  const own = ownOf(tenant_id)
  const pool = teams.filter((team) => team !== tenant_id).map(teamOf)
  const usual = barred ? pool : team_first ? [...pool, own] : [own, ...pool]
  const [first, ...others] = [
    ...usual.filter(({ billing_account_id }) => billing_account_id === pinned),
    ...usual.filter(({ billing_account_id }) => billing_account_id !== pinned)
  ]
  const last: ReadonlyArray<Source> = barred ? [{ ...own, barred: true }] : []
  if (first === undefined) return last
  const usualWhy = first.kind === "own" ? "own" : team_first ? "team_first" : "fall_through"
  const why = first.billing_account_id === pinned ? "pinned" : usualWhy
  return [{ ...first, why }, ...others.map((source): Source => ({ ...source, why: "fall_through" })), ...last]
}
