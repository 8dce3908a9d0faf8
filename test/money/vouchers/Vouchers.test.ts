/** Vouchers: each is redeemed once by a tenant, by as many tenants as it says, and not after its end; however many try at once. */
import { Effect, Either } from "effect"
import { afterEach, beforeEach, expect, it } from "vitest"
import type { AccountId, TenantId } from "../../../src/kernel/Ids.ts"
import { day } from "../../../src/kernel/Moment.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { Vouchers } from "../../../src/money/vouchers/Vouchers.ts"
import type { NewVouchers } from "../../../src/money/vouchers/Voucher.ts"
import * as Scene from "../Nodes.ts"

const tenants = Array.from({ length: 12 }, (_, i) => `ten_pupil${i}` as TenantId)
const [ada, bob] = tenants as [TenantId, TenantId]

let scene: Scene.Scene
const run = <A, E>(effect: Effect.Effect<A, E, Scene.Rooms>, node = 0) => scene.nodes[node]!(effect)
beforeEach(async () => {
  scene = await Scene.make(Date.UTC(2026, 10, 26, 12))
  for (const tenant of tenants) await run(Scene.open(tenant))
})
afterEach(async () => {
  expect(await run(Scene.findings)).toEqual({ found: [], sum: 0n })
  await scene.close()
})

const vouchers = <A, E>(use: (vouchers: Vouchers["Type"]) => Effect.Effect<A, E>, node = 0) =>
  run(Effect.flatMap(Vouchers, use), node)
const create = (asked: Partial<NewVouchers> = {}) =>
  vouchers(({ create }) => create({ amount_usd: 5n * usd, uses: 1, count: 1, ...asked }))
const one = async (asked: Partial<NewVouchers> = {}) => (await create(asked))[0]!
const redeem = (tenant_id: TenantId, code: string, node = 0, account = `acc_${tenant_id}`) =>
  vouchers(
    ({ redeem }) => Effect.either(redeem({ caller: { tenant_id, account_id: account as AccountId }, code })),
    node
  )
const codeOf = (answer: Either.Either<unknown, { readonly code: string | undefined }>) =>
  Either.match(answer, { onLeft: ({ code }) => code, onRight: () => "redeemed" })
const accountOf = async (tenant: TenantId) => {
  const { giftable, granted } = await run(Scene.account(tenant))
  return { giftable, granted }
}

it("credits the tenant with credit that cannot be sent on", async () => {
  const { code, code_prefix, status } = await one({ description: "workshop" })
  expect(code).toMatch(/^([0-9A-HJKMNP-TV-Z]{5}-){3}[0-9A-HJKMNP-TV-Z]{5}$/)
  expect([code.startsWith(code_prefix), status]).toEqual([true, "active"])
  expect(await redeem(ada, code)).toEqual(Either.right({ tenant_id: ada, amount_usd: 5n * usd, balance: 5n * usd }))
  expect(await accountOf(ada)).toEqual({ giftable: 0n, granted: 5n * usd })
  const [entry] = await run(Scene.entries(ada))
  expect(entry).toMatchObject({ source: "voucher", description: "workshop", amount: 5n * usd })
})

it("takes a code as people copy it", async () => {
  const { code } = await one()
  const copied = ` ${code.toLowerCase().replaceAll("-", " ").replaceAll("0", "o").replaceAll("1", "l")} `
  expect(codeOf(await redeem(ada, copied))).toBe("redeemed")
})

it("refuses what is unknown, redeemed, used up, expired or ended", async () => {
  const single = await one()
  const double = await one({ uses: 2 })
  const dated = await one({ expires_at: scene.now + day })
  const ended = await one()
  await vouchers(({ end }) => end(ended.id))
  expect(codeOf(await redeem(ada, "00000-00000-00000-00000"))).toBe("voucher_not_found")
  expect(codeOf(await redeem(ada, ""))).toBe("voucher_not_found")
  expect(codeOf(await redeem(ada, single.code))).toBe("redeemed")
  expect(codeOf(await redeem(bob, single.code))).toBe("voucher_used_up")
  expect(codeOf(await redeem(ada, double.code))).toBe("redeemed")
  expect(codeOf(await redeem(ada, double.code))).toBe("voucher_redeemed")
  expect(codeOf(await redeem(bob, ended.code))).toBe("voucher_ended")
  scene.now += day
  expect(codeOf(await redeem(bob, dated.code))).toBe("voucher_ended")
  const listed = await vouchers(({ list }) => list(undefined, 10))
  expect(Object.fromEntries(listed.map(({ id, status, uses }) => [id, [status, uses]]))).toEqual({
    [single.id]: ["used_up", 1],
    [double.id]: ["active", 1],
    [dated.id]: ["expired", 0],
    [ended.id]: ["ended", 0]
  })
  expect(await accountOf(ada)).toEqual({ giftable: 0n, granted: 10n * usd })
})

it("is redeemed by as many tenants as it says, of all that try at once on two nodes", async () => {
  const { code, id } = await one({ uses: 7 })
  const answers = await Promise.all(
    tenants.flatMap((tenant, i) => [redeem(tenant, code, i % 2), redeem(tenant, code, (i + 1) % 2)])
  )
  const codes = answers.map(codeOf)
  expect(codes.filter((code) => code === "redeemed")).toHaveLength(7)
  expect(new Set(codes)).toEqual(new Set(["redeemed", "voucher_redeemed", "voucher_used_up"]))
  const balances = await Promise.all(tenants.map(accountOf))
  expect(balances.filter(({ granted }) => granted === 5n * usd)).toHaveLength(7)
  expect(balances.filter(({ granted }) => granted === 0n)).toHaveLength(5)
  const [listed] = await vouchers(({ list }) => list(undefined, 1))
  expect(listed).toMatchObject({ id, uses: 7, status: "used_up" })
})

it("lets an account try ten codes a minute", async () => {
  const { code } = await one()
  const guesses = []
  for (let i = 0; i < 11; i++) guesses.push(codeOf(await redeem(ada, `guess ${i}`, 0, "acc_1")))
  expect(guesses).toEqual([...Array.from({ length: 10 }, () => "voucher_not_found"), "too_many_codes"])
  expect(codeOf(await redeem(ada, code, 0, "acc_1"))).toBe("too_many_codes")
  scene.now += 60_000
  expect(codeOf(await redeem(ada, code, 0, "acc_1"))).toBe("redeemed")
})

it("makes each code once, and stores none", async () => {
  const made = await create({ count: 200 })
  expect(new Set(made.map(({ code }) => code)).size).toBe(200)
  const listed = await vouchers(({ list }) => list(undefined, 200))
  expect(JSON.stringify(listed, (_, value: unknown) => (typeof value === "bigint" ? `${value}` : value))).not.toContain(
    made[0]!.code
  )
  expect(listed.map(({ id }) => id).toSorted()).toEqual(made.map(({ id }) => id).toSorted())
})
