/**
 * A cached caller is read again each minute, and stays the same object while nothing has changed: other caches, here and on the writer's
 * thread, are keyed by that object.
 */
import { describe, expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { Credentials } from "../../../src/people/auth/Credentials.ts"
import { application, ask, person, scene } from "../auth/World.ts"

describe("the cached caller", () => {
  scene(
    "by a key is the same object until the key changes",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { api_key, id } = yield* application(ada)
      const { apiKey } = yield* Credentials
      const caller = yield* apiKey(`Bearer ${api_key}`)
      for (let minutes = 0; minutes < 5; minutes++) {
        yield* TestClock.adjust("61 seconds")
        expect((yield* apiKey(`Bearer ${api_key}`)) === caller).toBe(true)
      }
      yield* ask("PATCH", `/v1/tenants/${ada.tenant_id}/applications/${id}`, {
        token: ada.token,
        json: { allowed_models: ["small"] }
      })
      const changed = yield* apiKey(`Bearer ${api_key}`)
      expect(changed).toEqual({ ...caller, allowed_models: ["small"] })
      yield* TestClock.adjust("61 seconds")
      expect((yield* apiKey(`Bearer ${api_key}`)) === changed).toBe(true)
    })
  )

  scene(
    "by a token is the same object while the token is valid",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { keyOrToken } = yield* Credentials
      const caller = yield* keyOrToken(`Bearer ${ada.token}`)
      for (let minutes = 0; minutes < 5; minutes++) {
        yield* TestClock.adjust("61 seconds")
        expect((yield* keyOrToken(`Bearer ${ada.token}`)) === caller).toBe(true)
      }
    })
  )
})
