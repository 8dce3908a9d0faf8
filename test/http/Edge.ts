/** Servers on real ports, with routes in the fast lane and behind the router. */
import {
  HttpApi,
  HttpApiBuilder,
  HttpApiEndpoint,
  HttpApiGroup,
  HttpApiMiddleware,
  HttpServerRequest
} from "@effect/platform"
import { Context, Effect, Exit, Layer, Logger, Schema, Scope } from "effect"
import { connect } from "node:net"
import type { Socket } from "node:net"
import { Readable } from "node:stream"
import { Bytes } from "../../src/http/transport/Bytes.ts"
import type { BytesSettings } from "../../src/http/transport/Bytes.ts"
import { CurrentCaller } from "../../src/http/lanes/Caller.ts"
import { Face } from "../../src/http/lanes/Face.ts"
import { BodyBytesMax, Fast, ReadsOwnBody } from "../../src/http/contract/Annotations.ts"
import { ApiMiddleware } from "../../src/http/lanes/ApiMiddleware.ts"
import type { Inbound } from "../../src/http/transport/Inbound.ts"
import { bodyProblemOf } from "../../src/http/transport/Incoming.ts"
import { Observer } from "../../src/http/lanes/Observer.ts"
import { RateLimitsConfig } from "../../src/http/transport/RateLimits.ts"
import { BodyRefusal } from "../../src/http/contract/Problems.ts"
import { Busy } from "../../src/kernel/Busy.ts"
import { InvalidRequest } from "../../src/kernel/InvalidRequest.ts"
import { group, raw } from "../../src/http/lanes/Raw.ts"
import * as Reply from "../../src/http/transport/Reply.ts"
import { Authentication } from "../../src/http/lanes/Authentication.ts"
import type { Authenticate } from "../../src/http/lanes/Authentication.ts"
import { Decimal } from "../../src/kernel/Decimal.ts"
import type { Caller } from "../../src/kernel/Caller.ts"
import * as NodeServer from "../../src/http/server/NodeServer.ts"

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

/** What went on in handlers, as it happened. */
export const events: Array<string> = []

/** Answers, and ways to give none, by `?how=`. */
const ways: Record<string, Effect.Effect<Reply.Reply, Busy>> = {
  dies: Effect.die(new Error("of something that nobody is told")),
  throws: Effect.suspend(() => {
    throw new TypeError("of something that nobody is told")
  }),
  "dies of a refusal": Effect.die(new Busy({ retry_after: 5 })),
  refuses: Effect.fail(new Busy({ message: "not “now”", retry_after: 5 })),
  "refuses and dies": Effect.ensuring(Effect.fail(new Busy()), Effect.die(new Error("as well"))),
  "fails with a text": Effect.fail("a text" as never),
  overflows: Effect.sync(() => {
    const deep = (): number => 1 + deep()
    return Reply.json(200, deep())
  }),
  "interrupts itself": Effect.interrupt,
  "a text": Effect.succeed({ status: 422, headers: { "content-type": "text/plain" }, body: '{"error":"no"}' }),
  "a vendor's JSON": Effect.succeed({
    status: 529,
    headers: { "content-type": "application/problem+json", "retry-after": "3" },
    body: Buffer.from('{"error":{"message":"too much"}}')
  }),
  empty: Effect.succeed({ status: 429, headers: { "content-type": "application/json" }, body: "" }),
  digits: Effect.sync(() => Reply.json(200, { amount: new Decimal("12345678901234567.890") })),
  events: Effect.sync(() => ({
    status: 200,
    headers: { "content-type": "text/event-stream" },
    body: Readable.from([Buffer.from("data: 1\n\n"), Buffer.from("data: 2\n\n")])
  })),
  waits: Effect.onInterrupt(
    Effect.zipRight(
      Effect.sync(() => events.push("waits")),
      Effect.never
    ),
    () => Effect.sync(() => events.push("interrupted"))
  ),
  "settles first": Effect.sync(() => events.push("waits")).pipe(
    Effect.zipRight(Effect.sleep("300 millis")),
    Effect.zipRight(Effect.sync(() => events.push("settled"))),
    Effect.as(Reply.json(200, {})),
    Effect.uninterruptible
  )
}

