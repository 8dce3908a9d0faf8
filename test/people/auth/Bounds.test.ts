/** The number of rows that sign-ins, refresh tokens and codes of one account may keep. */
import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect } from "@effect/vitest"
import { Duration, Effect, TestClock } from "effect"
import type { AccountId, TenantId } from "../../../src/kernel/Ids.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import * as Codes from "../../../src/people/auth/Codes.ts"
import * as Devices from "../../../src/people/auth/Devices.ts"
import { Sessions } from "../../../src/people/auth/Sessions.ts"
import type { SignIn } from "../../../src/people/auth/Sessions.ts"
import { Clients } from "../../../src/people/credentials/Clients.ts"
import { Applications } from "../../../src/people/tenants/Applications.ts"
import { DeploymentSecret } from "../../../src/storage/secret/DeploymentSecret.ts"
import { ask, client_id, person, refresh, scene, signIn, sql } from "./World.ts"
import type { Answer, Person } from "./World.ts"

const countOf = (table: string, where = "1 = 1") =>
  Effect.map(sql<{ n: number }>(`SELECT count(*) AS n FROM ${table} WHERE ${where}`), ([row]) => row!.n)
const signIns = countOf("tollgate_auth_families")
const refreshTokens = countOf("tollgate_auth_refresh_tokens")

const signInOf = ({ account_id, tenant_id }: Person, more: Partial<SignIn> = {}): SignIn => ({
  account_id: account_id as AccountId,
  tenant_id: tenant_id as TenantId,
  client_id,
  team_first: false,
  grant: "all",
  ...more
})

const next = (answer: Answer): string => answer.body.result.refresh_token
const statusOf = (token: string) => Effect.map(ask("GET", "/v1/me", { token }), ({ status }) => status)

describe("sign-ins of an account", () => {
  scene(
    "number 1,000 at most: one more ends the oldest, and none of another account",
    Effect.gen(function* () {
      const [ada, bob] = [yield* person("ada@example.com"), yield* person("bob@example.com")]
      const { begin, open } = yield* Sessions
      for (let i = 0; i < 998; i++) {
        if (i === 500) yield* TestClock.adjust("1 second")
        yield* begin(signInOf(ada))
      }
      yield* TestClock.adjust("1 second")
      const last = yield* open(signInOf(ada))
      expect([
        yield* countOf("tollgate_auth_families", `account_id = '${ada.account_id}'`),
        yield* statusOf(ada.token)
      ]).toEqual([1000, 200])
      // The first 501 sign-ins began in the same second: any of them may be the oldest.
      for (let i = 0; i < 501; i++) yield* begin(signInOf(ada))
      expect(yield* countOf("tollgate_auth_families", `account_id = '${ada.account_id}'`)).toBe(1000)
      expect([yield* statusOf(ada.token), (yield* refresh(ada.refresh_token)).status]).toEqual([401, 401])
      expect([yield* statusOf(last.access_token), yield* statusOf(bob.token)]).toEqual([200, 200])
      expect((yield* refresh(bob.refresh_token)).status).toBe(200)
    })
  )

  scene(
    "do not push out an application's sign-in that holds an API key, however new it is",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { begin } = yield* Sessions
      const holder = yield* begin(signInOf(ada, { client_id: "robot", team_first: true }))
      const idle = yield* begin(signInOf(ada, { client_id: "robot", team_first: true }))
      const { callerOf, create } = yield* Applications
      const { api_key } = yield* create({
        caller: { ...signInOf(ada), oauth_client: "robot", sign_in: holder },
        application: { name: "key", description: "" }
      })
      yield* TestClock.adjust("1 second")
      for (let i = 0; i < 1000; i++) yield* begin(signInOf(ada))
      yield* TestClock.adjust("2 minutes")
      const { isLive } = yield* Sessions
      expect([yield* isLive(holder), yield* isLive(idle)]).toEqual([true, false])
      expect((yield* callerOf(api_key))?.account_id).toBe(ada.account_id)
      expect(yield* signIns).toBe(1001)
    })
  )

  scene(
    "leave no rows after each way to end",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const ends = {
        revoked: (of: Person) => ask("POST", "/v1/auth/revoke", { json: { token: of.refresh_token } }),
        "refreshed twice": (of: Person) => Effect.zipRight(refresh(of.refresh_token), refresh(of.refresh_token)),
        "all ended": (of: Person) =>
          Effect.flatMap(Sessions, ({ endAll }) => endAll(of.account_id as AccountId, () => [])),
        "its client revoked": () =>
          Effect.gen(function* () {
            const { create, revoke } = yield* Clients
            const { client_id } = yield* create({ kind: "oauth", name: "Robot", redirect_uris: [] })
            yield* (yield* Sessions).open(signInOf(ada, { client_id }))
            yield* revoke(client_id)
            yield* (yield* Sessions).endAll(ada.account_id as AccountId, () => [])
          })
      }
      for (const [name, end] of Object.entries(ends)) {
        yield* end(yield* person("ada@example.com"))
        yield* ask("POST", "/v1/auth/revoke", { json: { token: ada.refresh_token } })
        expect([name, yield* signIns, yield* refreshTokens]).toEqual([name, 0, 0])
      }
    })
  )

  scene(
    "are deleted at the account's next sign-in once they are too old to be refreshed, unless they hold a key",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { begin } = yield* Sessions
      const holder = yield* begin(signInOf(ada, { client_id: "robot", team_first: true }))
      const { callerOf, create } = yield* Applications
      const { api_key } = yield* create({
        caller: { ...signInOf(ada), oauth_client: "robot", sign_in: holder },
        application: { name: "key", description: "" }
      })
      yield* person("bob@example.com")
      yield* TestClock.adjust("90 days")
      yield* signIn("ada@example.com")
      expect(yield* signIns).toBe(4)
      yield* TestClock.adjust("2 days")
      yield* signIn("ada@example.com")
      // Bob's, the two newest of Ada's, and the holder of the key.
      expect([yield* signIns, (yield* callerOf(api_key))?.account_id]).toEqual([4, ada.account_id])
      for (let i = 0; i < 1000; i++) yield* begin(signInOf(ada))
      yield* TestClock.adjust("2 minutes")
      expect((yield* callerOf(api_key))?.account_id).toBe(ada.account_id)
    })
  )
})

