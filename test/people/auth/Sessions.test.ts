/** Sign-in, refresh and sign-out over HTTP. */
import { describe, expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { createLocalJWKSet, decodeJwt, jwtVerify } from "jose"
import { toDate } from "../../../src/kernel/Moment.ts"
import { Issuer } from "../../support/Issuer.ts"
import * as World from "./World.ts"
import { ask, claimsOf, client_id, person, refresh, scene, signIn } from "./World.ts"

const dead = { status: 401, body: { error: "invalid or expired token", code: "invalid_grant" } }

/** The refresh token of an answer to a refresh. */
const next = (answer: World.Answer): string => answer.body.result.refresh_token

describe("signing in", () => {
  scene(
    "answers tokens that the published keys verify",
    Effect.gen(function* () {
      const answer = yield* signIn("ada@example.com")
      expect(answer).toMatchObject({
        status: 200,
        body: {
          msg: "ok",
          result: { account_created: true, token_response: { token_type: "Bearer", expires_in: 3600 } }
        }
      })
      const { access_token, refresh_token } = answer.body.result.token_response
      expect(refresh_token).toMatch(/^rt_fam_\w{22}_[0-9a-f]{96}$/)
      const { body: keys } = yield* ask("GET", "/.well-known/jwks.json")
      expect(Object.keys(keys)).toEqual(["keys"])
      expect(keys.keys).toEqual([expect.objectContaining({ kty: "EC", crv: "P-256", alg: "ES256", use: "sig" })])
      expect(keys.keys[0]).not.toHaveProperty("d")
      const { payload } = yield* Effect.promise(() =>
        jwtVerify(access_token, createLocalJWKSet(keys), {
          audience: client_id,
          currentDate: toDate(World.beginning)
        })
      )
      const { body } = yield* ask("GET", "/v1/me", { token: access_token })
      expect(payload).toMatchObject({
        sub: body.result.account.id,
        tenant_id: body.result.account.tenant_id,
        iat: World.beginning / 1000,
        exp: World.beginning / 1000 + 3600,
        jti: expect.any(String)
      })
      expect((yield* signIn("ada@example.com")).body.result.account_created).toBe(false)
    })
  )

  scene(
    "refuses with the texts of the specification",
    Effect.gen(function* () {
      const { sign } = yield* Issuer
      const id_token = yield* sign(claimsOf("ada@example.com"))
      for (const provider of ["google", "microsoft"]) {
        const at = (json: unknown) => ask("POST", `/v1/auth/${provider}`, { json })
        const missing = {
          status: 400,
          body: { error: "Tollbooth client ID is required", details: { field: "client_id", rule: "required" } }
        }
        expect(yield* at({ id_token })).toEqual(missing)
        expect(yield* at({ id_token, client_id: "" })).toEqual(missing)
        expect(yield* at({ id_token, client_id: "nobody" })).toEqual({
          status: 404,
          body: { error: "Client ID not found" }
        })
        expect(yield* at({ client_id })).toMatchObject({
          status: 400,
          body: { code: "invalid_request", details: { field: "id_token" } }
        })
        expect(yield* at({ client_id, id_token: 5 })).toMatchObject({
          status: 400,
          body: { code: "invalid_request", details: { field: "id_token" } }
        })
        expect(yield* at("{")).toMatchObject({ status: 400, body: { code: "invalid_request" } })
        const stranger = yield* sign({ ...claimsOf("ada@example.com"), aud: "nobody" })
        expect(yield* at({ client_id, id_token: stranger })).toMatchObject({ status: 401 })
      }
      expect(yield* World.sql("SELECT * FROM tollgate_tenants_accounts")).toEqual([])
    })
  )
})

describe("a refresh token", () => {
  scene(
    "works once, on each of the three routes",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      let token = ada.refresh_token
      for (const path of ["/v1/auth/token", "/v1/auth/google/refresh", "/v1/auth/microsoft/refresh"]) {
        const json = { client_id, grant_type: "refresh_token", refresh_token: token }
        const answer = yield* ask("POST", path, { json })
        expect(answer).toMatchObject({
          status: 200,
          body: { msg: "ok", result: { token_type: "Bearer", expires_in: 3600 } }
        })
        expect(next(answer)).not.toBe(token)
        token = next(answer)
        const me = yield* ask("GET", "/v1/me", { token: answer.body.result.access_token })
        expect(me.body.result.account.id).toBe(ada.account_id)
      }
    })
  )

  scene(
    "that comes back ends its sign-in and all its tokens, and no other sign-in",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const elsewhere = yield* person("ada@example.com")
      const second = next(yield* refresh(ada.refresh_token))
      const third = next(yield* refresh(second))
      expect(yield* refresh(ada.refresh_token)).toEqual(dead)
      expect(yield* refresh(third)).toEqual(dead)
      expect((yield* refresh(elsewhere.refresh_token)).status).toBe(200)
    })
  )

  scene(
    "works for one of many concurrent requests, and then its sign-in ends",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const answers = yield* Effect.all(
        Array.from({ length: 20 }, () => refresh(ada.refresh_token)),
        { concurrency: "unbounded" }
      )
      const won = answers.filter(({ status }) => status === 200)
      expect(won.length).toBe(1)
      for (const answer of answers) if (answer !== won[0]) expect(answer).toEqual(dead)
      expect(yield* refresh(next(won[0]!))).toEqual(dead)
    })
  )

  scene(
    "lasts seven days, and rolls up to ninety from the sign-in",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const idle = yield* person("ada@example.com")
      let token = ada.refresh_token
      // A token of the 84th day is valid for six days, not seven.
      for (let day = 6; day <= 84; day += 6) {
        yield* TestClock.adjust("6 days")
        token = next(yield* refresh(token))
        if (day === 12) expect(yield* refresh(idle.refresh_token)).toEqual(dead)
      }
      yield* TestClock.adjust("143 hours")
      token = next(yield* refresh(token))
      yield* TestClock.adjust("1 hour")
      expect(yield* refresh(token)).toEqual(dead)
    })
  )

  scene(
    "expires after seven days, to the millisecond",
    Effect.gen(function* () {
      const [one, two] = [yield* person("ada@example.com"), yield* person("ada@example.com")]
      yield* TestClock.adjust(7 * 86_400_000 - 1)
      expect((yield* refresh(one.refresh_token)).status).toBe(200)
      yield* TestClock.adjust(1)
      expect(yield* refresh(two.refresh_token)).toEqual(dead)
    })
  )

  scene(
    "is bound to its client, and refused with the specification's texts",
    Effect.gen(function* () {
      const { refresh_token } = yield* person("ada@example.com")
      expect(yield* refresh(refresh_token, { client_id: "phone" })).toEqual(dead)
      expect(yield* refresh(refresh_token, { client_id: "" })).toEqual({
        status: 400,
        body: { error: "Tollbooth client ID is required", details: { field: "client_id", rule: "required" } }
      })
      expect(yield* refresh(refresh_token, { client_id: "nobody" })).toEqual({
        status: 404,
        body: { error: "Client ID not found" }
      })
      const details = { field: "grant_type", rule: "refresh_token" }
      const unsupported = { status: 400, body: { error: "Unsupported grant_type: password", details } }
      expect(yield* refresh(refresh_token, { grant_type: "password" })).toEqual(unsupported)
      // Another grant type has no refresh token, and is refused by its own text.
      expect(yield* ask("POST", "/v1/auth/token", { json: { grant_type: "password" } })).toEqual(unsupported)
      expect(yield* ask("POST", "/v1/auth/token", { json: { client_id, grant_type: "refresh_token" } })).toMatchObject({
        status: 400,
        body: { code: "invalid_request", details: { field: "refresh_token", rule: "required" } }
      })
      for (const unknown of ["", "rt_", `rt_${"0".repeat(64)}`, "svc-prod-x", "a.b.c"]) {
        expect(yield* refresh(unknown)).toEqual(dead)
      }
      // These requests have not spent it.
      expect((yield* refresh(refresh_token)).status).toBe(200)
    })
  )

  scene(
    "answers a token of another tenant to its active members",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const bob = yield* person("bob@example.com")
      const stranger = { status: 403, body: expect.objectContaining({ code: "not_a_member" }) }
      expect(yield* refresh(ada.refresh_token, { tenant_id: bob.tenant_id })).toEqual(stranger)
      for (const status of ["invited", "suspended", "removed"]) {
        yield* World.join(ada.account_id, bob.tenant_id, status)
        expect(yield* refresh(ada.refresh_token, { tenant_id: bob.tenant_id })).toEqual(stranger)
      }
      yield* World.join(ada.account_id, bob.tenant_id)
      const there = yield* refresh(ada.refresh_token, { tenant_id: bob.tenant_id })
      expect(decodeJwt(there.body.result.access_token)).toMatchObject({ sub: ada.account_id, tenant_id: bob.tenant_id })
      // The tenant stays until a request names another.
      const still = yield* refresh(next(there))
      expect(decodeJwt(still.body.result.access_token)).toMatchObject({ tenant_id: bob.tenant_id })
      const home = yield* refresh(next(still), { tenant_id: ada.tenant_id })
      expect(decodeJwt(home.body.result.access_token)).toMatchObject({ tenant_id: ada.tenant_id })
    })
  )

  scene(
    "can be revoked, with its sign-in; an unknown token is answered in the same way",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const revoke = (token: string) => ask("POST", "/v1/auth/revoke", { json: { token, token_type: "refresh_token" } })
      const success = { status: 200, body: { msg: "ok", result: { success: true } } }
      const second = next(yield* refresh(ada.refresh_token))
      expect(yield* revoke("rt_unknown")).toEqual(success)
      expect(yield* revoke(ada.token)).toEqual(success)
      expect(yield* revoke(ada.refresh_token)).toEqual(success)
      expect(yield* revoke(ada.refresh_token)).toEqual(success)
      expect(yield* refresh(second)).toEqual(dead)
      expect(yield* ask("POST", "/v1/auth/revoke", { json: {} })).toMatchObject({
        status: 400,
        body: { code: "invalid_request", details: { field: "token" } }
      })
    })
  )
})

describe("a sign-in that another process has ended", () => {
  scene(
    "takes its access tokens with it within a minute",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const me = Effect.map(ask("GET", "/v1/me", { token: ada.token }), ({ status }) => status)
      expect(yield* me).toBe(200)
      yield* World.sql("UPDATE tollgate_auth_families SET revoked_at = 1")
      yield* TestClock.adjust("1 minute")
      expect(yield* me).toBe(401)
    })
  )
})
