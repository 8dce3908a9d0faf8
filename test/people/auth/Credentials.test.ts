/** From an `Authorization` header to a caller: every text of the specification, and the lifetime of cached callers. */
import { describe, expect } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import { generateKeyPair, SignJWT } from "jose"
import { Credentials } from "../../../src/people/auth/Credentials.ts"
import type { Caller } from "../../../src/kernel/Caller.ts"
import type { ProblemBody } from "../../../src/kernel/Problem.ts"
import * as TestDatabase from "../../support/database.ts"
import * as World from "./World.ts"
import { application, ask, person, scene } from "./World.ts"

const missing = "missing Authorization header"
const token = "invalid or expired token"
const format = "invalid API key format"
const key = "invalid API key"
const foreign = "API key is not a Tollbooth key"

const hex = "0123456789abcdef".repeat(4)

/** A header, and the refusals of routes for user tokens, for both, and for keys; `null` admits the caller. */
const table: ReadonlyArray<
  readonly [header: string | undefined, user: string | null, either: string | null, key: string | null]
> = [
  [undefined, missing, missing, missing],
  ["", missing, missing, missing],
  ["Bearer", token, format, format],
  ["Bearer ", token, format, format],
  ["Basic dXNlcjpwYXNz", token, format, format],
  ["Bearer two words", token, format, format],
  ["<key>", token, format, format],
  ["Bearer <key>", token, null, null],
  ["bearer <key>", token, null, null],
  ["BEARER   <key> ", token, null, null],
  ["Bearer <token>", null, null, format],
  ["bearer <token>", null, null, format],
  ["Bearer <forged>", token, format, format],
  ["Bearer <expired>", token, format, format],
  ["Bearer <refresh>", token, format, format],
  ["Bearer a.b.c", token, format, format],
  ["Bearer nonsense", token, format, format],
  [`Bearer svc-prod-${hex}`, token, key, key],
  ["Bearer svc-prod-short", token, key, key],
  [`Bearer svc-prod-${hex}0`, token, key, key],
  [`Bearer svc-prod-${hex}-more`, token, format, format],
  ["Bearer svc-prod", token, format, format],
  ["Bearer svc-prod-", token, format, format],
  [`Bearer ${hex}`, token, format, format],
  [`Bearer svc-prod-${hex}.`, token, format, format],
  [`Bearer sk-prod-${hex}`, token, foreign, foreign],
  ["Bearer sk-proj-abc", token, foreign, foreign],
  [`Bearer SVC-prod-${hex}`, token, foreign, foreign],
  ["Bearer sk-abc", token, format, format]
]

/** The text of a refusal, or the kind of credential. */
const outcomes = (header: string | undefined) =>
  Effect.gen(function* () {
    const { apiKey, keyOrToken, userToken } = yield* Credentials
    // None of these refusals has a code.
    const told = (read: Effect.Effect<Caller, { readonly body: ProblemBody }>) =>
      Effect.match(read, { onFailure: ({ body }) => ("code" in body ? body : body.error), onSuccess: () => null })
    return [yield* told(userToken(header, "profile")), yield* told(keyOrToken(header)), yield* told(apiKey(header))]
  })

