/** Reads usage paid from a team's pool, by member. */
import { Context, Effect, Either, Layer } from "effect"
import type { Caller } from "../../kernel/Caller.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import { isTeam } from "../../people/tenants/Account.ts"
import type { Member } from "../../people/tenants/Account.ts"
import { NotAMember } from "../../people/tenants/Problems.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import { TeamPlanRequired } from "./Problems.ts"
import type { LabelFilter } from "./Filtered.ts"
import { together } from "./Points.ts"
import { addTotals, Sums } from "./Sums.ts"
import { teamMembersMax } from "./Usage.ts"
import type { RollupName, TeamUsage as Team } from "./Usage.ts"
import type { Window } from "./Window.ts"

export interface TeamUsageContract {
  /** Returns the usage of a team's members, and of former members with usage. Money is in nano-USD; times are Unix times in milliseconds. */
  readonly of: (
    request: TeamAsked & { readonly caller: Pick<Caller, "account_id"> }
  ) => Effect.Effect<Team, NotAMember | TeamPlanRequired | InvalidRequest>
  /** Returns the tenant's members, and the caller as `viewer`. Fails for the same callers as `of`. */
  readonly roster: (asked: {
    readonly caller: Pick<Caller, "account_id">
    readonly tenant_id: TenantId
  }) => Effect.Effect<
    { readonly members: ReadonlyArray<Member>; readonly viewer: Member },
    NotAMember | TeamPlanRequired
  >
}

export interface TeamAsked {
  readonly tenant_id: TenantId
  readonly rollup: RollupName
  readonly window: Window
  /** The accounts to include, up to five. Defaults to the complete team. */
  readonly members?: ReadonlyArray<AccountId> | undefined
  /** The labels of the calls to include. Defaults to all calls. */
  readonly labels?: LabelFilter | undefined
}

export class TeamUsage extends Context.Tag("tollgate/usage/TeamUsage")<TeamUsage, TeamUsageContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(TeamUsage, make))
}

const make = Effect.gen(function* () {
  const tenants = yield* Tenants
  const sums = yield* Sums

  const roster: TeamUsageContract["roster"] = Effect.fnUntraced(function* ({ caller, tenant_id }) {
    const members = yield* tenants.members(tenant_id)
    const viewer = members.find(({ account_id, status }) => account_id === caller.account_id && status === "active")
    if (viewer === undefined) return yield* new NotAMember({ tenant_id })
    if (!isTeam(yield* tenants.plan(tenant_id))) return yield* new TeamPlanRequired({ tenant_id })
    return { members, viewer }
  })

  const of: TeamUsageContract["of"] = Effect.fn("TeamUsage.of")(function* (request) {
    const { rollup, tenant_id, window } = request
    const { account_id } = request.caller
    const { members: present, viewer } = yield* roster(request)
    const chosen = request.members === undefined ? undefined : yield* fewMembers(request.members)

    const paid = yield* sums.paid({
      tenant_id,
      rollup,
      window,
      viewer: account_id,
      labels: request.labels,
      named: chosen ?? { most: teamMembersMax }
    })
    const spent = new Map(paid.callers.map(({ account_id, totals }) => [account_id, totals]))
    const there = new Set(present.map((member) => member.account_id))
    const gone = yield* tenants.named([...spent.keys()].filter((account) => !there.has(account)))
    const isWanted = (account: AccountId): boolean => chosen === undefined || chosen.includes(account)
    const members = [
      ...present.map(({ account_id: account, email, name, role, status }) => ({
        account_id: account,
        name,
        email,
        role,
        status,
        in_roster: true,
        is_viewer: account === account_id,
        totals: spent.get(account) ?? addTotals([])
      })),
      ...gone.map(({ email, id, name }) => ({
        account_id: id,
        name,
        email,
        role: null,
        status: "removed" as const,
        in_roster: false,
        is_viewer: false,
        totals: spent.get(id) ?? addTotals([])
      }))
    ].filter((member) => isWanted(member.account_id))
    return {
      window,
      rollup,
      tenant_id,
      viewer: { account_id, role: viewer.role },
      totals: addTotals([...spent.values()]),
      members,
      series: {
        team: together([...paid.viewer, ...paid.others]),
        viewer: paid.viewer,
        others: paid.others,
        members: Object.fromEntries(paid.named)
      }
    }
  })

  return { of, roster } satisfies TeamUsageContract
})

export const fewMembers = (
  accounts: ReadonlyArray<AccountId>
): Either.Either<ReadonlyArray<AccountId>, InvalidRequest> =>
  accounts.length <= teamMembersMax
    ? Either.right(accounts)
    : Either.left(new InvalidRequest({ field: "members", rule: `must contain at most ${teamMembersMax} account ids` }))
