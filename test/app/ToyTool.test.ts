/** A toy made by the checklist "A tool" of CONTRIBUTING.md: one more value makes the service configure, serve, charge and document it. */
import { HttpApiBuilder } from "@effect/platform"
import type { HttpApi } from "@effect/platform"
import { Context, Effect, Exit, Layer, LogLevel, Redacted, Schema, Scope } from "effect"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Api } from "../../src/app/Api.ts"
import { domains, faceOf, handlers } from "../../src/app/App.ts"
import { fieldsOf, layersOf } from "../../src/app/Capabilities.ts"
import * as Config from "../../src/app/Config.ts"
import * as Secret from "../../src/app/Secret.ts"
import { Face } from "../../src/http/lanes/Face.ts"
import * as NodeServer from "../../src/http/server/NodeServer.ts"
import { CurrentSandbox } from "../../src/kernel/SandboxInfo.ts"
import { Loops } from "../../src/operations/ops/Loops.ts"
import { Metrics } from "../../src/operations/ops/Metrics.ts"
import { Readiness } from "../../src/operations/ops/Readiness.ts"
import { RoutingLog } from "../../src/operations/ops/RoutingLog.ts"
import { SecurityHttp } from "../../src/people/auth/SecurityHttp.ts"
import * as Sandbox from "../../src/sandbox/Sandbox.ts"
import { sqliteFile } from "../../src/storage/database/Location.ts"
import * as TestDatabase from "../support/database.ts"
import { root, Service } from "../support/Service.ts"
import { WordsApi } from "./toy/Api.ts"
import { capability as toy } from "./toy/Capability.ts"

const facts = {
  host: "127.0.0.1",
  port: 0,
  data_dir: "",
  database: sqliteFile(""),
  service_name: "Tollgate",
  key_prefix: "svc",
  log_level: LogLevel.None,
  sandbox_without: [],
  secret: Redacted.make("a secret of thirty-two characters")
}

const ToyApi = Api.add(WordsApi)
const api = HttpApiBuilder.api(ToyApi).pipe(Layer.provide([handlers, toy.handlers]), Layer.provideMerge(SecurityHttp))

/** The service with the toy, at a cent a word; its port. */
const start = Effect.gen(function* () {
  const { client_id, configuration, control, issuer, levers, oauth_client, service_client_id } = yield* Sandbox.make({})
  const file = yield* Config.decodeFile(configuration, "the sandbox's configuration")
  const tools = yield* Schema.decodeUnknown(Schema.Struct(fieldsOf([toy.tool])))({ words: { usd_per_word: 0.01 } })
  const info = { client_id, control, issuer, oauth_client, service_client_id }
  const service = faceOf(ToyApi as unknown as HttpApi.HttpApi.AnyWithProps, api, "").pipe(
    Layer.provide(toy.layer),
    Layer.provide(domains),
    Layer.provide([Config.layer(facts, file), layersOf([toy.tool], tools), Secret.layer(facts)]),
    Layer.provide(Layer.merge(Metrics.layer, RoutingLog.layer)),
    Layer.provide(Readiness.layer),
    Layer.provide([Loops.layer, Layer.succeed(CurrentSandbox, { info, levers })]),
    Layer.provide(TestDatabase.writer.pipe(Layer.provideMerge(TestDatabase.sql)))
  )
  const face = Context.get(yield* Layer.build(service), Face)
  const server = yield* Effect.provideService(Layer.build(NodeServer.layer(facts)), Face, face)
  return Context.get(server, NodeServer.Listening).port
})

let scope: Scope.CloseableScope
let service: Service

beforeAll(async () => {
  scope = Effect.runSync(Scope.make())
  const port = await Effect.runPromise(Scope.extend(start, scope))
  service = new Service(port, "", undefined as never, [], [])
})

afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

describe("a toy tool", () => {
  it("is served and charged, once for an idempotency key", async () => {
    const ada = await service.signIn("ada@example.com")
    const before = await service.balance(ada)
    const call = {
      token: await service.key(ada),
      json: { text: "three words here" },
      headers: { "idempotency-key": "count-three-words" }
    }
    const answer = await service.call("/v1/tools/words", call)
    expect(answer).toMatchObject({ status: 200, body: { words: 3 } })
    expect(answer.headers.get("x-charge-usd")).toBe("0.03")
    expect((await service.call("/v1/tools/words", call)).headers.get("idempotency-replayed")).toBe("true")
    expect(await service.balance(ada)).toBeCloseTo(before - 0.03, 9)
    expect(await service.usage(ada)).toMatchObject([
      { id: answer.headers.get("x-usage-id"), endpoint: "words", provider: "toy", units: 3, cost: 0.03 }
    ])
  })

  it("is refused to a caller without credit, and without a credential", async () => {
    const poor = await service.signIn("poor@example.com", { email_verified: false })
    const json = { text: "three words here" }
    expect((await service.call("/v1/tools/words", { token: poor.token, json })).status).toBe(402)
    expect((await service.call("/v1/tools/words", { json })).status).toBe(401)
  })

  it("is in the OpenAPI document, with the headers and refusals of metered routes", async () => {
    const { body } = await service.call("/openapi.json")
    const { responses, summary } = body.paths["/v1/tools/words"].post
    expect(summary).toBe("Count the words of a text")
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(["200", "400", "402", "409", "413", "503"]))
    expect(Object.keys(responses["200"].headers)).toEqual(expect.arrayContaining(["X-Charge-Usd", "X-Usage-Id"]))
  })
})

describe("the checklist", () => {
  const text = readFileSync(join(root, "CONTRIBUTING.md"), "utf8")
  const tool = /^### A tool\n([\s\S]*?)^### /m.exec(text)?.[1] ?? ""
  const files = [...tool.matchAll(/`((?:src|test|package)[\w/.<>-]*\.\w+)`/g)].map(([, path]) => path!)

  it("names at most 20 files, each once", () => {
    expect(files.length).toBeGreaterThan(10)
    expect(files.length).toBeLessThanOrEqual(20)
    expect(files).toEqual([...new Set(files)])
  })

  it("names only files that there are, or that a new tool makes", () => {
    const search = (path: string) => path.replaceAll("<tool>", "search").replaceAll("<Tool>", "Search")
    expect(files.map(search).filter((path) => !existsSync(join(root, path)))).toEqual([])
  })

  it("names the files of the toy's room", () => {
    const room = files.flatMap((path) => /^src\/calls\/<tool>\/(.*)$/.exec(path)?.[1] ?? [])
    const made = readdirSync(join(import.meta.dirname, "toy"))
    expect(room.map((name) => name.replace("<Tool>", "Words")).toSorted()).toEqual(made.toSorted())
  })
})
