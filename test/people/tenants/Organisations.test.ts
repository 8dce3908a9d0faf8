/** Organisations without HTTP, with letters that the test reads. */
import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer, TestClock } from "effect"
import * as DeploymentSecret from "../../../src/storage/secret/DeploymentSecret.ts"
import { ServiceInfo } from "../../../src/kernel/ServiceInfo.ts"
import { Outbox } from "../../../src/people/mail/Outbox.ts"
import type { Letter } from "../../../src/people/mail/Outbox.ts"
import { PriceList } from "../../../src/books/prices/PriceList.ts"
import { Belonging } from "../../../src/people/tenants/Belonging.ts"
import { Organisations } from "../../../src/people/tenants/Organisations.ts"
import { Tenants } from "../../../src/people/tenants/Tenants.ts"
import * as TestDatabase from "../../support/database.ts"

/** The letters in the order of writing. */
class Letters extends Context.Tag("test/Letters")<Letters, Array<Letter>>() {}

const mailbox = Layer.effect(
  Outbox,
  Effect.map(Letters, (letters) => {
    const written = (letter: Letter) =>
      Effect.sync(() => {
        letters.push(letter)
        return { text: "SELECT 1", params: [] }
      })
    return {
      letter: written,
      requiredLetter: written,
      room: () => Effect.void,
      wake: Effect.void,
      post: () => Effect.dieMessage("nothing is posted here"),
      jobs: []
    }
  })
)

const rooms = Organisations.layer.pipe(
  Layer.provideMerge(mailbox),
  Layer.provideMerge(Tenants.layer),
  Layer.provideMerge(Layer.mergeAll(Belonging.layer, PriceList.layerNone, TestDatabase.writer)),
  Layer.provideMerge(
    ServiceInfo.layer({ service_name: "Tollgate", key_prefix: "svc", public_url: "https://tollgate.example" })
  ),
  Layer.provideMerge(DeploymentSecret.layer(new Uint8Array(32).fill(1))),
  Layer.provideMerge(Layer.sync(Letters, () => [])),
  Layer.provideMerge(TestDatabase.sql)
)

const person = (name: string) =>
  Effect.flatMap(Tenants, ({ welcome }) =>
    welcome({ provider: "google", subject: name, email: `${name}@example.com`, email_verified: true, name })
  )

const tokenOf = ({ text }: Letter) => /\/invites\/(\S+)/.exec(text)![1]!

