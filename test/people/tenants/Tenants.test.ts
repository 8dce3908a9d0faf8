/** Accounts, home tenants and signup credit: created once, also by concurrent sign-ins. */
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { verify } from "../../../src/app/Checks.ts"
import { Tenants } from "../../../src/people/tenants/Tenants.ts"
import type { ProviderName, VerifiedIdentity } from "../../../src/upstream/identity/Identity.ts"
import * as World from "../auth/World.ts"
import { ask, person, scene, signIn } from "../auth/World.ts"

/** The credits of a tenant, oldest first: source, USD, reference. */
const credits = (tenant: string) =>
  Effect.gen(function* () {
    const { entries } = yield* Ledger
    const { records } = yield* entries(billingAccountOf(tenant), { page: 1, per_page: 50 })
    return records
      .toReversed()
      .map(({ amount, reference_id, source }) => [source, Number(amount) / 1e9, reference_id] as const)
  })

const given = (account: string) => [
  ["signup_grant", 5, account],
  ["registration_bonus", 2, account]
]

const identityOf = (subject: string, email: string, provider: ProviderName = "google"): VerifiedIdentity => ({
  provider,
  subject,
  email,
  email_verified: true,
  name: "Ada"
})

const count = (table: string) =>
  Effect.map(World.sql<{ n: number }>(`SELECT count(*) AS n FROM ${table}`), ([row]) => row!.n)

const counts = Effect.all([
  count("tollgate_tenants_accounts"),
  count("tollgate_tenants_identities"),
  count("tollgate_tenants_tenants"),
  count("tollgate_tenants_memberships"),
  count("tollgate_ledger_accounts"),
  count("tollgate_ledger_entries")
])

const many = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.all(
    Array.from({ length: 20 }, () => effect),
    { concurrency: "unbounded" }
  )

const sound = Effect.map(verify, (findings) => expect(findings).toEqual([]))

describe("the first sign-in", () => {
  scene(
    "makes an account, its home tenant and its billing account, with credit on it",
    Effect.gen(function* () {
      const ada = yield* person("Ada@Example.com")
      expect(yield* ask("GET", "/v1/me", { token: ada.token })).toEqual({
        status: 200,
        body: {
          msg: "ok",
          result: {
            account: {
              id: ada.account_id,
              tenant_id: ada.tenant_id,
              email: "ada@example.com",
              name: "Ada",
              role: "owner",
              status: "active",
              created_at: "2026-03-01T10:00:00.000Z",
              updated_at: "2026-03-01T10:00:00.000Z"
            },
            identity: { email: "ada@example.com", provider: "google", provider_id: "sub-ada@example.com" },
            verification: { email_verified: true, signup_grant: "claimed", grant_amount: 7 }
          }
        }
      })
      expect(yield* credits(ada.tenant_id)).toEqual(given(ada.account_id))
      expect(yield* counts).toEqual([1, 1, 1, 1, 1, 2])
      yield* sound
    })
  )

  scene(
    "creates one account for twenty concurrent sign-ins",
    Effect.gen(function* () {
      const answers = yield* many(signIn("ada@example.com"))
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
      expect(answers.filter(({ body }) => body.result.account_created === true).length).toBe(1)
      expect(yield* counts).toEqual([1, 1, 1, 1, 1, 2])
      const ada = yield* person("ada@example.com")
      expect(yield* credits(ada.tenant_id)).toEqual(given(ada.account_id))
      yield* sound
    })
  )

  scene(
    "creates one account if all read before the first writes",
    Effect.gen(function* () {
      const { welcome } = yield* Tenants
      const [google, microsoft] = [
        identityOf("one", "ada@example.com"),
        identityOf("two", "ada@example.com", "microsoft")
      ]
      const welcomed = yield* Effect.all([many(welcome(google)), many(welcome(microsoft))], {
        concurrency: "unbounded"
      })
      expect(new Set(welcomed.flat().map(({ account_id }) => account_id)).size).toBe(1)
      expect(welcomed.flat().filter(({ created }) => created).length).toBe(1)
      expect(yield* counts).toEqual([1, 2, 1, 1, 1, 2])
      yield* sound
    })
  )

  scene(
    "creates one account if both providers sign in at once",
    Effect.gen(function* () {
      yield* Effect.all([many(signIn("ada@example.com")), many(signIn("ada@example.com", {}, "microsoft"))], {
        concurrency: "unbounded"
      })
      expect(yield* counts).toEqual([1, 2, 1, 1, 1, 2])
      yield* sound
    })
  )

  scene(
    "gives only what the price list gives",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      expect(yield* credits(ada.tenant_id)).toEqual([["registration_bonus", 1e-9, ada.account_id]])
    }),
    { default_new_credits: 0n, default_registration_credits: 1n }
  )

  scene(
    "grants nothing if the price list grants nothing",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const bob = yield* person("bob@example.com", { email_verified: false })
      expect(yield* counts).toEqual([2, 2, 2, 2, 2, 0])
      for (const [{ token }, email_verified] of [
        [ada, true],
        [bob, false]
      ] as const) {
        const { body } = yield* ask("GET", "/v1/me", { token })
        expect(body.result.verification).toEqual({ email_verified, signup_grant: "none" })
      }
    }),
    { default_new_credits: 0n, default_registration_credits: 0n }
  )
})

