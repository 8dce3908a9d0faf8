/**
 * A host with an `HttpApi` of its own: its routes, a middleware that every one of them wants, its documents and its way of saying
 * that there is no such path. The whole service stands beneath `/ai`, and neither is seen in the other.
 */
import {
  FetchHttpClient,
  HttpApi,
  HttpApiBuilder,
  HttpApiEndpoint,
  HttpApiGroup,
  HttpApiMiddleware,
  HttpApiSwagger,
  HttpServer,
  HttpServerRequest
} from "@effect/platform"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer, LogLevel, Schema } from "effect"
import { createServer } from "node:http"
import * as Client from "tollgate/client"
import * as Database from "tollgate/database"
import * as Tollgate from "tollgate/http"
import { Sandbox } from "tollgate/sandbox"

const facts: Tollgate.EnvironmentFacts = {
  host: "127.0.0.1",
  port: 0,
  data_dir: "data",
  database: Database.sqliteFile("data/api.db"),
  service_name: "Hosted",
  key_prefix: "svc",
  log_level: LogLevel.Warning,
  sandbox_without: [],
  secret: undefined
}

class NoBadge extends Schema.TaggedError<NoBadge>()("NoBadge", {}) {}

/** What every route of the host wants, and no route of the service. */
class Badge extends HttpApiMiddleware.Tag<Badge>()("host/Badge", { failure: NoBadge }) {}

class HostApi extends HttpApi.make("host")
  .add(
    HttpApiGroup.make("host")
      .add(HttpApiEndpoint.get("models", "/v1/models").addSuccess(Schema.String))
      .add(HttpApiEndpoint.get("aid", "/aid").addSuccess(Schema.String))
  )
  .middleware(Badge) {}

const host = HttpApiBuilder.api(HostApi).pipe(
  Layer.provide(
    HttpApiBuilder.group(HostApi, "host", (handlers) =>
      handlers
        .handle("models", () => Effect.succeed("the host's models"))
        .handle("aid", () => Effect.succeed("not beneath the prefix"))
    )
  ),
  Layer.provide(
    Layer.succeed(
      Badge,
      Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) =>
        headers["x-badge"] === undefined ? Effect.fail(new NoBadge()) : Effect.void
      )
    )
  )
)

const service = Layer.unwrapEffect(Effect.map(Sandbox, ({ configuration }) => Tollgate.layer(facts, configuration)))

const server = HttpApiBuilder.serve().pipe(
  Layer.provide([HttpApiBuilder.middlewareOpenApi(), HttpApiSwagger.layer(), Tollgate.mounted("/ai")]),
  Layer.provide(host)
)

const program = Effect.gen(function* () {
  const { address } = yield* HttpServer.HttpServer
  const url = address._tag === "TcpAddress" ? `http://127.0.0.1:${address.port}` : ""
  const ask = (path: string, init: RequestInit = {}) =>
    Effect.promise(async () => {
      const response = await fetch(`${url}${path}`, { ...init, headers: { "x-badge": "yes", ...init.headers } })
      const text = await response.text()
      return {
        status: response.status,
        cors: response.headers.get("access-control-allow-origin"),
        body: text.startsWith("<") ? "a page" : text === "" ? "" : (JSON.parse(text) as Record<string, unknown>)
      }
    })
  const paths = (document: unknown) => Object.keys((document as { paths: object }).paths)
  const hosts = yield* ask("/openapi.json")
  const ours = yield* ask("/ai/openapi.json")
  const client = yield* Client.make(`${url}/ai`)
  return {
    host: {
      models: yield* ask("/v1/models"),
      aid: yield* ask("/aid"),
      without: (yield* ask("/v1/me")).status,
      unknown: yield* ask("/nothing"),
      case: (yield* ask("/V1/MODELS")).status,
      preflight: (yield* ask("/v1/models", { method: "OPTIONS" })).status,
      docs: (yield* ask("/docs")).body,
      paths: paths(hosts.body)
    },
    service: {
      models: yield* ask("/ai/v1/models"),
      bare: yield* ask("/ai"),
      unknown: yield* ask("/ai/aid?a=b"),
      method: yield* ask("/ai/v1/me", { method: "DELETE" }),
      case: (yield* ask("/ai/V1/MODELS")).status,
      badgeless: yield* ask("/ai/healthz", { headers: { "x-badge": "" } }),
      preflight: (yield* ask("/ai/v1/models", { method: "OPTIONS" })).status,
      docs: (yield* ask("/ai/docs")).body,
      servers: (ours.body as { servers: unknown }).servers,
      leaks: paths(ours.body).filter((path) => paths(hosts.body).includes(path) && path !== "/v1/models"),
      credits: String((yield* client.prices.list()).result.default_new_credits)
    }
  }
})

const all = program.pipe(
  Effect.provide(
    server.pipe(
      Layer.provideMerge(service),
      Layer.provideMerge(Sandbox.layer()),
      Layer.provideMerge(Database.layerAt(facts.database)),
      Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" })),
      Layer.provideMerge(FetchHttpClient.layer)
    )
  ),
  Effect.scoped
)

console.log(JSON.stringify(await Effect.runPromise(all)))
