/** While the books cannot be written, every write fails with `BooksUnavailable`, which a program can catch. */
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Authorization } from "../../../src/people/auth/Authorization.ts"
import { Clients, ConfiguredClients } from "../../../src/people/credentials/Clients.ts"
import type { Client } from "../../../src/people/credentials/Clients.ts"
import * as DeploymentSecret from "../../../src/storage/secret/DeploymentSecret.ts"
import { Sessions } from "../../../src/people/auth/Sessions.ts"
import { SigningKeys } from "../../../src/people/auth/SigningKeys.ts"
import { ServiceInfo } from "../../../src/kernel/ServiceInfo.ts"
import { BooksUnavailable } from "../../../src/books/ledger/rules/Problems.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import type { WriterContract } from "../../../src/books/ledger/write/Writer.ts"
import { PriceList } from "../../../src/books/prices/PriceList.ts"
import { Tenants } from "../../../src/people/tenants/Tenants.ts"
import { RegistrationPolicy } from "../../../src/people/tenants/RegistrationPolicy.ts"
import { IdentityProviders } from "../../../src/upstream/identity/Identity.ts"
import * as World from "./World.ts"

const redirect_uri = "https://desk.example/back"
const desk: Client = { client_id: "desk", kind: "oauth", name: "Desk", redirect_uris: [redirect_uri] }

/** Whether the books can be written. */
let writable = true

const writer = Layer.effect(
  Writer,
  Effect.map(Writer, ({ submit, watch }): WriterContract => ({
    submit: (transaction) => (writable ? submit(transaction) : new BooksUnavailable()),
    watch
  }))
)

const settings = Layer.mergeAll(
  Layer.succeed(IdentityProviders, {}),
  RegistrationPolicy.layerInvitedOnly,
  Layer.succeed(ConfiguredClients, [desk]),
  PriceList.layerNone,
  ServiceInfo.layer({ service_name: "Tollbooth", key_prefix: "svc", public_url: "https://toll.example" }),
  DeploymentSecret.layer(World.secret)
)

const world = Authorization.layer.pipe(
  Layer.provideMerge(World.rooms),
  Layer.provide(settings),
  Layer.provideMerge(writer),
  Layer.provideMerge(World.books)
)

const person = {
  provider: "google",
  subject: "ada",
  email: "ada@example.com",
  email_verified: true,
  name: "Ada"
} as const

layer(world)("while the books cannot be written", (it) => {
  it.effect("sign-ins, codes, clients and signing keys fail, and work again afterwards", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const authorization = yield* Authorization
      const clients = yield* Clients
      const keys = yield* SigningKeys
      const { account_id, home_tenant_id: tenant_id } = yield* (yield* Tenants).welcome(person)
      const signIn = { account_id, tenant_id, client_id: "console", team_first: false, grant: "all" } as const
      const { refresh_token } = yield* sessions.open(signIn)
      const request = yield* authorization.check({
        client_id: "desk",
        redirect_uri,
        response_type: "code",
        code_challenge_method: "S256",
        code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
      })
      const exchange = Effect.map(authorization.consent({ account_id, tenant_id }, request), (code) =>
        authorization.exchange({
          grant_type: "authorization_code",
          code,
          redirect_uri,
          client_id: "desk",
          code_verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        })
      )
      const pending = yield* exchange
      const writes: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        sessions.open(signIn),
        sessions.refresh({ refresh_token, client_id: "console", tenant_id: undefined }),
        sessions.revoke(refresh_token),
        authorization.consent({ account_id, tenant_id }, request),
        pending,
        clients.create({ kind: "app", name: "Phone", redirect_uris: [] }),
        clients.revoke("app-none"),
        keys.rotate()
      ]
      writable = false
      for (const write of writes) expect(yield* Effect.flip(write)).toBeInstanceOf(BooksUnavailable)
      writable = true
      // Nothing was written: the token and the code still work.
      const pair = yield* sessions.refresh({ refresh_token, client_id: "console", tenant_id: undefined })
      expect(pair.refresh_token).not.toBe(refresh_token)
      expect(yield* pending).toMatchObject({ token_type: "Bearer", id_token: expect.any(String) })
    })
  )
})