describe("an unverified address", () => {
  scene(
    "creates an account without credit; the first verified sign-in grants it once",
    Effect.gen(function* () {
      const before = yield* person("ada@example.com", { email_verified: false })
      const pending = yield* ask("GET", "/v1/me", { token: before.token })
      expect(pending.body.result.verification).toEqual({
        email_verified: false,
        signup_grant: "pending",
        grant_amount: 7
      })
      expect(yield* credits(before.tenant_id)).toEqual([])
      yield* many(signIn("ada@example.com"))
      const after = yield* person("ada@example.com")
      expect([after.account_id, after.tenant_id]).toEqual([before.account_id, before.tenant_id])
      expect(yield* credits(after.tenant_id)).toEqual(given(after.account_id))
      expect(yield* counts).toEqual([1, 1, 1, 1, 1, 2])
      // A later sign-in takes the credit neither back nor gives it again.
      yield* person("ada@example.com", { email_verified: false })
      const { body } = yield* ask("GET", "/v1/me", { token: (yield* person("ada@example.com")).token })
      expect(body.result.verification).toEqual({ email_verified: true, signup_grant: "claimed", grant_amount: 7 })
      expect(yield* counts).toEqual([1, 1, 1, 1, 1, 2])
      yield* sound
    })
  )

  scene(
    "brings its credit once, whichever of many addresses is verified first",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com", { sub: "ada", email_verified: false })
      // No signature is awaited in between, so all read before the first writes.
      const { welcome } = yield* Tenants
      const identities = Array.from({ length: 20 }, (_, i) => identityOf("ada", `ada${i}@example.com`))
      yield* Effect.forEach(identities, welcome, { concurrency: "unbounded" })
      expect(yield* credits(ada.tenant_id)).toEqual(given(ada.account_id))
      expect(yield* counts).toEqual([1, 1, 1, 1, 1, 2])
    })
  )

  scene(
    "does not take over the account of the verified address",
    Effect.gen(function* () {
      const waiting = yield* person("ada@example.com", { sub: "mallory", email_verified: false })
      const ada = yield* person("ada@example.com")
      const late = yield* person("ada@example.com", { sub: "trudy", email_verified: false })
      expect(new Set([waiting.account_id, ada.account_id, late.account_id]).size).toBe(3)
      expect(yield* credits(waiting.tenant_id)).toEqual([])
      expect(yield* credits(late.tenant_id)).toEqual([])
      expect(yield* credits(ada.tenant_id)).toEqual(given(ada.account_id))
      // Even after it is verified: another account has the address.
      const again = yield* person("ada@example.com", { sub: "mallory" })
      expect(again.account_id).toBe(waiting.account_id)
      expect(yield* credits(again.tenant_id)).toEqual([])
      yield* sound
    })
  )

  scene(
    "may be missing",
    Effect.gen(function* () {
      const one = yield* person("", { sub: "one" })
      const two = yield* person("", { sub: "two" }, "microsoft")
      expect(one.account_id).not.toBe(two.account_id)
      expect(yield* count("tollgate_ledger_entries")).toBe(0)
    })
  )
})

