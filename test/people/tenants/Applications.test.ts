/** Applications over HTTP: created, listed, renamed, deleted; their keys and bounds. */
import { describe, expect } from "@effect/vitest"
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Fiber, TestClock } from "effect"
import { application, ask, join, person, refresh, scene, sql } from "../auth/World.ts"
import type { Person } from "../auth/World.ts"
import type { AccountId, ApplicationId, TenantId } from "../../../src/kernel/Ids.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { Sessions } from "../../../src/people/auth/Sessions.ts"
import { Applications } from "../../../src/people/tenants/Applications.ts"
import * as TestDatabase from "../../support/database.ts"

const notFound = { status: 404, body: { error: "application not found", code: "application_not_found" } }

describe("applications", () => {
  scene(
    "are made with a key that is shown once",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const at = `/v1/tenants/${ada.tenant_id}/applications`
      const made = yield* ask("POST", at, { token: ada.token, json: { name: "Robot", description: "It calls." } })
      expect(made.status).toBe(201)
      const { api_key, ...record } = made.body.result
      expect(api_key).toMatch(/^svc-prod-[0-9a-f]{64}$/)
      expect(record).toEqual({
        id: expect.stringMatching(/^app_/),
        name: "Robot",
        description: "It calls.",
        account_id: ada.account_id,
        key_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
        key_prefix: api_key.slice(0, 13),
        last_used_at: null,
        created_at: "2026-03-01T10:00:00.000Z",
        updated_at: "2026-03-01T10:00:00.000Z"
      })
      expect(yield* ask("GET", `${at}/${record.id}`, { token: ada.token })).toEqual({
        status: 200,
        body: { msg: "ok", result: record }
      })
      expect(yield* ask("GET", at, { token: ada.token })).toEqual({
        status: 200,
        body: { msg: "ok", result: { page: 1, per_page: 50, total_pages: 1, total_records: 1, records: [record] } }
      })
    })
  )

  scene(
    "number 1,000 at most for a member of a tenant: one more is refused, by a second request at once too",
    Effect.gen(function* () {
      const [ada, bob] = [yield* person("ada@example.com"), yield* person("bob@example.com")]
      const { create, remove } = yield* Applications
      const caller = (of: Person) => ({
        account_id: of.account_id as AccountId,
        tenant_id: ada.tenant_id as TenantId
      })
      const make = (who: Person) => create({ caller: caller(who), application: { name: "one", description: "" } })
      const [first] = yield* Effect.all(Array.from({ length: 999 }, () => make(ada)))
      const both = yield* Effect.all([Effect.either(make(ada)), Effect.either(make(ada))], { concurrency: 2 })
      expect(both.map(({ _tag }) => _tag).toSorted()).toEqual(["Left", "Right"])
      const at = `/v1/tenants/${ada.tenant_id}/applications`
      for (const limit of [{}, { spending_limit_usd: 5 }]) {
        const refused = yield* ask("POST", at, { token: ada.token, json: { name: "one", ...limit } })
        expect([refused.status, refused.body.code]).toEqual([409, "too_many_applications"])
      }
      expect((yield* make(bob)).name).toBe("one")
      yield* remove({ caller: caller(ada), application_id: first!.id })
      expect((yield* ask("POST", at, { token: ada.token, json: { name: "one" } })).status).toBe(201)
    })
  )

  scene(
    "whose sign-in has ended do not count, and are deleted when the member makes another",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { create } = yield* Applications
      const { begin, end } = yield* Sessions
      const member = { account_id: ada.account_id as AccountId, tenant_id: ada.tenant_id as TenantId }
      const rows = Effect.map(
        sql<{ n: number }>("SELECT count(*) AS n FROM tollgate_tenants_applications"),
        ([row]) => row!.n
      )
      const limits = Effect.map(
        sql<{ n: number }>("SELECT count(*) AS n FROM tollgate_ledger_budgets"),
        ([row]) => row!.n
      )
      const sign_in = yield* begin({ ...member, client_id: "robot", team_first: true, grant: "all" })
      const application = { name: "robot's", description: "", spending_limit_usd: 5n }
      for (let i = 0; i < 30; i++) {
        yield* create({ caller: { ...member, oauth_client: "robot", sign_in }, application })
      }
      expect([yield* rows, yield* limits]).toEqual([30, 30])
      yield* end(member.account_id, sign_in)
      yield* create({ caller: member, application: { name: "own", description: "" } })
      expect([yield* rows, yield* limits]).toEqual([11, 10])
      yield* create({ caller: member, application: { name: "own", description: "" } })
      expect([yield* rows, yield* limits]).toEqual([2, 0])
    })
  )

  scene(
    "are listed by page, newest first",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const bob = yield* person("bob@example.com")
      yield* application(bob, "not ada's")
      for (const name of ["1", "2", "3", "4", "5"]) {
        yield* application(ada, name)
        yield* TestClock.adjust("1 second")
      }
      const list = (query: string) =>
        Effect.map(
          ask("GET", `/v1/tenants/${ada.tenant_id}/applications?${query}`, { token: ada.token }),
          ({ body, status }) => (status === 200 ? body.result : status)
        )
      const names = (page: { readonly records: ReadonlyArray<{ readonly name: string }> }) =>
        page.records.map(({ name }) => name)
      const first = yield* list("per_page=2")
      expect([names(first), first.total_pages, first.total_records]).toEqual([["5", "4"], 3, 5])
      expect(names(yield* list("per_page=2&page=3"))).toEqual(["1"])
      expect(names(yield* list("per_page=2&page=4"))).toEqual([])
      expect((yield* list("per_page=1000")).per_page).toBe(200)
      for (const bad of ["page=0", "page=-1", "page=x", "per_page=0", "per_page=1.5", "page="]) {
        expect([bad, yield* list(bad)]).toEqual([bad, 400])
      }
    })
  )

  scene(
    "are renamed and deleted",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const app = yield* application(ada, "old")
      const at = `/v1/tenants/${ada.tenant_id}/applications/${app.id}`
      yield* TestClock.adjust("1 second")
      const change = (json: unknown) => ask("PATCH", at, { token: ada.token, json })
      expect(yield* change({ name: "new" })).toMatchObject({
        status: 200,
        body: { result: { name: "new", description: "", updated_at: "2026-03-01T10:00:01.000Z" } }
      })
      expect(yield* change({ description: "what it does" })).toMatchObject({
        status: 200,
        body: { result: { name: "new", description: "what it does" } }
      })
      expect(yield* change({ description: "" })).toMatchObject({ body: { result: { name: "new", description: "" } } })
      expect(yield* change({})).toMatchObject({ status: 200, body: { result: { name: "new" } } })
      const gone = yield* ask("DELETE", at, { token: ada.token })
      expect(gone).toMatchObject({ status: 200, body: { msg: "ok", result: { id: app.id, name: "new" } } })
      expect(gone.body.result).not.toHaveProperty("api_key")
      for (const method of ["GET", "DELETE"]) expect(yield* ask(method, at, { token: ada.token })).toEqual(notFound)
      expect(yield* change({ name: "x" })).toEqual(notFound)
    })
  )

  scene(
    "have a name of 1 to 100 characters and a description of up to 1000",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const at = `/v1/tenants/${ada.tenant_id}/applications`
      const app = yield* application(ada)
      const bad: ReadonlyArray<readonly [object, string]> = [
        [{ name: "" }, "name"],
        [{ name: "   " }, "name"],
        [{ name: "x".repeat(101) }, "name"],
        [{ name: 5 }, "name"],
        [{ name: null }, "name"],
        [{ name: "x", description: "x".repeat(1001) }, "description"],
        [{ name: "x", description: 5 }, "description"]
      ]
      for (const [json, field] of bad) {
        const refused = {
          status: 400,
          body: { error: expect.any(String), code: "invalid_request", details: { field, rule: expect.any(String) } }
        }
        expect([json, yield* ask("POST", at, { token: ada.token, json })]).toEqual([json, refused])
        expect([json, yield* ask("PATCH", `${at}/${app.id}`, { token: ada.token, json })]).toEqual([json, refused])
      }
      expect(yield* ask("POST", at, { token: ada.token, json: {} })).toMatchObject({
        status: 400,
        body: { code: "invalid_request", details: { field: "name" } }
      })
      const longest = { name: "x".repeat(100), description: "x".repeat(1000) }
      expect(yield* ask("POST", at, { token: ada.token, json: longest })).toMatchObject({ status: 201 })
    })
  )

  scene(
    "belong to the token's tenant only",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const bob = yield* person("bob@example.com")
      const app = yield* application(bob)
      const mismatch = {
        status: 403,
        body: { error: "tenant ID in path does not match authenticated tenant" }
      }
      const at = `/v1/tenants/${bob.tenant_id}/applications`
      const { token } = ada
      expect(yield* ask("POST", at, { token, json: { name: "x" } })).toEqual(mismatch)
      expect(yield* ask("GET", at, { token })).toEqual(mismatch)
      expect(yield* ask("GET", `${at}/${app.id}`, { token })).toEqual(mismatch)
      expect(yield* ask("PATCH", `${at}/${app.id}`, { token, json: { name: "x" } })).toEqual(mismatch)
      expect(yield* ask("DELETE", `${at}/${app.id}`, { token })).toEqual(mismatch)
      // An application is not found under another tenant.
      expect(yield* ask("GET", `/v1/tenants/${ada.tenant_id}/applications/${app.id}`, { token })).toEqual(notFound)
      expect(yield* ask("DELETE", `/v1/tenants/${ada.tenant_id}/applications/${app.id}`, { token })).toEqual(notFound)
    })
  )
})

