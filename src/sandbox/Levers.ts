/** What a sandbox's control interface may do to the service itself, by the same transactions as everybody else. */
import { Effect } from "effect"
import { billingAccountOf } from "../kernel/Ids.ts"
import * as Ids from "../kernel/Ids.ts"
import type { TenantId } from "../kernel/Ids.ts"
import type { Nano } from "../kernel/Money.ts"
import { sandboxReference } from "../ledger/Invariants.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { BooksUnavailable } from "../ledger/Problems.ts"
import type { AccountStatus, CreditSource } from "../ledger/Transaction.ts"
import { Jobs } from "../media/Jobs.ts"
import type { Plan } from "../tenants/Account.ts"
import { Tenants } from "../tenants/Tenants.ts"

export interface LeversContract {
  /** Books a credit of any source; answers whether there is such a tenant. */
  readonly credit: (tenant_id: string, amount: Nano, source: CreditSource) => Effect.Effect<boolean>
  readonly setBillingStatus: (tenant_id: string, status: AccountStatus) => Effect.Effect<boolean>
  readonly setPlan: (tenant_id: string, change: Partial<Plan>) => Effect.Effect<boolean>
  /** What the vendor calls a generation job that a client knows by this id. */
  readonly vendorId: (request_id: string) => Effect.Effect<string | undefined>
}

export const make: Effect.Effect<LeversContract, never, Ledger | Tenants | Jobs> = Effect.gen(function* () {
  const ledger = yield* Ledger
  const tenants = yield* Tenants
  const jobs = yield* Jobs
  /** Whether it was done. */
  const done = <A, E extends { readonly _tag: string }>(operation: Effect.Effect<A, E | BooksUnavailable>) =>
    operation.pipe(
      Effect.catchIf((error) => error instanceof BooksUnavailable, Effect.die),
      Effect.match({ onFailure: () => false, onSuccess: () => true })
    )
  return {
    credit: (tenant_id, amount, source) =>
      Effect.flatMap(Ids.make("pay"), (id) =>
        done(
          ledger.credit({
            account: billingAccountOf(tenant_id),
            amount,
            source,
            reference: sandboxReference + id,
            description: "booked by the sandbox"
          })
        )
      ),
    setBillingStatus: (tenant_id, status) => done(ledger.setStatus({ account: billingAccountOf(tenant_id), status })),
    setPlan: (tenant_id, change) =>
      Effect.catchTag(tenants.setPlan(tenant_id as TenantId, change), "BooksUnavailable", Effect.die),
    vendorId: jobs.vendorId
  }
})