const route = <const Name extends string>(name: Name, path: `/${string}`) =>
  HttpApiEndpoint.post(name, path)
    .setPayload(Schema.Unknown)
    .addSuccess(Schema.Unknown)
    .addError(InvalidRequest)
    .addError(BodyRefusal)
    .annotate(ReadsOwnBody, true)

/** Any header is one person's, but one that nobody can read. */
const anyone = (authorization: string | undefined) => {
  if (authorization === "Bearer unreadable") throw new Error("of something that nobody is told")
  return Effect.succeed(anybody)
}

class Anybody extends HttpApiMiddleware.Tag<Anybody>()("test/Anybody", { provides: CurrentCaller }) {}

const anybody = { account_id: "acc_anybody" } as Caller

const credentials = Layer.merge(
  Layer.succeed(
    Anybody,
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => anyone(headers["authorization"]))
  ),
  Layer.succeed(
    Authentication,
    new Map<string, Authenticate>([[Anybody.key, (request) => anyone(request.header("authorization"))]])
  )
)

class EdgeApi extends HttpApi.make("edge").add(
  HttpApiGroup.make("edge")
    .add(route("lane", "/lane").annotate(Fast, true).middleware(Anybody))
    .add(
      HttpApiEndpoint.get("way", "/way")
        .addSuccess(Schema.Unknown)
        .addError(Busy)
        .annotate(Fast, true)
        .middleware(Anybody)
    )
    .add(route("read", "/router").middleware(Anybody))
    .add(route("stream", "/stream").middleware(Anybody))
    .add(
      HttpApiEndpoint.post("json", "/json")
        .setPayload(Schema.Struct({ name: Schema.String }))
        .addSuccess(Schema.Unknown)
    )
    .add(
      HttpApiEndpoint.post("hook", "/hook")
        .setPayload(Schema.Struct({ name: Schema.String }))
        .addSuccess(Schema.Unknown)
        .annotate(BodyBytesMax, limit)
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
      "way",
      raw((_, inbound) => ways[inbound.query().get("how") ?? ""] ?? Effect.die("no such way"))
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
    .handle("hook", ({ payload }) => Effect.succeed(payload))
    .handle("get", () => Effect.succeed({ got: true }))
)

const face = Face.layer(
  ApiMiddleware.pipe(
    Layer.provideMerge(HttpApiBuilder.api(EdgeApi).pipe(Layer.provide(handlers))),
    Layer.provideMerge(credentials)
  )
)

export const routes = ["/lane", "/router", "/stream"] as const

export interface Edge {
  readonly url: string
  readonly port: number
  readonly stop: () => Promise<void>
}

export interface EdgeSettings extends Partial<BytesSettings> {
  /** Only the router serves. */
  readonly no_lane?: boolean
}

/** The same application with an empty lane. */
const withoutLane = Layer.map(face, (context) =>
  Context.make(Face, { app: Context.get(context, Face).app, lane: new Map() })
)

export const serve = ({ no_lane = false, ...settings }: EdgeSettings = {}): Promise<Edge> =>
  Effect.runPromise(
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(
        NodeServer.layer({ host: "127.0.0.1", port: 0 }).pipe(
          Layer.provide(no_lane ? withoutLane : face),
          Layer.provide(Layer.succeed(Observer, (name, status) => void events.push(`${name} ${status}`))),
          Layer.provide(Logger.remove(Logger.defaultLogger)),
          Layer.provide(Bytes.layer(settings)),
          Layer.provide(
            Layer.succeed(RateLimitsConfig, { ...RateLimitsConfig.defaultValue(), trust_forwarded_for: true })
          )
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