describe("in a shared tenant", () => {
  const insufficient = {
    status: 403,
    body: { error: "your role in this tenant does not allow this request", code: "insufficient_role" }
  }

  scene(
    "a member reaches their own keys, owners and admins reach all",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const at = `/v1/tenants/${ada.tenant_id}/applications`
      const inTenant = (of: Person, role: string) =>
        Effect.gen(function* () {
          yield* join(of.account_id, ada.tenant_id, "active", role)
          const { body } = yield* refresh(of.refresh_token, { tenant_id: ada.tenant_id })
          return { ...of, tenant_id: ada.tenant_id, token: body.result.access_token as string }
        })
      const bob = yield* inTenant(yield* person("bob@example.com"), "member")
      const admin = yield* inTenant(yield* person("grace@example.com"), "admin")
      const adas = yield* application(ada, "ada's")
      yield* TestClock.adjust("1 second")
      const bobs = yield* application(bob, "bob's")
      const listed = (by: Person) =>
        Effect.map(ask("GET", at, { token: by.token }), ({ body }) => [
          body.result.total_records,
          body.result.records.map(({ id }: { readonly id: string }) => id)
        ])
      expect(yield* listed(bob)).toEqual([1, [bobs.id]])
      expect(yield* listed(ada)).toEqual([2, [bobs.id, adas.id]])
      expect(yield* listed(admin)).toEqual([2, [bobs.id, adas.id]])

      for (const [method, json] of [["GET"], ["PATCH", { name: "mine" }], ["DELETE"]] as const) {
        const options = json === undefined ? {} : { json }
        expect([method, yield* ask(method, `${at}/${adas.id}`, { token: bob.token, ...options })]).toEqual([
          method,
          insufficient
        ])
        expect(yield* ask(method, `${at}/app_none`, { token: bob.token, ...options })).toEqual(notFound)
      }
      expect((yield* ask("GET", `${at}/${adas.id}`, { token: ada.token })).body.result.name).toBe("ada's")
      expect((yield* ask("PATCH", `${at}/${bobs.id}`, { token: bob.token, json: { name: "new" } })).status).toBe(200)
      expect((yield* ask("PATCH", `${at}/${adas.id}`, { token: admin.token, json: { name: "new" } })).status).toBe(200)
      expect((yield* ask("DELETE", `${at}/${bobs.id}`, { token: bob.token })).status).toBe(200)
      expect((yield* ask("DELETE", `${at}/${adas.id}`, { token: admin.token })).status).toBe(200)
    })
  )
})

