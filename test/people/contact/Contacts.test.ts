/** The retention of contact messages. */
import { SqlClient } from "@effect/sql/SqlClient"
import { expect, it } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import { ServiceInfo } from "../../../src/kernel/ServiceInfo.ts"
import { Contacts } from "../../../src/people/contact/Contacts.ts"
import { layer as settings } from "../../../src/people/contact/Settings.ts"
import { Clients, ConfiguredClients } from "../../../src/people/credentials/Clients.ts"
import { Outbox } from "../../../src/people/mail/Outbox.ts"
import * as DeploymentSecret from "../../../src/storage/secret/DeploymentSecret.ts"
import { Mail } from "../../../src/upstream/mail/Mail.ts"
import { beginning, books } from "../auth/World.ts"

const site = { client_id: "site", kind: "web", name: "Site", redirect_uris: [] } as const

const room = Contacts.layer.pipe(
  Layer.provide(Layer.mergeAll(Clients.layer, Outbox.layer)),
  Layer.provide(
    Layer.mergeAll(
      Layer.succeed(ConfiguredClients, [site]),
      Mail.layerNone,
      DeploymentSecret.layer(new Uint8Array(32).fill(7)),
      ServiceInfo.layer({ service_name: "Tollgate", key_prefix: "svc", public_url: "https://tollgate.example" }),
      settings({ contact_kept_days: 10 })
    )
  ),
  Layer.provideMerge(books)
)

const write = Effect.gen(function* () {
  const { find, token, write } = yield* Contacts
  const given = yield* token({ service_client_id: "site" })
  const message = { name: "Ada", email: "ada@example.com", inquiryType: "sales", message: "Hello", subscribe: false }
  yield* write({ token: yield* find(given.token), message })
})

it.scoped("a contact message is deleted after the days of the configuration", () =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const count = Effect.map(sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_contact_messages`, ([row]) => row!.n)
    yield* TestClock.setTime(beginning)
    yield* write
    yield* TestClock.adjust("9 days")
    yield* write
    expect(yield* count).toBe(2)
    yield* TestClock.adjust("2 days")
    yield* write
    expect(yield* count).toBe(2)
  }).pipe(Effect.provide(room))
)