describe("refresh tokens", () => {
  scene(
    "keep one row for each sign-in, however often it is refreshed; a used one still ends it",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      let token = ada.refresh_token
      for (let i = 0; i < 20; i++) token = next(yield* refresh(token))
      expect(yield* refreshTokens).toBe(1)
      expect((yield* refresh(ada.refresh_token)).status).toBe(401)
      expect([(yield* refresh(token)).status, yield* signIns]).toEqual([401, 0])
    })
  )

  scene(
    "that only name a sign-in end nothing",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const [row] = yield* sql<{ id: string }>("SELECT id FROM tollgate_auth_families")
      const forged = [
        ada.refresh_token.slice(0, -1) + (ada.refresh_token.endsWith("0") ? "1" : "0"),
        `rt_${row!.id}_${"0".repeat(96)}`,
        `rt_${row!.id}_`
      ]
      for (const token of forged) {
        expect((yield* refresh(token)).status).toBe(401)
        yield* ask("POST", "/v1/auth/revoke", { json: { token } })
      }
      expect((yield* refresh(ada.refresh_token)).status).toBe(200)
    })
  )

  scene(
    "of an earlier version work once, and end their sign-in when they come back",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { hash } = yield* DeploymentSecret
      const old = `rt_${"0".repeat(64)}`
      yield* sql("UPDATE tollgate_auth_refresh_tokens SET hash = ?", [hash("refresh_token", old)])
      const answer = yield* refresh(old)
      expect(answer.status).toBe(200)
      const third = next(yield* refresh(next(answer)))
      expect((yield* refresh(old)).status).toBe(401)
      expect([(yield* refresh(third)).status, yield* statusOf(ada.token)]).toEqual([401, 401])
    })
  )
})

describe("authorization codes", () => {
  scene(
    "number 100 an account at most: one more voids the oldest",
    Effect.gen(function* () {
      const [ada, bob] = [yield* person("ada@example.com"), yield* person("bob@example.com")]
      const codes = Codes.make(yield* SqlClient, yield* Writer, yield* DeploymentSecret)
      const issue = (of: Person) =>
        Effect.zipRight(
          TestClock.adjust("1 millis"),
          codes.issue(signInOf(of), {
            client: { client_id: "robot", kind: "oauth", name: "Robot", redirect_uris: [] },
            redirect_uri: "http://127.0.0.1/",
            scope: "",
            grant: ["profile"],
            state: undefined,
            nonce: undefined,
            challenge: "x"
          })
        )
      const [of, first, second] = [yield* issue(bob), yield* issue(ada), yield* issue(ada)]
      for (let i = 0; i < 99; i++) yield* issue(ada)
      expect(yield* countOf("tollgate_auth_codes", `account_id = '${ada.account_id}'`)).toBe(100)
      expect([yield* codes.find(first), (yield* codes.find(second))?.account_id]).toEqual([undefined, ada.account_id])
      expect((yield* codes.find(of))?.account_id).toBe(bob.account_id)
    })
  )
})

describe("device codes", () => {
  scene(
    "that gave no sign-in are deleted ten minutes after they expire, used ones an hour after",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const devices = Devices.make(yield* SqlClient, yield* Writer, yield* DeploymentSecret)
      const begin = devices.begin("robot", ["profile"])
      const used = yield* begin
      const unused = yield* begin
      const row = (yield* devices.find(used.device_code))!
      yield* (yield* Writer).submit({ postings: [], statements: [devices.spend(row, "fam_x", row.expires_at - 1)] })
      const known = Effect.map(Effect.all([devices.find(used.device_code), devices.find(unused.device_code)]), (rows) =>
        rows.map((row) => row !== undefined)
      )
      yield* TestClock.adjust(Duration.minutes(19))
      yield* begin
      expect([ada.account_id !== "", yield* known]).toEqual([true, [true, true]])
      yield* TestClock.adjust(Duration.minutes(2))
      yield* begin
      expect(yield* known).toEqual([true, false])
      yield* TestClock.adjust(Duration.minutes(50))
      yield* begin
      expect(yield* known).toEqual([false, false])
    })
  )
})