describe("limits that an owner or admin has set on a member's key", () => {
  const insufficient = {
    status: 403,
    body: { error: "an owner or admin set this limit; only they may raise or remove it", code: "insufficient_role" }
  }

  scene(
    "are made stricter by the member, and raised or lifted by owners and admins only",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const bob = yield* person("bob@example.com")
      yield* join(bob.account_id, ada.tenant_id)
      const { body } = yield* refresh(bob.refresh_token, { tenant_id: ada.tenant_id })
      const token = body.result.access_token as string
      const { id } = yield* application({ ...bob, tenant_id: ada.tenant_id, token })
      const change = (by: string, json: object) =>
        ask("PATCH", `/v1/tenants/${ada.tenant_id}/applications/${id}`, { token: by, json })
      const may = (json: object) =>
        Effect.map(change(token, json), (answer) => expect([json, answer]).toMatchObject([json, { status: 200 }]))
      const mayNot = (json: object) =>
        Effect.map(change(token, json), (answer) => expect([json, answer]).toEqual([json, insufficient]))

      // A member may loosen their own limits.
      yield* may({ spending_limit_usd: 1, expires_at: "2026-05-01T00:00:00Z", allowed_models: ["small"] })
      yield* may({ spending_limit_usd: null, expires_at: null, allowed_models: null })

      yield* change(ada.token, { spending_limit_usd: 10, spending_limit_period: "month" })
      yield* mayNot({ spending_limit_usd: 10.000000001 })
      yield* mayNot({ spending_limit_usd: null })
      yield* mayNot({ name: "x", spending_limit_usd: 11, spending_limit_period: "month" })
      yield* may({ spending_limit_usd: 4 })
      // The member changes their own limits within the manager's limits.
      yield* may({ spending_limit_usd: 10 })
      yield* may({ spending_limit_period: "total" })
      yield* mayNot({ spending_limit_usd: 11 })
      yield* may({ expires_at: "2026-05-01T00:00:00Z", name: "y" })
      yield* may({ expires_at: null })

      yield* change(ada.token, { expires_at: "2026-04-01T00:00:00Z", spending_limit_period: "total" })
      yield* mayNot({ expires_at: "2026-04-01T00:00:01Z" })
      yield* mayNot({ expires_at: null })
      yield* may({ expires_at: "2026-03-20T00:00:00Z" })
      yield* mayNot({ spending_limit_period: "month" })

      yield* change(ada.token, { allowed_models: ["small", "large"] })
      yield* mayNot({ allowed_models: null })
      yield* mayNot({ allowed_models: ["small", "huge"] })
      yield* may({ allowed_models: ["small"] })
      const shown = yield* change(token, { name: "z" })
      expect(shown.body.result).toMatchObject({ name: "z", spending_limit_usd: 10, allowed_models: ["small"] })

      yield* change(ada.token, { tags: { cost_center: "7" } })
      yield* mayNot({ tags: null })
      yield* mayNot({ tags: { cost_center: "8" } })
      yield* may({ tags: { cost_center: "7", project: "x" } })

      // A manager who removes a limit gives it back to the member.
      yield* change(ada.token, { spending_limit_usd: null, expires_at: null, allowed_models: null, tags: null })
      yield* may({ tags: { project: "x" } })
      yield* may({ spending_limit_usd: 100, allowed_models: ["huge"], expires_at: "2027-01-01T00:00:00Z" })
      yield* change(ada.token, { spending_limit_usd: 1 })
      yield* mayNot({ spending_limit_usd: 2 })
      // A member who has become an admin removes them.
      yield* sql("UPDATE tollgate_tenants_memberships SET role = 'admin' WHERE account_id = ?", [bob.account_id])
      yield* may({ spending_limit_usd: 2 })
    })
  )
})

