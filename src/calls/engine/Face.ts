/** Creates the engine's idempotent routes. They convert a JSON prompt to a call and the call's result to an HTTP response. */
import { Effect, Either } from "effect"
import type { Shape } from "../../http/contract/Annotations.ts"
import type { Inbound } from "../../http/transport/Inbound.ts"
import { parse } from "../../http/transport/Json.ts"
import type { Reply } from "../../http/transport/Reply.ts"
import type { Beside } from "../../http/idempotency/Idempotency.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { isDone } from "../../kernel/hot/Done.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { ProblemInstance } from "../../kernel/Problem.ts"
import { meteredRoutes } from "../metered/Routes.ts"
import { headersOf, usageHeader } from "../metered/ReceiptHeaders.ts"
import type { ClientProtocol } from "../../upstream/models/Protocol.ts"
import { parsedMax } from "../threads/BodyThreads.ts"
import type { PromptRoute } from "./BodyTask.ts"
import type { Call, ChatProblem, Completed, Streamed } from "./Engine.ts"
import * as LongPrompts from "./LongPrompts.ts"

/** The maximum request body size, in bytes. A body may contain images. */
export const requestBytesMax = 32 * 1024 * 1024

/** A service's methods for one route. They validate the prompt themselves. */
export interface Methods<E extends ProblemInstance<string>> {
  readonly protocol: ClientProtocol
  readonly complete: (call: never) => Effect.Effect<Completed<unknown>, ChatProblem | E>
  readonly stream: (call: never) => Effect.Effect<Streamed<unknown>, ChatProblem | E>
}

export interface RouteFormat {
  /** The format of error responses. */
  readonly shape: Shape
  /** Reads the call's fields from the request headers. */
  readonly ofHeaders?: (inbound: Inbound) => object
}

/**
 * Returns a function that creates a service's route. `least` is the price of the cheapest possible call. Idempotency keys are scoped by the route's
 * name.
 */
export const routes = Effect.fnUntraced(function* (least: Nano) {
  const meteredRoute = yield* meteredRoutes([least])
  return <E extends ProblemInstance<string> = never>(
    name: string,
    methods: Methods<E>,
    { ofHeaders, shape }: Partial<RouteFormat> = {}
  ) => meteredRoute({ name, body_bytes_max: requestBytesMax, answer: serve(methods, ofHeaders, shape), shape })
})

/** Reads a route's prompt. A separate thread reads a long prompt, and the result then has no `json`. */
export const promptOf = Effect.fnUntraced(function* (route: PromptRoute, caller: Caller, inbound: Inbound) {
  const json = yield* inbound.read(requestBytesMax)
  if (json.length > parsedMax) return { prompt: yield* LongPrompts.read(route, json, caller.account_id) }
  return { json, prompt: yield* parse(json) }
})

const serve = <E extends ProblemInstance<string>>(
  { complete, protocol, stream }: Methods<E>,
  ofHeaders: RouteFormat["ofHeaders"],
  shape: Shape | undefined
) =>
  Effect.fnUntraced(function* (caller: Caller, inbound: Inbound, beside: Beside | undefined) {
    const read = inbound.read(requestBytesMax)
    const json = isDone(read) ? read.value : yield* read
    const parsed =
      json.length <= parsedMax ? parse(json) : Either.right(yield* LongPrompts.read(protocol, json, caller.account_id))
    if (Either.isLeft(parsed)) return yield* parsed.left
    const prompt = parsed.right as { readonly stream?: unknown } | null
    const plain: Call<unknown> = {
      caller,
      prompt,
      json: prompt instanceof LongPrompts.LongPrompt ? undefined : json,
      beside,
      request_id: inbound.request_id
    }
    const call = (ofHeaders === undefined ? plain : Object.assign(plain, ofHeaders(inbound))) as never
    if (prompt?.stream === true) return streamReply(yield* stream(call), shape)
    const completed = yield* inbound.withRoom((room) => complete(Object.assign(call, { room })))
    return completeReply(completed, shape)
  })

const completeReply = ({ bytes, fallback_model, receipt }: Completed<unknown>, shape: Shape | undefined): Reply => ({
  status: 200,
  headers: {
    "content-type": "application/json",
    ...headersOf(receipt, shape),
    ...(fallback_model !== undefined && fallbackHeader(fallback_model))
  },
  body: bytes
})

const streamReply = (
  { bytes, fallback_model, rates, usage_id }: Streamed<unknown>,
  shape: Shape | undefined
): Reply => ({
  status: 200,
  headers: {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    ...usageHeader({ usage_id, rates }, shape),
    ...(fallback_model !== undefined && fallbackHeader(fallback_model))
  },
  body: bytes
})

/** Returns the header that identifies the fallback. The id may be any string, but a header must be ASCII. */
const fallbackHeader = (model: string) => ({ "x-fallback-model": encodeURI(model) })
