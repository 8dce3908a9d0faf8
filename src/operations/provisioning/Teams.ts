/** Adds people to teams when they are provisioned. */
import { Clock, Effect } from "effect"
import type { TenantId } from "../../kernel/Ids.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { afterCommit } from "../../books/ledger/write/Writer.ts"
import * as Joining from "../../people/tenants/Joining.ts"
import { TeamFull, TooManyTenants } from "../../people/tenants/Problems.ts"
import type { Person } from "../../people/tenants/Directory.ts"
import * as Audit from "../operator/Audit.ts"
import type { Operator } from "../operator/Operator.ts"
import { ExternalIdNotFound } from "./Problems.ts"
import type { Parts } from "./Provisioning.ts"

/** Finds the tenant with an external id. Returns `undefined` if no external id is given. */
export const named = Effect.fnUntraced(function* ({ externals }: Parts, external_id: string | undefined) {
  if (external_id === undefined) return undefined
  const found = yield* externals.find("tenant", external_id)
  return found === undefined || found.removed_at !== null
    ? yield* new ExternalIdNotFound({ external_id })
    : (found.id as TenantId)
})

/** Makes the person a member of the team, unless they already are. */
export const join = (parts: Parts) =>
  Effect.fn("Provisioning.join")(function* (by: Operator, { id: account_id }: Person, tenant_id: TenantId | undefined) {
    if (tenant_id === undefined) return
    const { belonging, tenants, writer } = parts
    const belongs = Effect.map(tenants.memberships(account_id), (all) => all.find((one) => one.tenant_id === tenant_id))
    if ((yield* belongs) !== undefined) return
    const now = yield* Clock.currentTimeMillis
    const joins = yield* Joining.statements(parts, { account: account_id, team: tenant_id, role: "member" }, now)
    const entry = Audit.entry(by, { action: "team.join", tenant_id, account_id }, now)
    const joined = yield* afterCommit(Statements.tryWrite(writer, ...joins, entry), belonging.changed(account_id))
    // A concurrent request may have added the person.
    if (joined || (yield* belongs) !== undefined) return
    const { plan, seats } = yield* tenants.plan(tenant_id)
    const members = (yield* tenants.members(tenant_id)).length
    return yield* plan !== "none" && members >= seats
      ? new TeamFull({ tenant_id, seats, members })
      : new TooManyTenants()
  })
