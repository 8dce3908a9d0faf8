/** Builds the statements for emails and notifications about a tenant's balance and auto-reload. */
import { Effect } from "effect"
import type { BillingAccountsContract } from "../billing/BillingAccounts.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { plainName } from "../../people/mail/Letter.ts"
import type { OutboxContract } from "../../people/mail/Outbox.ts"
import { notice } from "../../people/notifications/Notification.ts"
import type { Kind } from "../../people/notifications/Notification.ts"
import { manages } from "../../people/tenants/Organisation.ts"
import type { TenantsContract } from "../../people/tenants/Tenants.ts"

export interface Alert {
  readonly kind: Kind
  /** The key of the emails. An address receives only one email per key. */
  readonly key: string
  readonly title: string
  readonly text: string
}

export const make = (tenants: TenantsContract, accounts: BillingAccountsContract, outbox: OutboxContract) => ({
  /** Returns statements that send an alert to the billing addresses and notify owners and admins. */
  statements: Effect.fnUntraced(function* (tenant: TenantId, { key, kind, text, title }: Alert, now: number) {
    const name = (yield* tenants.nameOf(tenant)) ?? tenant
    const emails = yield* accounts.billingEmails(tenant)
    const members = (yield* tenants.members(tenant)).filter(({ status }) => status === "active")
    // The tenant chooses the addresses and causes the movements, so the emails count against its owner's limits.
    const caused_by = members.find(({ role }) => role === "owner")?.account_id
    const subject = `${title}: ${plainName(name, "your team")}`
    const letters = yield* Effect.forEach(emails, (to) =>
      outbox.letter({ key: `${key}/${to}`, to, caused_by, subject, text })
    )
    const managers = members.filter(({ role }) => manages(role))
    const notifications = managers.map(({ account_id }): Statement =>
      notice({ account_id, kind, title, text, data: { tenant_id: tenant } }, now)
    )
    return [...letters, ...notifications]
  })
})

export type Alerts = ReturnType<typeof make>
