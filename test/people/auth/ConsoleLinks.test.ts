/** Links that open the console once as one person, without an identity provider. */
import { describe, expect } from "@effect/vitest"
import { Effect, Exit, TestClock } from "effect"
import { BrowserSessions } from "../../../src/people/auth/BrowserSessions.ts"
import { Tenants } from "../../../src/people/tenants/Tenants.ts"
import { scene } from "./World.ts"

const invited = Effect.gen(function* () {
  const sessions = yield* BrowserSessions
  const { account_id, home_tenant_id: tenant_id } = yield* Effect.flatMap(Tenants, (tenants) =>
    tenants.welcome({ provider: "google", subject: "ada", email: "ada@example.com", email_verified: true, name: "Ada" })
  )
  return { sessions, account_id, tenant_id, ...(yield* sessions.invite({ account_id, tenant_id }, [])) }
})

const isRefused = (exit: Exit.Exit<unknown, { readonly _tag: string }>): boolean =>
  Exit.isFailure(exit) && exit.cause._tag === "Fail" && exit.cause.error._tag === "SessionEnded"

describe("a link of the console", () => {
  scene(
    "opens its person's session once",
    Effect.gen(function* () {
      const { account_id, code, sessions, tenant_id } = yield* invited
      const { cookie } = yield* sessions.enter(code)
      expect(yield* sessions.access(cookie, undefined)).toMatchObject({ account_id, tenant_id })
      expect(isRefused(yield* Effect.exit(sessions.enter(code)))).toBe(true)
      // The session of the first use goes on.
      expect(yield* sessions.access(cookie, undefined)).toMatchObject({ account_id })
    }).pipe(Effect.provide(BrowserSessions.layer))
  )

  scene(
    "opens one session where it is used twice at once",
    Effect.gen(function* () {
      const { code, sessions } = yield* invited
      const exits = yield* Effect.all(
        [1, 2, 3, 4].map(() => Effect.exit(sessions.enter(code))),
        { concurrency: "unbounded" }
      )
      expect(exits.filter(Exit.isSuccess)).toHaveLength(1)
      expect(exits.filter(isRefused)).toHaveLength(3)
    }).pipe(Effect.provide(BrowserSessions.layer))
  )

  scene(
    "ends after 15 minutes",
    Effect.gen(function* () {
      const { code, sessions } = yield* invited
      yield* TestClock.adjust("15 minutes")
      expect(isRefused(yield* Effect.exit(sessions.enter(code)))).toBe(true)
    }).pipe(Effect.provide(BrowserSessions.layer))
  )

  scene(
    "opens nothing for a suspended person, and nothing for an unknown code",
    Effect.gen(function* () {
      const { account_id, code, sessions } = yield* invited
      yield* Effect.flatMap(Tenants, (tenants) => tenants.suspend(account_id, []))
      expect(isRefused(yield* Effect.exit(sessions.enter(code)))).toBe(true)
      expect(isRefused(yield* Effect.exit(sessions.enter("0".repeat(64))))).toBe(true)
    }).pipe(Effect.provide(BrowserSessions.layer))
  )
})
