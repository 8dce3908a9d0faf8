/**
 * Responses, in OpenAI's newer protocol.
 *
 * Where the specification is silent:
 * - `store` is sent upstream as `false` unless the upstream keeps responses for its callers (`keeps_responses`). Then the client's value is sent;
 *   without one, the vendor's default applies (OpenAI keeps responses). `previous_response_id`, `conversation` and items by reference are refused
 *   if the upstream keeps nothing. An id belongs to the tenant and account that received it (`calls/prompts/Kept`). Any other request that
 *   names it gets 404 and does not reach the vendor.
 * - `background` is refused, because an answer that is fetched later cannot be charged.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import { Engine } from "../engine/Engine.ts"
import type { Call, ChatProblem, Completed, Streamed } from "../engine/Engine.ts"
import * as Kept from "../prompts/Kept.ts"
import { findModel, Models } from "../prompts/Model.ts"
import type { Nano } from "../../kernel/Money.ts"
import { eventsOf } from "./Events.ts"
import type { ModelResponse, ResponseEvent } from "./Events.ts"
import { namedIn } from "../dialects/responses/Named.ts"
import type { ResponsesPrompt } from "../dialects/responses/Prompt.ts"
import { responses } from "../dialects/responses/Protocol.ts"

/** A request for one response. */
export interface ResponseCall extends Call<ResponsesPrompt> {}

/** Each method sets the form of its answer. `EngineContract` describes refusals and interruption. */
export interface ResponsesContract {
  readonly create: (call: ResponseCall) => Effect.Effect<Completed<ModelResponse>, ChatProblem | Kept.NotHandedOut>
  /** Returns once an upstream has begun to answer. */
  readonly stream: (call: ResponseCall) => Effect.Effect<Streamed<ResponseEvent>, ChatProblem | Kept.NotHandedOut>
  /** The price of the cheapest possible call; 0 if a model is free. */
  readonly least: Nano
}

export class Responses extends Context.Tag("tollgate/responses/Responses")<Responses, ResponsesContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Responses, make).pipe(Layer.provide(Engine.layer)))
}

const make = Effect.gen(function* () {
  const { complete, keeps_responses, least, stream } = yield* Engine
  const catalogue = yield* Models
  const kept = Kept.make(yield* SqlClient)

  /** Refuses a request with an id that the caller has not received. The prompt is not validated yet. */
  const checked = Effect.fnUntraced(function* ({ caller, prompt }: ResponseCall) {
    const unknown = yield* kept.unknownAmong(caller, namedIn(prompt), yield* Clock.currentTimeMillis)
    if (unknown !== undefined) return yield* new Kept.NotHandedOut({ field: unknown.field })
  })
  const keeps = (prompt: ResponsesPrompt | null): prompt is ResponsesPrompt => {
    const model = typeof prompt?.model === "string" ? findModel(catalogue, prompt.model) : undefined
    return model !== undefined && keeps_responses.has(model.id)
  }
  const created = complete<ResponsesPrompt, ModelResponse>(responses)
  const streamed = stream<ResponsesPrompt, ResponseEvent>(responses, eventsOf)
  /** If the model keeps nothing, the call continues without a check. */
  const within =
    <A, E>(ask: (call: ResponseCall) => Effect.Effect<A, E>) =>
    (call: ResponseCall): Effect.Effect<A, E | Kept.NotHandedOut> =>
      keeps_responses.size > 0 && keeps(call.prompt) ? Effect.zipRight(checked(call), ask(call)) : ask(call)
  return { create: within(created), stream: within(streamed), least } satisfies ResponsesContract
})
