/** The order of charging, case by case, as the specification tells it. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import type { TenantId } from "../../../src/kernel/Ids.ts"
import { orderOf } from "../../../src/money/pooling/Order.ts"
import type { Standing } from "../../../src/money/pooling/Order.ts"

const tenant = (name: string) => `ten_${name}` as TenantId
const bill = (name: string) => billingAccountOf(tenant(name))

const told = (standing: Standing) =>
  orderOf(standing).map(
    ({ barred, kind, tenant_id, why }) => `${tenant_id} ${kind} ${barred === true ? "barred" : why}`
  )

interface Case {
  readonly name: string
  readonly teams?: ReadonlyArray<string>
  readonly team_first?: boolean
  readonly pinned?: string
  readonly barred?: boolean
  readonly order: ReadonlyArray<string>
}

const cases: ReadonlyArray<Case> = [
  { name: "without a team, one's own pays", order: ["ten_me own own"] },
  {
    name: "one's own comes first, then the teams as they were joined",
    teams: ["red", "blue"],
    order: ["ten_me own own", "ten_red team fall_through", "ten_blue team fall_through"]
  },
  {
    name: "a token of the OAuth code exchange charges the teams first",
    teams: ["red", "blue"],
    team_first: true,
    order: ["ten_red team team_first", "ten_blue team fall_through", "ten_me own fall_through"]
  },
  { name: "such a token without a team charges one's own", team_first: true, order: ["ten_me own own"] },
  {
    name: "a pinned team comes before one's own",
    teams: ["red", "blue"],
    pinned: "blue",
    order: ["ten_blue team pinned", "ten_me own fall_through", "ten_red team fall_through"]
  },
  {
    name: "one's own, pinned, comes before the teams of such a token",
    teams: ["red"],
    team_first: true,
    pinned: "me",
    order: ["ten_me own pinned", "ten_red team fall_through"]
  },
  {
    name: "a pinned team comes before the other teams of such a token",
    teams: ["red", "blue"],
    team_first: true,
    pinned: "blue",
    order: ["ten_blue team pinned", "ten_red team fall_through", "ten_me own fall_through"]
  },
  {
    name: "a pin that no longer applies changes nothing",
    teams: ["red"],
    pinned: "gone",
    order: ["ten_me own own", "ten_red team fall_through"]
  },
  {
    name: "the credential's own tenant is never its team as well",
    teams: ["me", "red"],
    order: ["ten_me own own", "ten_red team fall_through"]
  },
  { name: "one's own pays nothing where members may not spend", barred: true, order: ["ten_me own barred"] },
  {
    name: "the teams pay where one's own may not, pinned or not",
    barred: true,
    teams: ["red", "blue"],
    pinned: "me",
    order: ["ten_red team fall_through", "ten_blue team fall_through", "ten_me own barred"]
  }
]

describe("the order of charging", () => {
  it.each(cases)("$name", ({ barred = false, order, pinned, team_first = false, teams = [] }) => {
    const standing = { tenant_id: tenant("me"), barred, team_first, teams: teams.map(tenant) }
    expect(told({ ...standing, pinned: pinned === undefined ? undefined : bill(pinned) })).toEqual(order)
  })

  it("is always every source once, one's own among them, and only the first is there for a reason of its own", () => {
    const name = fc.constantFrom("me", "red", "blue", "green")
    fc.assert(
      fc.property(
        fc.uniqueArray(name),
        fc.boolean(),
        fc.option(fc.oneof(name, fc.constant("gone")), { nil: undefined }),
        (teams, team_first, pinned) => {
          const order = orderOf({
            tenant_id: tenant("me"),
            barred: false,
            team_first,
            teams: teams.map(tenant),
            pinned: pinned === undefined ? undefined : bill(pinned)
          })
          expect(order.map(({ tenant_id }) => tenant_id).sort()).toEqual(
            [...new Set(["me", ...teams])].map(tenant).sort()
          )
          expect(order.filter(({ kind }) => kind === "own")).toHaveLength(1)
          expect(order.slice(1).every(({ why }) => why === "fall_through")).toBe(true)
          expect(order[0]!.why).not.toBe("fall_through")
          for (const { billing_account_id, tenant_id } of order) {
            expect(billing_account_id).toBe(billingAccountOf(tenant_id))
          }
        }
      )
    )
  })
})