describe("an organisation", () => {
  it.effect("is created, joined by letter up to its seats, and left by all but its last owner", () =>
    Effect.gen(function* () {
      const organisations = yield* Organisations
      const letters = yield* Letters
      const [ada, bob, cyd] = yield* Effect.all([person("ada"), person("bob"), person("cyd")])
      const { id: tenant_id } = yield* organisations.create({ caller: ada, name: " Engines " })
      yield* organisations.setPlan({ caller: ada, tenant_id, plan: { plan: "team", seats: 2 } })
      for (const name of ["bob", "cyd"]) {
        yield* organisations.invite({
          caller: ada,
          tenant_id,
          invite: { email: `${name}@example.com`, role: "member" }
        })
      }
      const [forBob, forCyd] = letters.map(tokenOf)
      expect(yield* organisations.accept({ caller: bob, token: forBob! })).toMatchObject({
        tenant_id,
        tenant_name: "Engines",
        role: "member",
        plan: { status: "active", seats: 2 }
      })
      expect(yield* Effect.flip(organisations.accept({ caller: cyd, token: forBob! }))).toMatchObject({
        _tag: "EmailMismatch"
      })
      expect(yield* Effect.flip(organisations.accept({ caller: cyd, token: forCyd! }))).toMatchObject({
        _tag: "TeamFull",
        tenant_id,
        seats: 2,
        members: 2
      })
      expect(yield* Effect.flip(organisations.invites({ caller: bob, tenant_id }))).toMatchObject({
        _tag: "InsufficientRole",
        tenant_id
      })
      expect(yield* Effect.flip(organisations.members({ caller: cyd, tenant_id }))).toMatchObject({
        _tag: "NotAMember",
        tenant_id
      })
      const { account_id } = ada
      const leave = { status: "removed" } as const
      expect(
        yield* Effect.flip(organisations.change({ caller: ada, tenant_id, account_id, change: leave }))
      ).toMatchObject({ _tag: "LastOwner", tenant_id })
      yield* organisations.change({ caller: ada, tenant_id, account_id: bob.account_id, change: { role: "owner" } })
      yield* organisations.change({ caller: ada, tenant_id, account_id, change: leave })
      const members = yield* organisations.members({ caller: bob, tenant_id })
      expect(members.map(({ name, role }) => [name, role])).toEqual([["bob", "owner"]])
    }).pipe(Effect.provide(rooms))
  )

  it.effect("takes back the invitations of a member who may not give their role any more", () =>
    Effect.gen(function* () {
      const organisations = yield* Organisations
      const [ada, bob] = [yield* person("ada"), yield* person("bob")]
      const letters = yield* Letters
      const { id: tenant_id } = yield* organisations.create({ caller: ada, name: "Engines" })
      const invite = (caller: typeof ada, name: string, role: "owner" | "admin" | "member") =>
        organisations.invite({ caller, tenant_id, invite: { email: `${name}@example.com`, role } })
      const change = (change: { role?: "admin" | "member"; status?: "active" | "suspended" | "removed" }) =>
        organisations.change({ caller: ada, tenant_id, account_id: bob.account_id, change })
      const pending = Effect.map(organisations.invites({ caller: ada, tenant_id }), (all) =>
        all
          .filter(({ status }) => status === "pending")
          .map(({ email }) => email)
          .toSorted()
      )

      yield* invite(ada, "bob", "owner")
      yield* organisations.accept({ caller: bob, token: tokenOf(letters[0]!) })
      yield* invite(ada, "carol", "admin")
      yield* invite(bob, "one", "owner")
      yield* invite(bob, "two", "admin")
      yield* change({ role: "admin" })
      expect(yield* pending).toEqual(["carol@example.com", "two@example.com"])
      yield* change({ status: "suspended" })
      expect(yield* pending).toEqual(["carol@example.com"])
      yield* change({ status: "active" })
      yield* invite(bob, "three", "member")
      yield* change({ status: "removed" })
      expect(yield* pending).toEqual(["carol@example.com"])
    }).pipe(Effect.provide(rooms))
  )

  it.effect("keeps its 500 newest ended memberships, and those of another", () =>
    Effect.gen(function* () {
      const organisations = yield* Organisations
      const sql = yield* SqlClient
      const letters = yield* Letters
      const [ada, bob] = [yield* person("ada"), yield* person("bob")]
      const { id: tenant_id } = yield* organisations.create({ caller: ada, name: "Engines" })
      const { id: other } = yield* organisations.create({ caller: ada, name: "Others" })
      yield* organisations.invite({ caller: ada, tenant_id, invite: { email: "bob@example.com", role: "member" } })
      yield* organisations.accept({ caller: bob, token: tokenOf(letters[0]!) })
      const ended = (tenant: string, count: number) =>
        Array.from({ length: count }, (_, i) => ({
          account_id: `acc_${tenant}_${String(i).padStart(4, "0")}`,
          tenant_id: tenant,
          role: "member",
          status: "removed",
          created_at: 0,
          // Long before the clock of this test.
          updated_at: i - 10_000
        }))
      yield* sql`INSERT INTO tollgate_tenants_memberships ${sql.insert([...ended(tenant_id, 600), ...ended(other, 600)])}`
      const change = { status: "removed" } as const
      yield* organisations.change({ caller: ada, tenant_id, account_id: bob.account_id, change })
      const kept = yield* sql<{ tenant_id: string; status: string; n: number; first: number }>`
        SELECT tenant_id, status, count(*) AS n, min(updated_at) AS first FROM tollgate_tenants_memberships
        WHERE ${sql.in("tenant_id", [tenant_id, other])} GROUP BY tenant_id, status`
      const of = (tenant: string, status: string) =>
        kept.find((row) => row.tenant_id === tenant && row.status === status)
      expect(of(tenant_id, "removed")).toMatchObject({ n: 500, first: 101 - 10_000 })
      expect(of(tenant_id, "active")).toMatchObject({ n: 1 })
      expect(of(other, "removed")).toMatchObject({ n: 600 })
    }).pipe(Effect.provide(rooms))
  )

  it.effect("keeps its 500 newest invitations, and the open ones", () =>
    Effect.gen(function* () {
      const organisations = yield* Organisations
      const sql = yield* SqlClient
      const ada = yield* person("ada")
      const { id: tenant_id } = yield* organisations.create({ caller: ada, name: "Engines" })
      const invite = (name: string) =>
        organisations.invite({
          caller: ada,
          tenant_id,
          invite: { email: `${name}@example.com`, role: "member" }
        })
      const count = Effect.map(
        sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_tenants_invites`,
        ([row]) => row!.n
      )
      yield* invite("first")
      // Each invitation revokes the previous one.
      for (let i = 0; i < 510; i++) {
        yield* TestClock.adjust("1 millis")
        yield* invite("bob")
      }
      expect(yield* count).toBe(501)
      const letters = yield* Letters
      expect((yield* organisations.previewInvite({ token: tokenOf(letters[0]!) })).status).toBe("pending")
      expect(yield* Effect.flip(organisations.previewInvite({ token: tokenOf(letters[1]!) }))).toMatchObject({
        _tag: "InviteNotFound"
      })
      yield* TestClock.adjust("15 days")
      yield* invite("bob")
      expect(yield* count).toBe(500)
    }).pipe(Effect.provide(rooms))
  )
})