/** Lets this many steps of a deletion happen: steps of fibers, or of the event loop on PostgreSQL. */
const moments = (steps: number) =>
  TestDatabase.isPostgres
    ? Effect.promise(async () => {
        for (let i = 0; i < steps * steps; i++) await new Promise(setImmediate)
      })
    : Effect.forEach(Array.from({ length: steps }), () => Effect.yieldNow(), { discard: true })

describe("a key whose deletion is interrupted", () => {
  scene(
    "ends at once, or stays",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const caller = { account_id: ada.account_id as AccountId, tenant_id: ada.tenant_id as TenantId }
      const applications = yield* Applications
      const sql = yield* SqlClient
      const { submit } = yield* Writer
      const ends = new Set<string>()
      for (let steps = 0; steps < 60; steps++) {
        const { api_key, id } = yield* applications.create({
          caller,
          application: { name: `${steps}`, description: "" }
        })
        expect(yield* applications.callerOf(api_key)).toMatchObject({ application_id: id })
        const deleting = yield* Effect.fork(applications.remove({ caller, application_id: id as ApplicationId }))
        yield* moments(steps)
        const left = yield* Fiber.interrupt(deleting)
        // After everything that was submitted.
        yield* submit({ postings: [], statements: [] })
        const rows = yield* sql`SELECT 1 FROM tollgate_tenants_applications WHERE id = ${id}`
        const works = (yield* applications.callerOf(api_key)) !== undefined
        expect([steps, works]).toEqual([steps, rows.length > 0])
        ends.add(`${left._tag} ${works}`)
      }
      expect([...ends].toSorted()).toEqual(["Failure false", "Failure true", "Success false"])
    })
  )
})
