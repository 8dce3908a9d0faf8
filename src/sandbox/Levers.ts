/** Levers that change the service itself, through its own transactions. */
import { Effect, Option } from "effect"
import { billingAccountOf } from "../kernel/Ids.ts"
import * as Ids from "../kernel/Ids.ts"
import type { TenantId } from "../kernel/Ids.ts"
import type { Nano } from "../kernel/Money.ts"
import { Ledger } from "../books/ledger/Ledger.ts"
import { BooksUnavailable } from "../books/ledger/rules/Problems.ts"
import type { LedgerRefusal } from "../books/ledger/rules/Problems.ts"
import type { AccountStatus, CreditSource, Posting } from "../books/ledger/rules/Transaction.ts"
import { Writer } from "../books/ledger/write/Writer.ts"
import { Jobs } from "../calls/media/Jobs.ts"
import type { Plan } from "../people/tenants/Account.ts"
import { Tenants } from "../people/tenants/Tenants.ts"

export interface LeversContract {
  /** Books credit from any source. Returns `false` if the tenant does not exist. */
  readonly credit: (tenant_id: string, amount: Nano, source: CreditSource) => Effect.Effect<boolean>
  readonly setBillingStatus: (tenant_id: string, status: AccountStatus) => Effect.Effect<boolean>
  readonly setPlan: (tenant_id: string, change: Partial<Plan>) => Effect.Effect<boolean>
  /** Returns the vendor's id for the generation job with this request id. */
  readonly vendorId: (request_id: string) => Effect.Effect<string | undefined>
}

const houseTenant = "ten_sandbox"
const house = billingAccountOf(houseTenant)
const description = "booked by the sandbox"

type Sent = Extract<Posting, { readonly _tag: "EndEscrow" }>

export const make: Effect.Effect<LeversContract, never, Ledger | Writer | Tenants | Jobs> = Effect.gen(function* () {
  const writer = yield* Writer
  const ledger = yield* Ledger
  const tenants = yield* Tenants
  const jobs = yield* Jobs
  /** Runs an operation. Returns `false` if the ledger rejected it. */
  const done = <A, E extends { readonly _tag: string }>(operation: Effect.Effect<A, E | BooksUnavailable>) =>
    operation.pipe(
      Effect.catchIf((error) => error instanceof BooksUnavailable, Effect.die),
      Effect.match({ onFailure: () => false, onSuccess: () => true })
    )
  /** Books credit from a transfer. To keep the books balanced, the sandbox's own account buys the credit and then sends it. */
  const send = (posting: Sent): Effect.Effect<void, LedgerRefusal | BooksUnavailable> =>
    Effect.flatMap(ledger.account(house), (found) => {
      const { amount, description, transfer } = posting
      const sent = [
        { _tag: "Credit", account: house, amount, source: "purchase", reference: transfer, description },
        { _tag: "Escrow", account: house, amount, transfer, description },
        posting
      ] as const
      const open = { _tag: "Open", account: house, tenant: houseTenant } as const
      return Effect.catchTag(
        Effect.asVoid(writer.submit({ postings: Option.isNone(found) ? [open, ...sent] : sent, statements: [] })),
        "AccountExists",
        () => send(posting)
      )
    })

  return {
    credit: (tenant_id, amount, source) =>
      Effect.flatMap(Ids.make("pay"), (id) => {
        const account = billingAccountOf(tenant_id)
        const reference = `sandbox_${id}`
        return source === "transfer_release" || source === "transfer_return"
          ? done(
              send({ _tag: "EndEscrow", source, from: house, to: account, amount, transfer: reference, description })
            )
          : done(ledger.credit({ account, amount, source, reference, description }))
      }),
    setBillingStatus: (tenant_id, status) => done(ledger.setStatus({ account: billingAccountOf(tenant_id), status })),
    setPlan: (tenant_id, change) =>
      Effect.catchTag(tenants.setPlan(tenant_id as TenantId, change), "BooksUnavailable", Effect.die),
    vendorId: jobs.vendorId
  }
})
