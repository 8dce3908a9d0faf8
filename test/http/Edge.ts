/** Servers on real ports, with routes in the fast lane and behind the router. */
import { HttpApi, HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, HttpApiMiddleware } from "@effect/platform"
import { Effect, Exit, Layer, Schema, Scope } from "effect"
import { connect } from "node:net"
import type { Socket } from "node:net"
import { Bytes } from "../../src/http/Bytes.ts"
import type { BytesSettings } from "../../src/http/Bytes.ts"
import { CurrentCaller } from "../../src/http/Caller.ts"
import { Face } from "../../src/http/Face.ts"
import { Fast, ReadsOwnBody } from "../../src/http/Annotations.ts"
import { ApiMiddleware } from "../../src/http/ApiMiddleware.ts"
import type { Inbound } from "../../src/http/Inbound.ts"
import { bodyProblemOf } from "../../src/http/Incoming.ts"
import { BodyRefusal } from "../../src/http/Problems.ts"
import { InvalidRequest } from "../../src/kernel/InvalidRequest.ts"
import { group, raw } from "../../src/http/Raw.ts"
import * as Reply from "../../src/http/Reply.ts"
import { Authentication } from "../../src/http/Authentication.ts"
import type { Caller } from "../../src/kernel/Caller.ts"
import * as NodeServer from "../../src/http/NodeServer.ts"

/** The longest body that the routes take. */
export const limit = 1024 * 1024

/** Answers how many bytes came and how they begin. */
const read = (inbound: Inbound) =>
  Effect.map(inbound.read(limit), (bytes) =>
    Reply.json(200, { length: bytes.length, start: bytes.subarray(0, 20).toString() })
  )

/** The same from a stream. */
const streamed = (inbound: Inbound) =>
  Effect.flatMap(inbound.stream(limit), (stream) =>
    Effect.async<Reply.Reply, ReturnType<typeof bodyProblemOf>>((resume) => {
      let length = 0
      stream.on("data", (chunk: Buffer) => (length += chunk.length))
      stream.once("end", () => resume(Effect.succeed(Reply.json(200, { length }))))
      stream.once("error", (error) => resume(Effect.fail(bodyProblemOf(error))))
    })
  )

const route = <const Name extends string>(name: Name, path: `/${string}`) =>
  HttpApiEndpoint.post(name, path)
    .setPayload(Schema.Unknown)
    .addSuccess(Schema.Unknown)
    .addError(InvalidRequest)
    .addError(BodyRefusal)
    .annotate(ReadsOwnBody, true)

/** Any header is one person's. */
class Anybody extends HttpApiMiddleware.Tag<Anybody>()("test/Anybody", { provides: CurrentCaller }) {}

const anybody = { account_id: "acc_anybody" } as Caller

const credentials = Layer.merge(
  Layer.succeed(Anybody, Effect.succeed(anybody)),
  Layer.succeed(Authentication, new Map([[Anybody.key, () => Effect.succeed(anybody)]]))
)

class EdgeApi extends HttpApi.make("edge").add(
  HttpApiGroup.make("edge")
    .add(route("lane", "/lane").annotate(Fast, true).middleware(Anybody))
    .add(route("read", "/router").middleware(Anybody))
    .add(route("stream", "/stream").middleware(Anybody))
    .add(
      HttpApiEndpoint.post("json", "/json")
        .setPayload(Schema.Struct({ name: Schema.String }))
        .addSuccess(Schema.Unknown)
    )
    .add(HttpApiEndpoint.get("get", "/get").addSuccess(Schema.Unknown))
) {}

const handlers = group(EdgeApi, "edge", (handlers) =>
  handlers
    .handleRaw(
      "lane",
      raw((_, inbound) => read(inbound))
    )
    .handleRaw(
      "read",
      raw((_, inbound) => read(inbound))
    )
    .handleRaw(
      "stream",
      raw((_, inbound) => streamed(inbound))
    )
    .handle("json", ({ payload }) => Effect.succeed(payload))
    .handle("get", () => Effect.succeed({ got: true }))
)

export const routes = ["/lane", "/router", "/stream"] as const

export interface Edge {
  readonly url: string
  readonly port: number
  readonly stop: () => Promise<void>
}

export const serve = (settings: Partial<BytesSettings> = {}): Promise<Edge> =>
  Effect.runPromise(
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(
        NodeServer.layer({ host: "127.0.0.1", port: 0 }).pipe(
          Layer.provide(
            Face.layer(
              ApiMiddleware.pipe(
                Layer.provideMerge(HttpApiBuilder.api(EdgeApi).pipe(Layer.provide(handlers))),
                Layer.provideMerge(credentials)
              )
            )
          ),
          Layer.provide(Bytes.layer(settings))
        ),
        scope
      )
      const { port, url } = yield* Effect.provide(NodeServer.Listening, context)
      return { url, port, stop: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
    })
  )

/** A connection, and what has come back on it. */
export interface Line {
  readonly socket: Socket
  readonly text: () => string
  readonly write: (bytes: string | Buffer) => void
  /** Waits until this has come, or the end of the connection. */
  readonly until: (pattern: RegExp) => Promise<string>
  /** Waits for the end of the connection. */
  readonly closed: Promise<string>
}

export const line = (port: number): Promise<Line> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => resolve({ socket, text: () => text, write, until, closed }))
    let text = ""
    let over = false
    const looks: Array<() => void> = []
    const write = (bytes: string | Buffer) => void socket.write(bytes)
    const closed = new Promise<string>((done) =>
      socket.once("close", () => {
        over = true
        done(text)
        for (const look of looks) look()
      })
    )
    const until = (pattern: RegExp) =>
      new Promise<string>((done) => {
        const look = () => {
          if (over || pattern.test(text)) done(text)
        }
        looks.push(look)
        look()
      })
    socket.setEncoding("latin1").on("data", (piece: string) => {
      text += piece
      for (const look of looks) look()
    })
    socket.on("error", (error) => (text === "" ? reject(error) : undefined))
  })

/** A request's head. */
export const head = (path: string, ...lines: ReadonlyArray<string>): string =>
  [`POST ${path} HTTP/1.1`, "Host: x", "Authorization: Bearer x", ...lines, "", ""].join("\r\n")
