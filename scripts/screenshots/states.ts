/** Overrides the service's responses to show a view's other states: loading, failed, or with operator warnings. */
import type { Route } from "playwright-core"
import type { Tab } from "../../test/console/Browser.ts"
import { daysAhead } from "./Life.ts"

/** Delays all responses except the frame's forever. */
export const waiting = ({ page }: Tab): Promise<unknown> =>
  page.route(/\/v1\/(?!me(\/|$)|events)/, () => new Promise<void>(() => {}))

const refusal = {
  status: 403,
  headers: { "x-request-id": "req_0f6b2c9d81e4" },
  json: { error: "insufficient role", code: "insufficient_role" }
}
export const failing = ({ page }: Tab): Promise<unknown> =>
  page.route(/\/v1\/(?!me(\/|$)|events)/, (route) => route.fulfill(refusal))

const unavailable = { status: 503, headers: { "x-request-id": "req_5c1d77ab90f2" }, json: { error: "unavailable" } }
/** Responds with a status that makes the page retry three times. */
export const broken = ({ page }: Tab): Promise<unknown> =>
  page.route(/\/v1\/operator\/(?!me)/, (route) => route.fulfill(unavailable))

type Json = Record<string, unknown>

const changed = (change: (result: Json, now: number) => Json) => async (route: Route) => {
  const response = await route.fetch()
  const body = (await response.json()) as { readonly result: Json }
  const now = Date.now() + daysAhead * 86_400_000
  await route.fulfill({ response, json: { ...body, result: change(body.result, now) } })
}

const minute = 60_000
const at = (now: number, ago: number): string => new Date(now - ago).toISOString()

const upstreams = changed((result, now) => ({
  ...result,
  upstreams: (result["upstreams"] as ReadonlyArray<Json>).map((one, index) =>
    index > 1
      ? one
      : {
          ...one,
          state: "failing",
          requests: { "2xx": 1204, "4xx": 3, "5xx": index === 0 ? 214 : 0, unreachable: index === 0 ? 0 : 87 },
          failures_in_a_row: index === 0 ? 41 : 87,
          last_success_at: at(now, (6 + index) * minute),
          last_failure_at: at(now, 3000),
          last_failure: index === 0 ? "5xx" : "unreachable",
          latency_ms: { p50: 840, p95: 12_400 },
          minutes: Array.from({ length: 15 }, (_, i) => ({
            at: at(now, (15 - i) * minute),
            requests: 90 + ((i * 37) % 40),
            failures: i < 8 ? 0 : Math.min(90, (i - 7) * 19)
          }))
        }
  ),
  models: (result["models"] as ReadonlyArray<Json>).map((one, index) => (index === 0 ? { ...one, serving: null } : one))
}))

const flight = changed((result, now) => ({
  ...result,
  unsettled: 23,
  oldest_at: at(now, 3 * 86_400_000),
  open_calls: 41,
  reserved: 12.345678,
  owed: 4.5,
  ages: (result["ages"] as ReadonlyArray<Json>).map((age, index, { length }) => ({
    ...age,
    calls: index === 0 ? 34 : index === length - 1 ? 7 : 0,
    amount: index === 0 ? 8.2 : index === length - 1 ? 4.145678 : 0
  }))
}))

const loops = changed((result, now) => ({
  ...result,
  loops: (result["loops"] as ReadonlyArray<Json>).map((one, index) =>
    index === 0
      ? { ...one, failures: 14, trouble: "its last 14 iterations failed", last_turn_at: at(now, 47 * minute) }
      : one
  ),
  outbox: { waiting: 318, oldest_at: at(now, 52 * minute) }
}))

const found = [
  { check: "balances", message: "account bil_7fd2c1: entries sum to 12.5, balance is 12.25" },
  { check: "usage", message: "record use_91ab04 has no entry" }
]

const verify = changed((result, now) => {
  const run = { at: at(now, 4 * minute), whole: true, findings: 2, millis: 48_210, entry: 5_012_331, record: 4_988_102 }
  return {
    ...result,
    last: run,
    last_held: { ...run, at: at(now, 3 * 86_400_000), findings: 0 },
    recent: [run, ...[3, 4, 5, 6].map((days) => ({ ...run, at: at(now, days * 86_400_000), findings: 0 }))],
    found
  }
})

const invariants = changed((result) => ({
  ...result,
  checks: (result["checks"] as ReadonlyArray<Json>).map((one, index) =>
    index === 0 ? { ...one, holds: false, findings: found.map(({ message }) => message) } : one
  )
}))

const tenant = "ten_01m83c91qn2j1z7y00f3d5"

const reservations = changed((_, now) => ({
  next: null,
  records: [
    ["sandbox-video", "media/generate", 47 * minute, 0.6, false],
    ["sandbox-large", "chat/completions", 95_000, 0.1234567, true],
    ["sandbox-small", "responses", 2000, 0.0000004, true]
  ].map(([model, endpoint, ago, amount, node_alive], index) => ({
    id: `res_01mbmntyj9gh8eatakj3q${index}`,
    at: at(now, Number(ago)),
    amount,
    tenant_id: tenant,
    account_id: "acc_01m83c91qnhf32eex7bbtb",
    payer_tenant_id: tenant,
    model,
    provider: "sandbox-a",
    endpoint,
    run: "run_1",
    node_alive
  }))
}))

const owed = changed((_, now) => ({
  owed: [
    { payment_id: "pi_f73477492b1d08ffc1e6135", tenant_id: tenant, owed: 4.25 },
    { payment_id: "pi_4d6244790d8c34424925a80", tenant_id: tenant, owed: 0.25 }
  ],
  waiting: [{ payment_id: "pi_90aa1779cd8c34424925b11", movements: 2, since: at(now, 26 * 60 * minute) }]
}))

/** Shows failing upstreams, unsettleable calls, a failing loop, and verification findings. */
export const troubled = async ({ page }: Tab): Promise<void> => {
  await page.route("**/v1/operator/upstreams", upstreams)
  await page.route("**/v1/operator/flight", flight)
  await page.route("**/v1/operator/loops", loops)
  await page.route("**/v1/operator/verify", verify)
  await page.route("**/v1/operator/invariants", invariants)
  await page.route(/\/v1\/operator\/reservations/, reservations)
  await page.route("**/v1/operator/owed", owed)
  await page.route("**/v1/operator/events", (route) => route.abort())
}
