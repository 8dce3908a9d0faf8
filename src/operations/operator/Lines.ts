/** Builds the list entries for tenants and people. */
import { Effect } from "effect"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { LedgerContract } from "../../books/ledger/Ledger.ts"
import { balanceOf } from "../../books/ledger/rules/Transaction.ts"
import type * as Tenancy from "../../people/tenants/Directory.ts"
import type { PersonLine, TenantLine } from "./Found.ts"

/** Adds the balance and status to each tenant. */
export const tenantLines = (
  ledger: LedgerContract,
  found: ReadonlyArray<Tenancy.Listed>
): Effect.Effect<ReadonlyArray<TenantLine>> =>
  Effect.map(ledger.accounts(found.map(({ id }) => billingAccountOf(id))), (accounts) =>
    found.map((tenant) => {
      const account = accounts.get(billingAccountOf(tenant.id))
      return {
        ...tenant,
        balance: account === undefined ? 0n : balanceOf(account),
        status: account?.status ?? ("active" as const)
      }
    })
  )

export const personLineOf = ({ suspended_at, ...person }: Tenancy.Person): PersonLine => ({
  ...person,
  status: suspended_at === null ? "active" : "suspended"
})