describe("the same person", () => {
  scene(
    "is the same account for the other provider with the same address, in any case",
    Effect.gen(function* () {
      const google = yield* person("ada@example.com")
      const microsoft = yield* person("ADA@example.com", { sub: "another" }, "microsoft")
      expect(microsoft.account_id).toBe(google.account_id)
      expect(microsoft.tenant_id).toBe(google.tenant_id)
      expect(yield* counts).toEqual([1, 2, 1, 1, 1, 2])
    })
  )

  scene(
    "is found by the provider's subject after a change of the address",
    Effect.gen(function* () {
      const before = yield* person("ada@example.com", { sub: "ada" })
      const after = yield* person("countess@example.com", { sub: "ada" })
      expect(after.account_id).toBe(before.account_id)
      // The same subject at another provider is another person.
      const other = yield* person("bob@example.com", { sub: "ada" }, "microsoft")
      expect(other.account_id).not.toBe(before.account_id)
    })
  )
})

describe("an account", () => {
  scene(
    "is shown to its owner and to accounts that share a tenant with it",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const bob = yield* person("bob@example.com")
      const look = ask("GET", `/v1/accounts/${bob.account_id}`, { token: ada.token })
      const none = { status: 404, body: { error: "account not found", code: "account_not_found" } }
      expect(yield* look).toEqual(none)
      for (const status of ["invited", "suspended", "removed"]) {
        yield* World.join(bob.account_id, ada.tenant_id, status)
        expect(yield* look).toEqual(none)
      }
      yield* World.join(bob.account_id, ada.tenant_id)
      expect(yield* look).toMatchObject({
        status: 200,
        body: { result: { id: bob.account_id, email: "bob@example.com" } }
      })
      const self = yield* ask("GET", `/v1/accounts/${ada.account_id}`, { token: ada.token })
      const me = yield* ask("GET", "/v1/me", { token: ada.token })
      expect(self.body.result).toEqual(me.body.result.account)
      expect(yield* ask("GET", "/v1/accounts/acc_nobody", { token: ada.token })).toEqual(none)
    })
  )

  scene(
    "lists its memberships, except removed ones",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const bob = yield* person("bob@example.com")
      const memberships = Effect.map(
        ask("GET", "/v1/me/memberships", { token: bob.token }),
        ({ body }) => body.result.memberships
      )
      const plan = { status: "none", seats: 0 }
      const home = {
        tenant_id: bob.tenant_id,
        tenant_name: "bob",
        role: "owner",
        status: "active",
        is_home: true,
        plan
      }
      expect(yield* memberships).toEqual([home])
      yield* World.join(bob.account_id, ada.tenant_id, "suspended")
      expect(yield* memberships).toEqual([
        home,
        { tenant_id: ada.tenant_id, tenant_name: "ada", role: "member", status: "suspended", is_home: false, plan }
      ])
      yield* World.join(bob.account_id, ada.tenant_id, "removed")
      expect(yield* memberships).toEqual([home])
    })
  )

  scene(
    "takes user tokens only",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { api_key } = yield* World.application(ada)
      const at = [
        "/v1/me",
        "/v1/me/memberships",
        `/v1/accounts/${ada.account_id}`,
        `/v1/tenants/${ada.tenant_id}/applications`
      ]
      for (const path of at) {
        expect(yield* ask("GET", path)).toEqual({ status: 401, body: { error: "missing Authorization header" } })
        const refused = { status: 401, body: { error: "invalid or expired token" } }
        expect(yield* ask("GET", path, { token: api_key })).toEqual(refused)
        expect(yield* ask("GET", path, { authorization: ada.token })).toEqual(refused)
      }
    })
  )
})