describe("a credential", () => {
  scene(
    "is refused with the texts of the specification",
    Effect.gen(function* () {
      const old = yield* person("ada@example.com")
      yield* TestClock.adjust("61 minutes")
      const ada = yield* person("ada@example.com")
      const { api_key } = yield* application(ada)
      const { privateKey } = yield* Effect.promise(() => generateKeyPair("ES256"))
      const [head, payload] = ada.token.split(".")
      const kid = JSON.parse(Buffer.from(head!, "base64url").toString()).kid
      const claims = JSON.parse(Buffer.from(payload!, "base64url").toString())
      const forged = yield* Effect.promise(() =>
        new SignJWT(claims).setProtectedHeader({ alg: "ES256", kid }).sign(privateKey)
      )
      const told = table.map(
        ([header, ...answers]) =>
          [
            header
              ?.replace("<key>", api_key)
              .replace("<token>", ada.token)
              .replace("<forged>", forged)
              .replace("<expired>", old.token)
              .replace("<refresh>", ada.refresh_token),
            answers
          ] as const
      )
      for (const [i, [header, answers]] of told.entries()) {
        expect([table[i]![0], yield* outcomes(header)]).toEqual([table[i]![0], answers])
      }
    })
  )

  scene(
    "says who calls",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { api_key, id } = yield* application(ada)
      const { apiKey, keyOrToken, userToken } = yield* Credentials
      const who = { account_id: ada.account_id, tenant_id: ada.tenant_id, team_first: false }
      const asPerson = { ...who, application_id: null, credential: "user_token" }
      const asKey = { ...who, application_id: id, credential: "api_key" }
      // Twice: read, then cached.
      for (let i = 0; i < 2; i++) {
        expect(yield* userToken(`Bearer ${ada.token}`, "profile")).toEqual(asPerson)
        expect(yield* keyOrToken(`Bearer ${ada.token}`)).toEqual(asPerson)
        expect(yield* keyOrToken(`Bearer ${api_key}`)).toEqual(asKey)
        expect(yield* apiKey(`Bearer ${api_key}`)).toEqual(asKey)
      }
    })
  )

  scene(
    "is valid for an hour, cached or not",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { userToken } = yield* Credentials
      const read = userToken(`Bearer ${ada.token}`, "profile")
      yield* TestClock.adjust(3_600_000 - 10_000)
      yield* read
      yield* TestClock.adjust(9_999)
      yield* read
      yield* TestClock.adjust(1)
      expect(yield* Effect.flip(read)).toMatchObject({ _tag: "InvalidToken" })
    })
  )

  scene(
    "ends within a minute after its membership",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { userToken } = yield* Credentials
      const read = userToken(`Bearer ${ada.token}`, "profile")
      for (const status of ["suspended", "removed", "invited"]) {
        yield* World.join(ada.account_id, ada.tenant_id, "active")
        yield* read
        yield* World.join(ada.account_id, ada.tenant_id, status)
        yield* read
        yield* TestClock.adjust("1 minute")
        expect(yield* Effect.flip(read)).toMatchObject({ _tag: "InvalidToken" })
      }
      // A refusal is not cached.
      yield* World.join(ada.account_id, ada.tenant_id, "active")
      yield* read
    })
  )

  scene(
    "is refused at once after its deletion here, and within a minute after its deletion by another process",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const [here, there] = [yield* application(ada), yield* application(ada)]
      const { keyOrToken } = yield* Credentials
      const read = (of: { readonly api_key: string }) => keyOrToken(`Bearer ${of.api_key}`)
      yield* read(here)
      yield* read(there)
      yield* ask("DELETE", `/v1/tenants/${ada.tenant_id}/applications/${here.id}`, { token: ada.token })
      expect(yield* Effect.flip(read(here))).toMatchObject({ _tag: "InvalidKey" })
      yield* World.sql("DELETE FROM tollgate_tenants_applications WHERE id = ?", [there.id])
      yield* read(there)
      yield* TestClock.adjust("1 minute")
      expect(yield* Effect.flip(read(there))).toMatchObject({ _tag: "InvalidKey" })
    })
  )

  scene(
    "is noted as used once a minute, even by concurrent calls",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const app = yield* application(ada)
      const { keyOrToken } = yield* Credentials
      const record = ask("GET", `/v1/tenants/${ada.tenant_id}/applications/${app.id}`, { token: ada.token })
      const used = Effect.map(record, ({ body }) => body.result.last_used_at as string | null)
      expect(yield* used).toBe(null)
      yield* World.sql("CREATE TABLE noted (id TEXT)")
      yield* TestDatabase.trigger("note", {
        on: "AFTER UPDATE OF last_used_at ON tollgate_tenants_applications",
        body: "INSERT INTO noted VALUES (new.id);"
      })
      const noted = World.sql<{ n: number }>("SELECT count(*) AS n FROM noted").pipe(Effect.map(([row]) => row!.n))
      const calls = Effect.all(
        Array.from({ length: 50 }, () => keyOrToken(`Bearer ${app.api_key}`)),
        {
          concurrency: "unbounded"
        }
      )
      // The writer keeps the order: the request for the record comes after the note.
      const settled = Effect.zipRight(application(ada), used)
      yield* calls
      expect(yield* settled).toBe("2026-03-01T10:00:00.000Z")
      expect(yield* noted).toBe(1)
      yield* TestClock.adjust("59 seconds")
      yield* calls
      // Another process with an empty cache notes it no sooner.
      yield* Effect.provide(
        Effect.flatMap(Credentials, ({ keyOrToken }) => keyOrToken(`Bearer ${app.api_key}`)),
        Layer.fresh(World.rooms)
      )
      expect(yield* settled).toBe("2026-03-01T10:00:00.000Z")
      yield* TestClock.adjust("1 second")
      yield* calls
      expect(yield* settled).toBe("2026-03-01T10:01:00.000Z")
      expect(yield* noted).toBe(2)
    })
  )
})
