/**
 * Creates the first person in a deployment, with credit and an API key.
 *
 * Where the specification is silent:
 * - The person is created once. If `tollgate quickstart` runs again with the same address, it finds the person and the key and grants no further
 *   credit.
 */
import { Effect } from "effect"
import { billingAccountOf } from "../../kernel/Ids.ts"
import * as Ids from "../../kernel/Ids.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import type { Nano } from "../../kernel/Money.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import { Applications } from "../../people/tenants/Applications.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import type { Act } from "../../operations/operator/Audit.ts"

export interface FirstPerson {
  readonly account_id: AccountId
  readonly tenant_id: TenantId
  /** `undefined` if an earlier start created the key, because only its hash is stored. */
  readonly api_key: string | undefined
}

/** The key's name and the credit's description. */
const keyName = "quickstart"

export interface FirstPersonOptions {
  readonly email: string
  readonly credit: Nano
  readonly audited: (act: Act) => Statement
}

export const make = Effect.fn("FirstPerson.make")(function* ({ audited, credit, email }: FirstPersonOptions) {
  const tenants = yield* Tenants
  const applications = yield* Applications
  const { account_id, home_tenant_id: tenant_id } = yield* tenants.welcome({
    provider: "email",
    subject: email,
    email,
    email_verified: true,
    name: email.slice(0, email.lastIndexOf("@"))
  })
  yield* grantOnce(tenant_id, credit, audited)
  const caller = { account_id, tenant_id }
  const { records } = yield* applications.list({ caller, page: 1, per_page: 1_000 })
  if (records.some(({ name }) => name === keyName))
    return { account_id, tenant_id, api_key: undefined } satisfies FirstPerson
  const application = { name: keyName, description: "the first key of this deployment" }
  const { api_key } = yield* applications.create({ caller, application })
  return { account_id, tenant_id, api_key } satisfies FirstPerson
})

/** Grants the credit once. Runs before the key is created, so that the next start can complete an interrupted start. */
const grantOnce = Effect.fnUntraced(function* (
  tenant_id: TenantId,
  credit: Nano,
  audited: FirstPersonOptions["audited"]
) {
  const ledger = yield* Ledger
  const account = billingAccountOf(tenant_id)
  const { records } = yield* ledger.entries(account, { page: 1, per_page: 1_000 }, ["admin"])
  if (credit === 0n || records.some(({ description }) => description === keyName)) return
  const reference = yield* Ids.make("pay")
  const entry = audited({
    action: "grant",
    tenant_id,
    details: { amount_usd: credit, reference, description: keyName }
  })
  yield* ledger
    .credit({ account, amount: credit, source: "admin", reference, description: keyName }, [entry])
    .pipe(Effect.catchTag("Conflict", Effect.die))
})
