/** The deployment's secret and its signing keys: restarts, rotation, and no secret in clear in the database. */
import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Layer, TestClock } from "effect"
import { exportJWK, generateKeyPair } from "jose"
import { Credentials } from "../../../src/people/auth/Credentials.ts"
import * as DeploymentSecret from "../../../src/storage/secret/DeploymentSecret.ts"
import { SigningKeys } from "../../../src/people/auth/SigningKeys.ts"
import { Tokens } from "../../../src/people/auth/Tokens.ts"
import { selectNames } from "../../support/tables.ts"
import * as World from "./World.ts"
import { application, person, refresh, scene } from "./World.ts"

/** After a restart of the process over the same database. */
const restarted = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provide(effect, Layer.fresh(World.rooms))

describe("signing keys", () => {
  scene(
    "outlive the process",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const published = (yield* SigningKeys).published()
      yield* restarted(
        Effect.gen(function* () {
          expect((yield* SigningKeys).published()).toEqual(published)
          expect(
            yield* Effect.flatMap(Credentials, ({ userToken }) => userToken(`Bearer ${ada.token}`, "profile"))
          ).toMatchObject({
            account_id: ada.account_id
          })
        })
      )
    })
  )

  scene(
    "are one key if several processes start at once",
    Effect.gen(function* () {
      yield* World.sql("DELETE FROM tollgate_auth_signing_keys")
      const started = yield* Effect.all(
        Array.from({ length: 5 }, () => restarted(Effect.map(SigningKeys, ({ current }) => current().kid))),
        { concurrency: "unbounded" }
      )
      expect(new Set(started).size).toBe(1)
    })
  )

  scene(
    "can be several: the newest signs, and all verify",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const [old] = (yield* SigningKeys).published()
      const { privateKey, publicKey } = yield* Effect.promise(() => generateKeyPair("ES256", { extractable: true }))
      const jwk = { ...(yield* Effect.promise(() => exportJWK(publicKey))), kid: "newer", alg: "ES256", use: "sig" }
      const { seal } = yield* DeploymentSecret.DeploymentSecret
      const sealed = yield* seal(JSON.stringify(yield* Effect.promise(() => exportJWK(privateKey))))
      yield* World.sql("INSERT INTO tollgate_auth_signing_keys (kid, public, sealed, created_at) VALUES (?, ?, ?, ?)", [
        "newer",
        JSON.stringify(jwk),
        sealed,
        World.beginning + 1
      ])
      yield* restarted(
        Effect.gen(function* () {
          const keys = yield* SigningKeys
          expect(keys.current().kid).toBe("newer")
          expect(keys.published()).toEqual([jwk, old])
          const tokens = yield* Tokens
          const verified = yield* tokens.verify(ada.token)
          expect(verified.account_id).toBe(ada.account_id)
          const fresh = yield* tokens.sign(verified)
          expect(yield* tokens.verify(fresh)).toEqual(verified)
          yield* TestClock.adjust("1 hour")
          expect(yield* Effect.flip(tokens.verify(fresh))).toMatchObject({ _tag: "InvalidToken" })
        })
      )
    })
  )

  scene(
    "are deleted after their last token has expired",
    Effect.gen(function* () {
      const keys = yield* SigningKeys
      const tokens = yield* Tokens
      const ada = yield* person("ada@example.com")
      const [old] = keys.published()
      const kids = Effect.map(
        World.sql<{ kid: string }>("SELECT kid FROM tollgate_auth_signing_keys ORDER BY created_at"),
        (rows) => rows.map(({ kid }) => kid)
      )
      const { kid } = yield* keys.rotate()
      expect(keys.published().map(({ kid }) => kid)).toEqual([kid, old!.kid])
      yield* tokens.verify(ada.token)
      // Another process may sign with it until its next turn, and its tokens are valid for an hour.
      yield* TestClock.adjust("2 hours")
      yield* keys.job.turn
      expect(yield* keys.find(old!.kid!)).toBeDefined()
      expect(yield* kids).toEqual([old!.kid, kid])
      yield* TestClock.adjust("2 hours")
      yield* keys.job.turn
      expect(yield* kids).toEqual([kid])
      expect(keys.published().map(({ kid }) => kid)).toEqual([kid])
      expect(yield* keys.find(old!.kid!)).toBeUndefined()
      // The newest key never does.
      yield* TestClock.adjust("20 days")
      yield* keys.job.turn
      expect(yield* kids).toEqual([kid])
    })
  )

  scene(
    "cannot be opened by another secret",
    Effect.gen(function* () {
      yield* SigningKeys
      const exit = yield* Effect.exit(
        restarted(SigningKeys).pipe(Effect.provide(DeploymentSecret.layer(new Uint8Array(32).fill(8))))
      )
      expect(Exit.isFailure(exit) && String(exit.cause)).toContain("sealed with a secret other than")
    })
  )
})

describe("the database", () => {
  scene(
    "holds no secret in clear",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { api_key } = yield* application(ada)
      const { body } = yield* refresh(ada.refresh_token)
      const { unseal } = yield* DeploymentSecret.DeploymentSecret
      const tables = yield* World.sql<{ name: string }>(selectNames)
      const rows = yield* Effect.forEach(tables, ({ name }) => World.sql(`SELECT * FROM "${name}"`))
      const everything = JSON.stringify(rows)
      const [key] = yield* World.sql<{ sealed: string }>("SELECT sealed FROM tollgate_auth_signing_keys")
      const { d } = JSON.parse(yield* unseal(key!.sealed)) as { readonly d: string }
      const secrets = [
        api_key,
        api_key.slice("svc-prod-".length),
        ada.refresh_token.slice(3),
        ada.token,
        body.result.refresh_token.slice(3),
        body.result.access_token,
        d,
        Buffer.from(World.secret).toString("hex")
      ]
      for (const secret of secrets) expect(everything).not.toContain(secret)
      // The rows exist, so the search would find a secret in them.
      expect(everything).toContain(ada.account_id)
      expect(everything).toContain("ada@example.com")
    })
  )

  scene(
    "hashes a value differently for each purpose and each deployment",
    Effect.gen(function* () {
      const { hash } = yield* DeploymentSecret.DeploymentSecret
      expect(hash("api_key", "x")).toMatch(/^[0-9a-f]{64}$/)
      expect(hash("api_key", "x")).toBe(hash("api_key", "x"))
      expect(hash("api_key", "x")).not.toBe(hash("refresh_token", "x"))
      const other = yield* Effect.provide(DeploymentSecret.DeploymentSecret, DeploymentSecret.layer(new Uint8Array(32)))
      expect(hash("api_key", "x")).not.toBe(other.hash("api_key", "x"))
    })
  )
})
