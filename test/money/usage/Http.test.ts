/** The usage and billing routes as a client meets them, with stand-ins for the credentials. */
import { HttpApi, HttpApiBuilder, HttpApp, HttpServer } from "@effect/platform"
import type { HttpRouter } from "@effect/platform"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Credentials } from "../../../src/people/auth/Credentials.ts"
import { SecurityHttp } from "../../../src/people/auth/SecurityHttp.ts"
import { BillingApi } from "../../../src/money/billing/Api.ts"
import { BillingAccounts } from "../../../src/money/billing/BillingAccounts.ts"
import { BillingHttp } from "../../../src/money/billing/Http.ts"
import { InvalidToken } from "../../../src/people/credentials/Problems.ts"
import type { Caller } from "../../../src/kernel/Caller.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { UsageApi } from "../../../src/money/usage/Api.ts"
import { UsageHttp } from "../../../src/money/usage/Http.ts"
import { Explanations } from "../../../src/money/usage/Explanations.ts"
import { PriceVersions } from "../../../src/books/prices/PriceVersions.ts"
import { HeldKeys } from "../../../src/money/usage/HeldKeys.ts"
import { Records } from "../../../src/money/usage/Records.ts"
import { Series } from "../../../src/money/usage/Series.ts"
import { Sums } from "../../../src/money/usage/Sums.ts"
import { TeamUsage } from "../../../src/money/usage/TeamUsage.ts"
import * as Scene from "./Scene.ts"
import { acme, ada, other } from "./Scene.ts"

const caller: Caller = {
  account_id: ada,
  tenant_id: acme,
  application_id: null,
  credential: "user_token",
  team_first: false
}

const credentials = Layer.provide(
  SecurityHttp,
  Layer.succeed(Credentials, {
    rememberedKey: () => undefined,
    userToken: (authorization) => (authorization === "Bearer ada" ? Effect.succeed(caller) : new InvalidToken()),
    keyOrToken: () => Effect.succeed(caller),
    apiKey: () => Effect.succeed(caller)
  })
)

// These two groups of the contract, by themselves.
const api = HttpApi.make("tollgate").add(UsageApi).add(BillingApi)

const layer = HttpApiBuilder.api(api).pipe(
  Layer.provide([UsageHttp, BillingHttp]),
  Layer.provideMerge(credentials),
  Layer.provide([Records.layer, TeamUsage.layer, BillingAccounts.layer, Explanations.layer]),
  // No test of this file asks about a key.
  Layer.provide(Layer.succeed(HeldKeys, { of: () => Effect.dieMessage("no key is asked about") })),
  Layer.provide(PriceVersions.layer),
  Layer.provide(Layer.merge(Sums.layer, Series.layer)),
  Layer.provideMerge(
    Layer.mergeAll(HttpApiBuilder.Router.Live, HttpApiBuilder.Middleware.layer, HttpServer.layerContext)
  ),
  Layer.provideMerge(Scene.layer)
)

/** Asks as Ada; answers status and body. */
const get = (path: string, bearer = "ada") =>
  Effect.gen(function* () {
    const app = yield* HttpApiBuilder.httpApp
    const handler = HttpApp.toWebHandlerRuntime(yield* Effect.runtime<HttpRouter.HttpRouter.DefaultServices>())(app)
    const response = yield* Effect.promise(() =>
      handler(new Request(`http://localhost${path}`, { headers: { authorization: `Bearer ${bearer}` } }))
    )
    return { status: response.status, body: (yield* Effect.promise(() => response.json())) as unknown }
  })

describe("usage and billing over HTTP", () => {
  it.effect("answers in the shapes of the specification", () =>
    Effect.gen(function* () {
      yield* Scene.now("2026-03-01T10:00:00Z")
      yield* Scene.tenant(acme, 5n * usd)
      const id = yield* Scene.call({ cost: usd / 10n })
      expect(yield* get("/v1/usage?start_time=2026-03-01T00:00:00Z&end_time=2026-03-02T00:00:00Z")).toMatchObject({
        status: 200,
        body: { total_requests: 1, total_cost: 0.1, model_breakdown: [{ model: "small" }] }
      })
      expect(yield* get(`/v1/tenants/${acme}/usage?per_page=500`)).toMatchObject({
        status: 200,
        body: { msg: "ok", result: { page: 1, per_page: 200, next_cursor: null, records: [{ id, cost: 0.1 }] } }
      })
      expect(yield* get(`/v1/tenants/${acme}/usage/rollup?rollup=monthly`)).toMatchObject({
        status: 200,
        body: {
          msg: "ok",
          result: { rollup: "monthly", start_date: null, data_points: [{ timestamp: "2026-03-01T00:00:00.000Z" }] }
        }
      })
      expect(yield* get(`/v1/tenants/${acme}/billing/credits`)).toEqual({
        status: 200,
        body: { msg: "ok", result: { balance: 4.9 } }
      })
      expect(yield* get(`/v1/tenants/${acme}/billing/ledger?page=2&per_page=1`)).toMatchObject({
        status: 200,
        body: { msg: "ok", result: { total_pages: 2, records: [{ type: "credit", source: "purchase", balance: 5 }] } }
      })
      expect(yield* get(`/v1/tenants/${acme}/billing`)).toMatchObject({
        status: 200,
        body: { msg: "ok", result: { status: "active", credits: 4.9, has_been_funded: true } }
      })
    }).pipe(Effect.provide(layer))
  )

  it.effect("the path's tenant must be the token's", () =>
    Effect.gen(function* () {
      const usage = { status: 403, body: { error: "Tenant ID in path does not match JWT" } }
      expect(yield* get(`/v1/tenants/${other}/usage`)).toEqual(usage)
      expect(yield* get(`/v1/tenants/${other}/usage/rollup`)).toEqual(usage)
      const money = { status: 403, body: { error: "tenant ID in path does not match authenticated tenant" } }
      expect(yield* get(`/v1/tenants/${other}/billing`)).toEqual(money)
      expect(yield* get(`/v1/tenants/${other}/billing/credits`)).toEqual(money)
      expect(yield* get(`/v1/tenants/${other}/billing/ledger`)).toEqual(money)
    }).pipe(Effect.provide(layer))
  )

  it.effect("refuses with the texts of the specification", () =>
    Effect.gen(function* () {
      expect(yield* get("/v1/usage?start_time=x")).toMatchObject({
        status: 400,
        body: { error: "Invalid start_time format", details: { field: "start_time" } }
      })
      expect(yield* get("/v1/usage?start_time=2026-03-01")).toMatchObject({ status: 400 })
      expect(yield* get("/v1/usage?end_time=x")).toMatchObject({
        status: 400,
        body: { error: "Invalid end_time format", details: { field: "end_time" } }
      })
      expect(yield* get(`/v1/tenants/${acme}/usage/rollup`)).toMatchObject({
        status: 400,
        body: { error: "Invalid rollup value (must be 'daily', 'monthly', or 'annual')" }
      })
      expect(yield* get(`/v1/tenants/${acme}/usage?sort=model`)).toMatchObject({
        status: 400,
        body: { code: "invalid_request", details: { field: "sort" } }
      })
      expect(yield* get(`/v1/tenants/${acme}/billing`, "bob")).toEqual({
        status: 401,
        body: { error: "invalid or expired token" }
      })
      expect((yield* get(`/v1/tenants/${acme}/billing/ledger?page=0`)).status).toBe(400)
    }).pipe(Effect.provide(layer))
  )
})
