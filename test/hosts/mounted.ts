/** A host with a server of its own: its routes stand above, the whole service below `/ai` with its fast lane, and the typed client speaks to it. */
import { FetchHttpClient, HttpRouter, HttpServer, HttpServerResponse } from "@effect/platform"
import { Effect, Layer, LogLevel } from "effect"
import { createServer } from "node:http"
import * as Client from "tollgate/client"
import * as Database from "tollgate/database"
import * as Tollgate from "tollgate/http"
import { Sandbox } from "tollgate/sandbox"

const facts: Tollgate.EnvironmentFacts = {
  host: "127.0.0.1",
  port: 0,
  data_dir: "data",
  database: Database.sqliteFile("data/tollgate.db"),
  service_name: "Hosted",
  key_prefix: "svc",
  log_level: LogLevel.Warning,
  sandbox_without: [],
  secret: undefined
}

const server = Layer.unwrapEffect(
  Effect.gen(function* () {
    const app = yield* Tollgate.app("/ai")
    const router = HttpRouter.empty.pipe(
      HttpRouter.get("/hello", HttpServerResponse.text("hello from the host")),
      HttpRouter.mountApp("/ai", app)
    )
    return HttpServer.serve(router)
  })
)

const service = Layer.unwrapEffect(Effect.map(Sandbox, ({ configuration }) => Tollgate.layer(facts, configuration)))

const program = Effect.gen(function* () {
  const { address } = yield* HttpServer.HttpServer
  const url = address._tag === "TcpAddress" ? `http://127.0.0.1:${address.port}` : ""
  const hello = yield* Effect.promise(async () => (await fetch(`${url}/hello`)).text())
  const client = yield* Client.make(`${url}/ai`)
  const prices = yield* client.prices.list()
  const refused = yield* Effect.flip(client.contact.clientToken({ payload: { service_client_id: "nobody" } }))
  const { issuer, client_id } = yield* Sandbox
  const signedIn = yield* Effect.promise(async () => {
    const json = (body: object) => ({
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body)
    })
    const { id_token } = (await (await fetch(`${issuer}/token`, json({ email: "a@example.com" }))).json()) as {
      id_token: string
    }
    const { result } = (await (await fetch(`${url}/ai/v1/auth/google`, json({ id_token, client_id }))).json()) as {
      result: { token_response: { access_token: string } }
    }
    const answer = await fetch(`${url}/ai/v1/chat/completions`, {
      ...json({ model: "auto", messages: [{ role: "user", content: "hello there" }] }),
      headers: { authorization: `Bearer ${result.token_response.access_token}`, "content-type": "application/json" }
    })
    return (await answer.json()) as { choices: [{ message: { content: string } }] }
  })
  return {
    hello,
    credits: String(prices.result.default_new_credits),
    refused: "_tag" in refused ? refused._tag : "?",
    chat: signedIn.choices[0].message.content
  }
})

const all = program.pipe(
  Effect.provide(
    server.pipe(
      Layer.provideMerge(service),
      Layer.provideMerge(Sandbox.layer()),
      Layer.provideMerge(Database.layerAt(facts.database)),
      Layer.provideMerge(Tollgate.layerServer(createServer, { port: 0, host: "127.0.0.1" })),
      Layer.provideMerge(FetchHttpClient.layer)
    )
  ),
  Effect.scoped
)

console.log(JSON.stringify(await Effect.runPromise(all)))
