/** The raw routes inside the `HttpApi`: the same handlers as in the express lane, for every other server. */
import type { HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { CurrentCaller } from "./Caller.ts"
import type { Caller } from "../kernel/Caller.ts"
import * as Inbound from "./Inbound.ts"
import * as Reply from "./Reply.ts"

export const raw =
  <E, R>(handler: (caller: Caller, inbound: Inbound.Inbound) => Effect.Effect<Reply.Reply, E, R>) =>
  ({
    request
  }: {
    readonly request: HttpServerRequest.HttpServerRequest
  }): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | CurrentCaller> =>
    Effect.flatMap(Effect.all([CurrentCaller, Inbound.ofRequest(request)]), ([caller, inbound]) => {
      inbound.heldBy(caller.account_id)
      return Effect.map(handler(caller, inbound), Reply.toResponse)
    })
