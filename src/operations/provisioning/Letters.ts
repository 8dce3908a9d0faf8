/** Composes emails to people that the operator creates or invites. The service's outbox sends the emails, so a command needs no mail server. */
import { Clock, Effect } from "effect"
import * as Statements from "../../books/ledger/write/Statements.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import * as Ids from "../../kernel/Ids.ts"
import { day, toDay } from "../../kernel/Moment.ts"
import type { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import * as ConsoleLinks from "../../people/auth/ConsoleLinks.ts"
import { plainName } from "../../people/mail/Letter.ts"
import type { Letter, OutboxContract } from "../../people/mail/Outbox.ts"
import type { OrganisationsContract } from "../../people/tenants/Organisations.ts"
import * as Audit from "../operator/Audit.ts"
import type { Operator } from "../operator/Operator.ts"
import { TenantNotFound } from "../operator/Problems.ts"
import * as People from "./People.ts"
import { NoHolder } from "./Problems.ts"
import type { InviteSent } from "./Provision.ts"
import type { Parts, ProvisioningContract } from "./Provisioning.ts"

type LettersContract = ProvisioningContract["letters"]

export interface Dependencies extends Parts {
  readonly outbox: OutboxContract
  readonly links: ReturnType<typeof ConsoleLinks.make>
  readonly invite: OrganisationsContract["invite"]
  readonly info: ServiceInfo["Type"]
}

export const make = (dependencies: Dependencies): LettersContract => ({
  welcome: welcoming(dependencies),
  invite: inviting(dependencies)
})

interface Recipient {
  readonly account_id: AccountId
  readonly tenant_id: TenantId
  readonly email: string
  readonly name: string
}

const letterOf = (
  key: string,
  { email, name }: Recipient,
  { code, expires_at }: { readonly code: string; readonly expires_at: number },
  { public_url, service_name }: ServiceInfo["Type"]
): Letter => ({
  key,
  to: email,
  subject: `Your access to ${service_name}`,
  text: [
    `Hello ${plainName(name, "there")},`,
    `you have an account at ${service_name}. This link opens your console once, until ${toDay(expires_at)}:`,
    `${public_url}/console/#link=${code}`,
    `To get started, create an API key under "Keys" and enter it in your program, along with the base URL ${public_url}/v1. In "Playground", you can try a model without a program.`,
    `If the link was used or has expired, sign in at ${public_url}/console/ with this address, or request another email.`
  ].join("\n\n")
})

/** Stores an email with its console link. Returns the link's expiry, or `undefined` if an email with this key already exists. */
const mailed = Effect.fnUntraced(function* (
  { info, links, outbox, writer }: Dependencies,
  by: Operator,
  key: string,
  recipient: Recipient
) {
  const { account_id, tenant_id } = recipient
  const { code, expires_at, stored } = yield* links.drafted(recipient, ConsoleLinks.letterLinkLifetime)
  const letter = yield* outbox.requiredLetter(letterOf(key, recipient, { code, expires_at }, info))
  const now = yield* Clock.currentTimeMillis
  const entry = Audit.entry(by, { action: "person.letter", account_id, tenant_id }, now)
  const done = yield* Statements.tryWrite(writer, letter, stored, entry)
  yield* outbox.wake
  return done ? expires_at : undefined
})

/**
 * The maximum age of an account that receives the welcome email. The outbox deletes emails after 30 days, so an older account could otherwise receive
 * its welcome email twice.
 */
const newest = 30 * day

const welcoming = (dependencies: Dependencies): LettersContract["welcome"] =>
  Effect.fn("Provisioning.letters.welcome")(function* (by, { email, home_tenant_id: tenant_id, id: account_id, name }) {
    const person = yield* dependencies.tenancy.person(account_id)
    const now = yield* Clock.currentTimeMillis
    if (person === undefined || person.suspended_at !== null || person.created_at <= now - newest) return false
    const sent = yield* mailed(dependencies, by, `welcome/${account_id}`, { account_id, tenant_id, email, name })
    return sent !== undefined
  })

const inviting = (dependencies: Dependencies): LettersContract["invite"] =>
  Effect.fn("Provisioning.letters.invite")(function* (by, wanted) {
    const { email, name, role = "member", tenant_id } = wanted
    if (tenant_id !== undefined) return yield* toTenant(dependencies, by, { email, role, tenant_id })
    const person = yield* People.make(dependencies)
      .create(by, { email, name })
      .pipe(
        // The request gives no credit and adds no team member, so these errors cannot occur.
        Effect.catchTags({
          BalanceBeyondBooks: Effect.die,
          ExternalIdNotFound: Effect.die,
          TeamFull: Effect.die,
          TenantClosed: Effect.die,
          TooManyTenants: Effect.die
        })
      )
    const key = `welcome/${person.id}/${yield* Ids.make("inv")}`
    const recipient = { account_id: person.id, tenant_id: person.home_tenant_id, email, name: person.name }
    const expires_at = yield* mailed(dependencies, by, key, recipient)
    if (expires_at === undefined) return yield* Effect.dieMessage(`the email ${key} exists`)
    return { email, tenant_id: null, created: person.created, expires_at } satisfies InviteSent
  })

/** Sends an invitation on behalf of the tenant's first active owner. */
const toTenant = Effect.fnUntraced(function* (
  { invite, tenants }: Dependencies,
  by: Operator,
  {
    email,
    role,
    tenant_id
  }: Parameters<OrganisationsContract["invite"]>[0]["invite"] & { readonly tenant_id: TenantId }
) {
  const members = yield* tenants.members(tenant_id)
  if (members.length === 0) return yield* new TenantNotFound({ tenant_id })
  const owner = members.find((one) => one.role === "owner" && one.status === "active")
  if (owner === undefined) return yield* new NoHolder({ tenant_id })
  const now = yield* Clock.currentTimeMillis
  const act = { action: "team.invite", tenant_id, subject: email, details: { role } }
  const sent = yield* invite({
    caller: owner,
    tenant_id,
    invite: { email, role },
    beside: [Audit.entry(by, act, now)]
  }).pipe(
    // The owner has just left the tenant or lost the role.
    Effect.catchTags({
      InsufficientRole: () => new NoHolder({ tenant_id }),
      NotAMember: () => new NoHolder({ tenant_id })
    })
  )
  return { email, tenant_id, created: false, expires_at: sent.expires_at } satisfies InviteSent
})
