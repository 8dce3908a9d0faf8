/**
 * Raw routes. Their handlers take the caller and the unparsed request and return a `Reply`. A handler is written once, with `raw`. The platform's
 * router serves it, and so does the fast lane if the contract marks it `Fast`.
 */
import { HttpApiBuilder } from "@effect/platform"
import type { HttpApiEndpoint, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Context, Effect, Layer } from "effect"
import type { Caller } from "../../kernel/Caller.ts"
import { CurrentCaller } from "./Caller.ts"
import * as Inbound from "../transport/Inbound.ts"
import * as Reply from "../transport/Reply.ts"

/** A raw handler. It requires no services when it runs, because its group provides them when it is built. */
export type RawHandler<E> = (caller: Caller, inbound: Inbound.Inbound) => Effect.Effect<Reply.Reply, E>

/** The function that the platform's router calls. */
type RouterHandler<E> = (input: {
  readonly request: HttpServerRequest.HttpServerRequest
}) => Effect.Effect<HttpServerResponse.HttpServerResponse, E, CurrentCaller>

/** The raw handler of each router handler that `raw` created. */
const rawHandlers = new WeakMap<object, RawHandler<unknown>>()

/** Converts a raw handler to one for `handleRaw`. */
export const raw = <E>(handler: RawHandler<E>): RouterHandler<E> => {
  const routed: RouterHandler<E> = ({ request }) =>
    Effect.flatMap(Effect.all([CurrentCaller, Inbound.ofRequest(request)]), ([caller, inbound]) => {
      inbound.heldBy(caller.account_id)
      return Effect.map(handler(caller, inbound), Reply.toResponse)
    })
  rawHandlers.set(routed, handler)
  return routed
}

/** The raw handlers of an `HttpApi`, by `nameOf`. Without this layer, they are not collected and there is no fast lane. */
export class RawHandlers extends Context.Reference<RawHandlers>()("tollgate/http/RawHandlers", {
  defaultValue: (): Map<string, RawHandler<unknown>> | undefined => undefined
}) {
  static readonly layer = Layer.sync(RawHandlers, () => new Map<string, RawHandler<unknown>>())
}

/** Returns an endpoint's name, unique across groups, such as `chat.completion`. */
export const nameOf = (group: string, endpoint: string): string => `${group}.${endpoint}`

/** The part of a group's handlers that this file uses. */
interface Built {
  readonly handlers: Iterable<{
    readonly endpoint: Pick<HttpApiEndpoint.HttpApiEndpoint.AnyWithProps, "name">
    readonly handler: object
  }>
}

/** Works like `HttpApiBuilder.group` and also collects the raw handlers, for a group with fast-lane endpoints. */
export const group = ((
  api: never,
  name: string,
  build: (handlers: unknown) => Built | Effect.Effect<Built, unknown, unknown>
) =>
  HttpApiBuilder.group(api, name as never, (handlers) => {
    const built = build(handlers)
    return Effect.flatMap(RawHandlers, (collected) =>
      Effect.map(Effect.isEffect(built) ? built : Effect.succeed(built), (built) => {
        for (const { endpoint, handler } of built.handlers) {
          const one = rawHandlers.get(handler)
          if (one !== undefined) collected?.set(nameOf(name, endpoint.name), one)
        }
        return built
      })
    ) as never
  })) as unknown as typeof HttpApiBuilder.group
