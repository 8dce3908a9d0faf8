/** Tokens of identity providers, verified against a real issuer on its own port. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import { vi } from "vitest"
import type { ProviderName, ProviderSettings } from "../../../src/upstream/identity/Identity.ts"
import { Identity, IdentityProviders } from "../../../src/upstream/identity/Identity.ts"
import { audience, Issuer } from "../../support/Issuer.ts"
import { beginning } from "./World.ts"

/** The identity of a token, with the issuer as `google`. */
const verify = (id_token: string, settings: Partial<ProviderSettings> = {}) =>
  Effect.gen(function* () {
    const { url } = yield* Issuer
    const providers = Layer.succeed(IdentityProviders, { google: { issuer: url, audiences: [audience], ...settings } })
    return yield* Effect.flatMap(Identity, (identity) => identity.verify("google", { id_token })).pipe(
      Effect.provide(Layer.provide(Identity.layer, providers))
    )
  })

const test = <A, E>(name: string, body: Effect.Effect<A, E, Issuer>) =>
  it.effect(name, () => Effect.zipRight(TestClock.setTime(beginning), body).pipe(Effect.provide(Issuer.layer)))

const seconds = beginning / 1000

describe("the identity of a provider's token", () => {
  test(
    "has the claims of the token",
    Effect.gen(function* () {
      const { sign } = yield* Issuer
      const token = yield* sign({ sub: "s1", email: " Ada@Example.COM", email_verified: true, name: "Ada" })
      expect(yield* verify(token)).toEqual({
        provider: "google",
        subject: "s1",
        email: "ada@example.com",
        email_verified: true,
        name: "Ada",
        groups: []
      })
    })
  )

  test(
    "is refused if the database could not store it: U+0000, or half of a surrogate pair",
    Effect.gen(function* () {
      const { sign } = yield* Issuer
      for (const sub of ["s\0", "s\ud800", ""]) {
        const token = yield* sign({ sub, email: "a@example.com" })
        expect(yield* Effect.flip(verify(token))).toMatchObject({ _tag: "IdentityRejected" })
      }
    })
  )

  test(
    "has a verified address only if the provider or the configuration says so",
    Effect.gen(function* () {
      const { sign } = yield* Issuer
      const verified = (claims: object, trust_email?: boolean) =>
        Effect.map(
          Effect.flatMap(sign({ email: "a@example.com", ...claims }), (token) => verify(token, { trust_email })),
          ({ email_verified }) => email_verified
        )
      expect(yield* verified({})).toBe(false)
      expect(yield* verified({}, true)).toBe(true)
      expect(yield* verified({ email_verified: false }, true)).toBe(false)
      expect(yield* verified({ email_verified: "true" })).toBe(false)
      expect(yield* verified({ email: undefined, email_verified: true }, true)).toBe(false)
    })
  )

  const refused: ReadonlyArray<readonly [string, Effect.Effect<string, never, Issuer>]> = [
    ["for another audience", Effect.flatMap(Issuer, ({ sign }) => sign({ aud: "somebody-else" }))],
    ["for no audience", Effect.flatMap(Issuer, ({ sign }) => sign({}, { without: ["aud"] }))],
    ["of another issuer", Effect.flatMap(Issuer, ({ sign }) => sign({ iss: "https://elsewhere.example" }))],
    ["of no issuer", Effect.flatMap(Issuer, ({ sign }) => sign({}, { without: ["iss"] }))],
    ["that has expired", Effect.flatMap(Issuer, ({ sign }) => sign({ exp: seconds - 61 }))],
    ["that never expires", Effect.flatMap(Issuer, ({ sign }) => sign({}, { without: ["exp"] }))],
    ["that is not valid yet", Effect.flatMap(Issuer, ({ sign }) => sign({ nbf: seconds + 61 }))],
    ["of nobody", Effect.flatMap(Issuer, ({ sign }) => sign({}, { without: ["sub"] }))],
    ["of an empty subject", Effect.flatMap(Issuer, ({ sign }) => sign({ sub: "" }))],
    ["signed by another key", Effect.flatMap(Issuer, ({ sign }) => sign({}, { forged: true }))],
    ["signed with the public key as a secret", Effect.flatMap(Issuer, ({ sign }) => sign({}, { alg: "HS256" }))],
    [
      "that is not signed",
      Effect.map(
        Effect.flatMap(Issuer, ({ sign }) => sign({})),
        (token) => `${Buffer.from(`{"alg":"none"}`).toString("base64url")}.${token.split(".")[1]}.`
      )
    ],
    [
      "that was changed",
      Effect.map(
        Effect.flatMap(Issuer, ({ sign }) => sign({})),
        (token) => `${token.slice(0, -6)}AAAAAA`
      )
    ],
    ["that is none", Effect.succeed("token")]
  ]
  for (const [name, token] of refused) {
    test(
      `is refused with a token ${name}`,
      Effect.gen(function* () {
        const problem = yield* Effect.flip(Effect.flatMap(token, (token) => verify(token)))
        expect(problem).toMatchObject({ _tag: "IdentityRejected", status: 401 })
      })
    )
  }

  test(
    "expires by our clock",
    Effect.gen(function* () {
      const { sign } = yield* Issuer
      const token = yield* sign({})
      yield* TestClock.adjust("59 minutes")
      yield* verify(token)
      yield* TestClock.adjust("2 minutes")
      // Clocks of two machines may differ by a minute.
      yield* TestClock.adjust("1 minute")
      expect(yield* Effect.flip(verify(token))).toMatchObject({ _tag: "IdentityRejected" })
    })
  )

  test(
    "is verified with keys that are fetched once, and again for an unknown key",
    Effect.gen(function* () {
      const { asked, rotate, sign, url } = yield* Issuer
      const providers = Layer.succeed(IdentityProviders, { google: { issuer: url, audiences: [audience] } })
      yield* Effect.gen(function* () {
        const identity = yield* Identity
        const verify = Effect.flatMap(sign({}), (id_token) => identity.verify("google", { id_token }))
        yield* verify
        yield* verify
        expect(asked.get("/keys")).toBe(1)
        yield* rotate
        // Soon after a fetch an unknown key causes no request: otherwise clients could cause any number of requests.
        expect(yield* Effect.flip(verify)).toMatchObject({ _tag: "IdentityRejected" })
        expect(asked.get("/keys")).toBe(1)
        // The library measures the time since its last fetch by the system clock.
        vi.useFakeTimers({ toFake: ["Date"] })
        vi.advanceTimersByTime(6_000)
        yield* Effect.ensuring(
          verify,
          Effect.sync(() => vi.useRealTimers())
        )
        expect(asked.get("/keys")).toBe(2)
        expect(asked.get("/.well-known/openid-configuration")).toBe(1)
      }).pipe(Effect.provide(Layer.provide(Identity.layer, providers)))
    })
  )

  test(
    "asks an issuer once for all who come, and for a page only once an hour",
    Effect.gen(function* () {
      const { answerKeysWith, asked, sign, url } = yield* Issuer
      const settings = { issuer: url, audiences: [audience] }
      const providers = Layer.succeed(IdentityProviders, { google: settings, microsoft: settings })
      const document = "/.well-known/openid-configuration"
      yield* Effect.gen(function* () {
        const identity = yield* Identity
        const page = (provider: ProviderName) =>
          identity.signInPage(provider, { redirect_uri: "https://x.example/", nonce: "n", state: "s" })
        const many = Effect.all(
          Array.from({ length: 50 }, (_, i) => page(i % 2 === 0 ? "google" : "microsoft")),
          { concurrency: "unbounded" }
        )
        yield* answerKeysWith(500)
        expect(yield* Effect.flip(many)).toMatchObject({ _tag: "IdentityProviderUnavailable" })
        expect(asked.get(document)).toBe(1)
        yield* TestClock.adjust("1 second")
        yield* answerKeysWith(200)
        const pages = yield* many
        expect(pages[0]).toContain(`${url}/authorize?`)
        yield* Effect.all(
          Array.from({ length: 20 }, () =>
            Effect.flatMap(sign({}), (id_token) => identity.verify("google", { id_token }))
          ),
          { concurrency: "unbounded" }
        )
        expect([asked.get(document), asked.get("/keys")]).toEqual([2, 1])
        // The cached metadata is still used.
        yield* answerKeysWith(500)
        yield* TestClock.adjust("1 hour")
        expect((yield* many).length).toBe(50)
        expect(asked.get(document)).toBe(3)
      }).pipe(Effect.provide(Layer.provide(Identity.layer, providers)))
    })
  )

  const faults: ReadonlyArray<readonly [string, Effect.Effect<void, never, Issuer>]> = [
    ["is gone", Effect.flatMap(Issuer, ({ close }) => close)],
    ["fails", Effect.flatMap(Issuer, ({ answerKeysWith }) => answerKeysWith(500))],
    ["answers no JSON", Effect.flatMap(Issuer, ({ answerKeysWith }) => answerKeysWith(200, "<html>"))],
    ["answers no key set", Effect.flatMap(Issuer, ({ answerKeysWith }) => answerKeysWith(200, "{}"))]
  ]
  for (const [name, breaking] of faults) {
    test(
      `is nobody's fault here when the issuer ${name}`,
      Effect.gen(function* () {
        const { sign, url } = yield* Issuer
        const token = yield* sign({})
        yield* breaking
        const unavailable = { _tag: "IdentityProviderUnavailable", status: 503 }
        expect(yield* Effect.flip(verify(token))).toMatchObject(unavailable)
        expect(yield* Effect.flip(verify(token, { jwks_uri: `${url}/keys` }))).toMatchObject(unavailable)
      })
    )
  }

  test(
    "comes from the access token if there is no ID token, and its audience is ours",
    Effect.gen(function* () {
      const { sign, url } = yield* Issuer
      const providers = Layer.succeed(IdentityProviders, { google: { issuer: url, audiences: [audience] } })
      yield* Effect.gen(function* () {
        const { verify } = yield* Identity
        expect(yield* verify("google", { access_token: yield* sign({ sub: "s2" }) })).toMatchObject({ subject: "s2" })
        const foreign = yield* sign({ aud: "another-application" })
        for (const access_token of [foreign, "ya29.opaque", "opaque"]) {
          expect(yield* Effect.flip(verify("google", { access_token }))).toMatchObject({ _tag: "IdentityRejected" })
        }
        for (const none of [{}, { id_token: "" }, { id_token: "", access_token: "" }]) {
          expect(yield* Effect.flip(verify("google", none))).toMatchObject({
            _tag: "InvalidRequest",
            body: { details: { field: "id_token", rule: "required" } }
          })
        }
        expect(yield* Effect.flip(verify("microsoft", { id_token: "x" }))).toMatchObject({
          _tag: "IdentityProviderUnconfigured",
          status: 503
        })
      }).pipe(Effect.provide(Layer.provide(Identity.layer, providers)))
    })
  )
})
