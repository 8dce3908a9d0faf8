/** The export of charged calls over HTTP: its formats, its refusals, and what a client that disconnects leaves behind. */
import { parse } from "csv-parse/sync"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { fromDecimal } from "../../src/kernel/Money.ts"
import { focusColumns, headerFaults, rowFaults } from "../money/exports/FocusRules.ts"
import { linkTo } from "../support/mail.ts"
import { start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"

let service: Service
let ada: Person
let bob: Person

const chat = async (who: Person, content = "hello there", tags = ""): Promise<string> => {
  const answer = await service.call("/v1/chat/completions", {
    token: who.token,
    headers: tags === "" ? {} : { "x-tags": tags },
    json: { model: "sandbox-fraction", user: "=HYPERLINK(1)", messages: [{ role: "user", content }], max_tokens: 5 }
  })
  expect(answer.status).toBe(200)
  return answer.headers.get("x-usage-id")!
}

const exportOf = (who: Person, query = "", tenant = who.tenant_id) =>
  service.call(`/v1/tenants/${tenant}/billing/export${query}`, { token: who.token })

const rowsOf = (text: string) =>
  parse(text, { columns: true, record_delimiter: "\r\n" }) as ReadonlyArray<Readonly<Record<string, string>>>

beforeAll(async () => {
  service = await start()
  ada = await service.signIn("ada@example.com")
  bob = await service.signIn("bob@example.com")
})
afterAll(() => service.discard())

describe("an export", () => {
  it("is a CSV file of the charged calls, which add up to the ledger's debits", async () => {
    const ids = [await chat(ada), await chat(ada, "one two three four five six seven", "project=atlas,note=a=1")]
    const search = await service.call("/v1/search?query=tolls", { token: ada.token })
    expect(search.status).toBe(200)
    const csv = await exportOf(ada)
    expect(csv.status).toBe(200)
    expect(csv.headers.get("content-type")).toBe("text/csv; charset=utf-8")
    expect(csv.headers.get("content-disposition")).toBe(`attachment; filename="usage_${ada.tenant_id}.csv"`)
    const rows = rowsOf(csv.body)
    expect(rows.map((row) => row["usage_id"]).slice(0, 2)).toEqual(ids)
    expect(rows[1]).toMatchObject({
      model: "sandbox-fraction",
      tags: '{"note":"a=1","project":"atlas"}',
      end_user: "'=HYPERLINK(1)",
      account_email: "ada@example.com",
      billing_source_kind: "own"
    })
    const ledger = await service.call(`/v1/tenants/${ada.tenant_id}/billing/ledger?source=call`, { token: ada.token })
    const debits = (ledger.body.result.records as ReadonlyArray<{ id: string; amount: number }>).toReversed()
    expect(rows.map((row) => row["ledger_entry_id"])).toEqual(debits.map(({ id }) => id))
    const due = debits.reduce((sum, { amount }) => sum + fromDecimal(String(amount), 9)!, 0n)
    const sum = (amounts: ReadonlyArray<string | undefined>) =>
      amounts.reduce((total, text) => total + fromDecimal(text!, 9)!, 0n)
    expect(sum(rows.map((row) => row["charge_usd"]))).toBe(due)

    const focus = await exportOf(ada, "?format=focus&from=2020-01-01&to=2099-01-01")
    expect(focus.headers.get("content-disposition")).toBe(
      `attachment; filename="focus_${ada.tenant_id}_2020-01-01_2099-01-01.csv"`
    )
    expect(headerFaults((focus.body as string).split("\r\n")[0]!.split(","))).toEqual([])
    const lines = rowsOf(focus.body)
    expect(lines.flatMap(rowFaults)).toEqual([])
    expect(sum(lines.map((row) => row["BilledCost"]))).toBe(due)
    expect(Object.keys(lines[0]!).slice(0, Object.keys(focusColumns).length)).toEqual(Object.keys(focusColumns))
    expect(lines.find((row) => row["x_UsageId"] === ids[0])).toMatchObject({
      SkuId: "sandbox-fraction/prompt_tokens",
      PricingQuantity: "2.0",
      ListUnitPrice: "0.0000000375",
      ListCost: "0.000000075",
      ProviderName: "Tollgate",
      SubAccountId: ada.account_id
    })
    // Its price lines explain every charge of this service.
    expect(lines.filter((row) => row["SkuId"]!.endsWith("/call"))).toEqual([])
  })

  it("has a header only if nothing was charged in the period", async () => {
    const { body, status } = await exportOf(bob, "?to=2020-01-01")
    expect([status, rowsOf(body)]).toEqual([200, []])
    expect(body).toMatch(/^time,usage_id,.*\r\n$/)
  })

  it("refuses a query by its field", async () => {
    for (const [query, field] of [
      ["?format=xlsx", "format"],
      ["?from=yesterday", "from"],
      ["?to=2026-02-30", "to"],
      ["?from=2026-02-01&to=2026-01-01", "to"]
    ]) {
      const { body, status } = await exportOf(ada, query)
      expect([query, status, body.code, body.details?.field]).toEqual([query, 400, "invalid_request", field])
    }
  })

  it("contains what a team's pool paid for its members, and is for owners and admins only", async () => {
    const { client_id } = await service.sandbox()
    const made = await service.call("/v1/tenants", { token: ada.token, json: { name: "=Team" } })
    const tenant_id = made.body.result.id as string
    await service.control(`/tenants/${tenant_id}`, { plan: "team" })
    await service.control("/credit", { tenant_id, amount: 5, source: "purchase" })
    const sent = await service.call(`/v1/tenants/${tenant_id}/invites`, {
      token: ada.token,
      json: { email: bob.email, role: "member" }
    })
    expect(sent.status).toBe(201)
    const token = await linkTo(service, bob.email)
    expect(
      (await service.call(`/v1/tenant-invites/${token}/accept`, { token: bob.token, method: "POST" })).status
    ).toBe(200)
    const { body } = await service.call(`/v1/me/billing-sources`, { token: bob.token })
    const pool = (body.result.sources as ReadonlyArray<{ kind: string; billing_account_id: string }>).find(
      ({ kind }) => kind === "team"
    )!
    const pinned = { mode: "pinned", billing_account_id: pool.billing_account_id }
    await service.call("/v1/me/billing-source", { method: "PUT", token: bob.token, json: pinned })
    const usage_id = await chat(bob)
    const ofTeam = async (who: Person): Promise<Person> => {
      const json = { client_id, grant_type: "refresh_token", refresh_token: who.refresh_token, tenant_id }
      const { access_token, refresh_token } = (await service.call("/v1/auth/token", { json })).body.result
      return { ...who, token: access_token, refresh_token, tenant_id }
    }
    const owner = await ofTeam(ada)
    const rows = rowsOf((await exportOf(owner)).body)
    expect(rows).toMatchObject([
      { usage_id, tenant_id: bob.tenant_id, account_email: "bob@example.com", billing_source_kind: "team" }
    ])
    const [line] = rowsOf((await exportOf(owner, "?format=focus")).body)
    expect(line).toMatchObject({ BillingAccountName: "'=Team", x_TenantId: bob.tenant_id })
    // What the pool paid is not in the member's own export.
    expect(rowsOf((await exportOf(bob)).body)).toEqual([])
    const refused = await exportOf(await ofTeam(bob))
    expect([refused.status, refused.body.code]).toEqual([403, "insufficient_role"])
  })

  it("belongs to the tenant of the token", async () => {
    const foreign = await exportOf(bob, "", ada.tenant_id)
    expect([foreign.status, foreign.body.error]).toEqual([403, "tenant ID in path does not match authenticated tenant"])
    const key = await service.key(ada)
    const keyed = await service.call(`/v1/tenants/${ada.tenant_id}/billing/export`, { token: key })
    expect(keyed.status).toBe(401)
    const head = await service.call(`/v1/tenants/${ada.tenant_id}/billing/export`, { method: "HEAD", token: ada.token })
    expect(head.status).toBe(405)
  })
})
