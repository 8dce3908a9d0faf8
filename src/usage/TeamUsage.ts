/** What a team's pool paid, and for whom. */
import { Context, Effect, Layer } from "effect"
import type { Caller } from "../kernel/Caller.ts"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"
import type { AccountId, TenantId } from "../kernel/Ids.ts"
import { isTeam } from "../tenants/Account.ts"
import { NotAMember } from "../tenants/Problems.ts"
import { Tenants } from "../tenants/Tenants.ts"
import type { InvalidRollup } from "./Problems.ts"
import { TeamPlanRequired } from "./Problems.ts"
import { added, Sums } from "./Sums.ts"
import type { Paid } from "./Sums.ts"
import { teamMembersMax } from "./Usage.ts"
import type { DataPoint, TeamQuery, TeamUsage as Team, Totals } from "./Usage.ts"

export interface TeamUsageContract {
  /** For any active member of a tenant that is a team. */
  readonly of: (
    viewer: Pick<Caller, "account_id">,
    tenant: TenantId,
    query: TeamQuery
  ) => Effect.Effect<Team, NotAMember | TeamPlanRequired | InvalidRollup | InvalidRequest>
}

export class TeamUsage extends Context.Tag("tollgate/usage/TeamUsage")<TeamUsage, TeamUsageContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(TeamUsage, make))
}

const make = Effect.gen(function* () {
  const tenants = yield* Tenants
  const sums = yield* Sums

  const of = Effect.fn("TeamUsage.of")(function* (
    { account_id }: Pick<Caller, "account_id">,
    tenant: TenantId,
    query: TeamQuery
  ) {
    const roster = yield* tenants.members(tenant)
    const viewer = roster.find((member) => member.account_id === account_id && member.status === "active")
    if (viewer === undefined) return yield* new NotAMember({ tenant_id: tenant })
    if (!isTeam(yield* tenants.plan(tenant))) return yield* new TeamPlanRequired()
    const chosen = yield* chosenOf(query.members)

    const { points, rollup, window } = yield* sums.paid(tenant, query)
    const spent = totalsByAccount(points)
    const there = new Set(roster.map((member) => member.account_id))
    const gone = yield* tenants.named([...spent.keys()].filter((account) => !there.has(account)))
    const shown = (account: AccountId): boolean => chosen === undefined || chosen.includes(account)
    const members = [
      ...roster.map(({ account_id: account, email, name, role, status }) => ({
        account_id: account,
        name,
        email,
        role,
        status,
        in_roster: true,
        is_viewer: account === account_id,
        totals: spent.get(account) ?? added([])
      })),
      ...gone.map(({ email, id, name }) => ({
        account_id: id,
        name,
        email,
        role: null,
        status: "removed" as const,
        in_roster: false,
        is_viewer: false,
        totals: spent.get(id) ?? added([])
      }))
    ].filter((member) => shown(member.account_id))
    return {
      window,
      rollup,
      tenant_id: tenant,
      viewer: { account_id, role: viewer.role },
      totals: added([...spent.values()]),
      members,
      series: {
        team: series(points, () => true),
        viewer: series(points, (account) => account === account_id),
        others: series(points, (account) => account !== account_id),
        members: Object.fromEntries(
          (chosen ?? dearest(spent)).map((account) => [account, series(points, (one) => one === account)])
        )
      }
    }
  })

  return { of } satisfies TeamUsageContract
})

/** The accounts that a query names; `undefined` where it names none. */
const chosenOf = (text: string | undefined): Effect.Effect<ReadonlyArray<AccountId> | undefined, InvalidRequest> => {
  if (text === undefined || text === "") return Effect.succeed(undefined)
  const ids = [...new Set(text.split(",").map((id) => id.trim() as AccountId))].filter((id) => id !== "")
  return ids.length <= teamMembersMax
    ? Effect.succeed(ids)
    : new InvalidRequest({ field: "members", rule: `up to ${teamMembersMax} account ids` })
}

const totalsByAccount = (points: Paid["points"]): ReadonlyMap<AccountId, Totals> => {
  const spent = new Map<AccountId, Totals>()
  for (const { account_id, point } of points) {
    const before = spent.get(account_id)
    spent.set(account_id, before === undefined ? added([point]) : added([before, point]))
  }
  return spent
}

const dearest = (spent: ReadonlyMap<AccountId, Totals>): ReadonlyArray<AccountId> =>
  [...spent]
    .sort(([, a], [, b]) => (a.total_cost === b.total_cost ? 0 : a.total_cost > b.total_cost ? -1 : 1))
    .slice(0, teamMembersMax)
    .map(([account]) => account)

/** One data point for each period in which somebody of whom it `is` true called. */
const series = (points: Paid["points"], is: (account: AccountId) => boolean): ReadonlyArray<DataPoint> => {
  const periods = new Map<number, DataPoint>()
  for (const { account_id, point } of points) {
    if (!is(account_id)) continue
    const there = periods.get(point.timestamp)
    periods.set(point.timestamp, there === undefined ? point : sum(there, point))
  }
  return [...periods.values()]
}

const sum = (a: DataPoint, b: DataPoint): DataPoint => ({
  timestamp: a.timestamp,
  total_requests: a.total_requests + b.total_requests,
  total_tokens: a.total_tokens + b.total_tokens,
  prompt_tokens: a.prompt_tokens + b.prompt_tokens,
  completion_tokens: a.completion_tokens + b.completion_tokens,
  units: a.units + b.units,
  total_cost: a.total_cost + b.total_cost,
  success_count: a.success_count + b.success_count,
  failure_count: a.failure_count + b.failure_count
})
