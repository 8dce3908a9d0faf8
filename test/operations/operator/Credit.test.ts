/** Allowances and vouchers over HTTP and by commands: the operator gives, a person sees and redeems. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { commandHere } from "../../support/CommandLine.ts"
import { command, start } from "../../support/Service.ts"
import type { Answer, Person, Service } from "../../support/Service.ts"

let service: Service
let ada: Person
let token: string

const env = () => ({ DATA_DIR: service.folder })

beforeAll(async () => {
  service = await start()
  ada = await service.signIn("ada@example.com")
  token = (await command(["operator", "--token", "--name", "grace"], env())).stdout.trim()
})
afterAll(() => service.discard())

const operator = (path: string, call: Parameters<Service["call"]>[1] = {}): Promise<Answer> =>
  service.call(`/v1/operator${path}`, { token, ...call })
const own = async () => {
  const { body } = await service.call(`/v1/tenants/${ada.tenant_id}/billing/allowance`, { token: ada.token })
  return body.result.allowance
}
const actions = async () =>
  (await operator("/audit?limit=50")).body.result.records.map(({ action, details }: never) => [action, details])

describe("an allowance", () => {
  const path = () => `/tenants/${ada.tenant_id}/allowance`

  it("is set, seen by its tenant, listed and ended", async () => {
    expect(await own()).toBeNull()
    expect((await operator(path())).status).toBe(404)
    const json = { amount_usd: 20, period: "month", rollover: { up_to_usd: 10 } }
    const set = await operator(path(), { method: "PUT", json })
    expect([set.status, set.body.result]).toEqual([
      200,
      {
        tenant_id: ada.tenant_id,
        plan: null,
        ...json,
        granted_usd: 20,
        granted_at: expect.any(String),
        unused_usd: 20,
        renews_at: expect.stringMatching(/-01T00:00:00.000Z$/)
      }
    ])
    expect(await own()).toEqual(set.body.result)
    expect((await operator("/allowances")).body.result).toEqual({ records: [set.body.result], next: null })
    const only = (id: string) => operator(`/allowances?tenant_id=${id}`)
    expect((await only(ada.tenant_id)).body.result).toEqual({ records: [set.body.result], next: null })
    expect((await only("ten_none")).body.result).toEqual({ records: [], next: null })
    expect((await operator("/plans")).body.result).toEqual({ plans: [] })
    const { body } = await service.call(`/v1/tenants/${ada.tenant_id}/billing/ledger?source=allowance`, {
      token: ada.token
    })
    expect(body.result.records).toEqual([expect.objectContaining({ source: "allowance", amount: 20, type: "credit" })])
    const ended = await operator(`${path()}?take_back=true`, { method: "DELETE" })
    expect(ended.body.result).toEqual({ tenant_id: ada.tenant_id, taken_usd: 20 })
    expect(await own()).toBeNull()
    expect((await operator(path(), { method: "DELETE" })).body.code).toBe("allowance_not_found")
    expect(await actions()).toEqual(
      expect.arrayContaining([
        ["allowance.set", { amount_usd: "20", period: "month", rollover_up_to_usd: "10" }],
        ["allowance.end", { take_back: true }]
      ])
    )
  })

  it.each([
    [{ amount_usd: 20 }, "must contain either plan, or amount_usd and period"],
    [{ plan: "student", amount_usd: 20, period: "week" }, "must contain either plan, or amount_usd and period"],
    [{ amount_usd: 0, period: "week" }, "a decimal number above 0"],
    [{ amount_usd: 20, period: "day" }, "week"]
  ])("is refused for %o", async (json, words) => {
    const answer = await operator(path(), { method: "PUT", json })
    expect([answer.status, JSON.stringify(answer.body)]).toEqual([400, expect.stringContaining(words)])
  })

  it("is refused for an unknown tenant or plan", async () => {
    const json = { amount_usd: 1, period: "week" }
    const nowhere = await operator("/tenants/ten_nobody/allowance", { method: "PUT", json })
    expect([nowhere.status, nowhere.body.code]).toEqual([404, "tenant_not_found"])
    const planless = await operator(path(), { method: "PUT", json: { plan: "student" } })
    expect([planless.status, planless.body.code]).toEqual([422, "plan_unknown"])
    expect((await service.call(`/v1/operator${path()}`, { token: ada.token })).status).toBe(401)
  })
})

describe("a voucher", () => {
  it("is made by the operator, and redeemed by a person", async () => {
    const json = { amount_usd: 5, uses: 2, description: "workshop" }
    const { body, status } = await operator("/vouchers", { method: "POST", json })
    const [{ code, id }] = body.result.vouchers
    expect(status).toBe(201)
    const before = await service.balance(ada)
    const redeem = (value: string) =>
      service.call("/v1/vouchers/redeem", { method: "POST", token: ada.token, json: { code: value } })
    const redeemed = await redeem(code.toLowerCase())
    expect(redeemed.body.result).toEqual({ tenant_id: ada.tenant_id, amount_usd: 5, balance: before + 5 })
    expect((await redeem(code)).body.code).toBe("voucher_redeemed")
    expect((await redeem("ABCDE")).body.code).toBe("voucher_not_found")
    const listed = (await operator("/vouchers")).body.result.records
    expect(listed).toEqual([expect.objectContaining({ id, uses: 1, uses_max: 2, status: "active" })])
    expect(JSON.stringify(listed)).not.toContain(code)
    expect((await operator(`/vouchers/${id}`, { method: "DELETE" })).body.result.status).toBe("ended")
    expect((await operator("/vouchers/vch_none", { method: "DELETE" })).status).toBe(404)
    expect(JSON.stringify(await actions())).not.toContain(code)
  })
})

describe("the commands", () => {
  const run = async (...args: ReadonlyArray<string>) => commandHere(args, env())

  it("set, show and end an allowance", async () => {
    const bea = await service.signIn("bea@example.com")
    const terms = ["--tenant", bea.tenant_id, "--amount", "3", "--period", "week", "--rollover", "1.5"]
    const set = await run("allowance", "set", ...terms)
    expect(set.stdout).toMatch(
      new RegExp(
        `^${bea.tenant_id} receives 3 credits per week, rollover up to 1.5 USD; 3 credits are unused. The next period begins at 20`
      )
    )
    expect(set.stderr).toContain(
      "applies the plan's new price factor within 30 s and charges the previous price until then"
    )
    const shown = JSON.parse((await run("allowance", "show", "--tenant", bea.tenant_id, "--json")).stdout)
    expect(shown).toMatchObject({ amount_usd: "3", rollover: { up_to_usd: "1.5" }, unused_usd: "3" })
    const ended = await run("allowance", "end", "--tenant", bea.tenant_id, "--take-back")
    expect(ended.stdout).toContain("and took back 3 credits")
    expect((await run("allowance", "show", "--tenant", bea.tenant_id)).stderr).toContain("this tenant has no allowance")
  })

  it.each([
    [["allowance", "set", "--tenant", "ten_x", "--amount", "1", "--period", "week"], "there is no such tenant"],
    [["allowance", "set", "--tenant", "ten_x", "--amount", "1"], "pass --amount and --period, or --plan and --config"],
    [["allowance", "set", "--tenant", "ten_x", "--plan", "a", "--amount", "1"], "omit those options"],
    [["voucher", "create", "--amount", "5", "--expires", "tomorrow"], "--expires tomorrow: must be a day"],
    [["voucher", "create", "--amount", "5", "--uses", "0"], "--uses: must be between 1 and"],
    [["voucher", "end", "--id", "vch_x"], "there is no such voucher"]
  ])("say what is wrong: %o", async (args, words) => {
    const { code, stderr } = await run(...args)
    expect([code, stderr]).toEqual([1, expect.stringContaining(words)])
  })

  it("make, list and end vouchers", async () => {
    const made = await run(
      "voucher",
      "create",
      "--amount",
      "5",
      "--uses",
      "40",
      "--count",
      "3",
      "--expires",
      "2099-01-31"
    )
    const codes = made.stdout.trim().split("\n")
    expect(codes).toHaveLength(3)
    const { vouchers } = JSON.parse((await run("voucher", "list", "--limit", "3", "--json")).stdout)
    expect(vouchers[0]).toMatchObject({ amount_usd: "5", uses_max: 40, expires_at: "2099-02-01T00:00:00.000Z" })
    expect((await run("voucher", "end", "--id", vouchers[0].id)).stdout).toContain("after 0 uses")
    expect((await run("voucher", "list")).stdout).toMatch(/ID .*CODE .*VALUE/)
  })

  it("leave the books right", async () => {
    expect((await run("verify")).stdout).toContain("every invariant of the books holds")
  })
})
