/**
 * Orders a caller's payers. A pinned source comes first. After that, a token from the OAuth code exchange charges teams before the caller's own
 * account. Any other credential charges the caller's own account first. The gate charges the first source with enough credit.
 *
 * Where the specification is silent:
 * - If a team does not let plain members spend its credit, a plain member's own source is *barred*: it must still be active, but it pays nothing.
 *   Owners and admins may always spend their team's credit, whether their token belongs to the team or to their home tenant.
 */
import { ownOf } from "../../books/gate/Payers.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import type { Source } from "../../books/ledger/rules/Transaction.ts"

/** The facts that determine the order. */
export interface Standing {
  /** The credential's tenant. Its billing account is the caller's own. */
  readonly tenant_id: TenantId
  /** Whether the credential charges teams before the caller's own account. */
  readonly team_first: boolean
  /** The other tenants whose credit the caller may spend, in the order of joining. */
  readonly teams: ReadonlyArray<TenantId>
  /** The pinned billing account. It is ignored unless it is one of the sources. */
  readonly pinned: string | undefined
  /** Whether the caller is a plain member who may not spend the credit of the credential's tenant. */
  readonly barred: boolean
}

const teamOf = (tenant_id: TenantId): Source => ({
  billing_account_id: billingAccountOf(tenant_id),
  tenant_id,
  kind: "team",
  why: "fall_through"
})

/**
 * Returns the sources in order. The array always includes the caller's own source, which must be active for any charge. A barred own source
 * is last and pays nothing.
 */
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
