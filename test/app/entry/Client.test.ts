/** The typed client against a running service: a refusal becomes the contract's problem, whatever shape it was sent in. */
import { FetchHttpClient } from "@effect/platform"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { make } from "../../../src/app/entry/client.ts"
import { start } from "../../support/Service.ts"
import type { Service } from "../../support/Service.ts"

let service: Service
let rich: string
let poor: string
beforeAll(async () => {
  service = await start()
  rich = await service.key(await service.signIn("rich@example.com"))
  poor = await service.key(await service.signIn("poor@example.com", { email_verified: false }))
})
afterAll(() => service.discard())

type Client = Effect.Effect.Success<ReturnType<typeof make>>

const refused = (key: string | undefined, call: (client: Client) => Effect.Effect<unknown, unknown>) =>
  Effect.runPromise(
    make(service.url).pipe(
      Effect.flatMap(call),
      Effect.flip,
      Effect.provide(FetchHttpClient.layer),
      Effect.provideService(FetchHttpClient.RequestInit, {
        headers: key === undefined ? {} : { authorization: `Bearer ${key}` }
      })
    )
  )

const messages = [{ role: "user" as const, content: "hello" }]

/** A call on each path whose refusals have a protocol's own shape. */
const calls: ReadonlyArray<
  readonly [name: string, model: string, (client: Client, model: string) => Effect.Effect<unknown, unknown>]
> = [
  [
    "messages",
    "sandbox-small",
    (client, model) => client.messages.create({ payload: { model, messages, max_tokens: 10 } })
  ],
  ["responses", "sandbox-small", (client, model) => client.responses.create({ payload: { model, input: "hello" } })],
  [
    "embeddings",
    "sandbox-embedding",
    (client, model) => client.embeddings.embed({ payload: { model, input: "hello" } })
  ],
  [
    "images",
    "sandbox-image",
    (client, model) => client.images.createImage({ payload: { model, prompt: "a lighthouse" } })
  ],
  // Chat has the shape of the specification.
  ["chat", "sandbox-small", (client, model) => client.chat.chat({ payload: { model, messages } })]
]

describe.each(calls)("the typed client of %s", (_, model, call) => {
  it("fails with insufficient credits", async () => {
    expect(await refused(poor, (client) => call(client, model))).toMatchObject({
      _tag: "InsufficientCredits",
      available: 0n,
      required: expect.any(BigInt)
    })
  })

  it("fails with the name of a wrong field", async () => {
    const problem = await refused(rich, (client) => call(client, "nobody"))
    expect(problem).toMatchObject({ field: "model", status: 400, code: "invalid_request" })
  })

  it("fails with an invalid credential", async () => {
    const key = `${rich.slice(0, -4)}0000`
    expect(await refused(key, (client) => call(client, model))).toMatchObject({ _tag: "InvalidKey" })
    expect(await refused(undefined, (client) => call(client, model))).toMatchObject({ _tag: "MissingAuthorization" })
    expect(await refused("nonsense", (client) => call(client, model))).toMatchObject({ _tag: "InvalidKeyFormat" })
  })
})
