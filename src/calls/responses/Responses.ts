/**
 * Serves OpenAI's Responses protocol.
 *
 * Where the specification is silent:
 * - If the upstream stores responses for callers (`keeps_responses`), it receives the client's `store`. If the client does not set `store`, the
 *   vendor's default applies. OpenAI stores responses by default. Other upstreams receive `store: false`, and the service rejects
 *   `previous_response_id`, `conversation` and references to items. An id belongs to the tenant and account that received it (`calls/prompts/Kept`).
 *   A request with another caller's id gets a 404 and never reaches the vendor.
 * - `background` is rejected, because a response that is fetched later cannot be charged.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import { Engine } from "../engine/Engine.ts"
import { LongPrompt } from "../engine/LongPrompts.ts"
import type { Call, ChatProblem, Completed, Streamed } from "../engine/Engine.ts"
import * as Kept from "../prompts/Kept.ts"
import { findModel, Models } from "../prompts/Model.ts"
import type { Nano } from "../../kernel/Money.ts"
import { eventsOf } from "./Events.ts"
import type { ModelResponse, ResponseEvent } from "./Events.ts"
import { namedIn } from "../dialects/responses/Named.ts"
import type { ResponsesPrompt } from "../dialects/responses/Prompt.ts"
import { responses } from "../dialects/responses/Protocol.ts"

export interface ResponseCall extends Call<ResponsesPrompt> {}

/** The Responses service. Errors and interruption are the same as in `EngineContract`. */
export interface ResponsesContract {
  readonly create: (call: ResponseCall) => Effect.Effect<Completed<ModelResponse>, ChatProblem | Kept.NotHandedOut>
  /** Returns once an upstream has begun to respond. */
  readonly stream: (call: ResponseCall) => Effect.Effect<Streamed<ResponseEvent>, ChatProblem | Kept.NotHandedOut>
  /** The price of the cheapest possible call, in nano-USD; 0 if a model is free or none is configured. */
  readonly least: Nano
}

export class Responses extends Context.Tag("tollgate/responses/Responses")<Responses, ResponsesContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Responses, make).pipe(Layer.provide(Engine.layer)))
}

const make = Effect.gen(function* () {
  const { complete, keeps_responses, least, stream } = yield* Engine
  const catalogue = yield* Models
  const kept = Kept.make(yield* SqlClient)

  /**
   * Fails with `NotHandedOut` if a request contains an id that its caller has not received or that has expired. A short prompt has not been validated
   * yet.
   */
  const checked = Effect.fnUntraced(function* ({ caller, prompt }: ResponseCall) {
    const named = prompt instanceof LongPrompt ? prompt.valid.long!.named : namedIn(prompt)
    const unknown = yield* kept.unknownAmong(caller, named, yield* Clock.currentTimeMillis)
    if (unknown !== undefined) return yield* new Kept.NotHandedOut({ field: unknown.field })
  })
  const keeps = (prompt: ResponsesPrompt | null): boolean => {
    const name = prompt instanceof LongPrompt ? prompt.valid.model : prompt?.model
    const model = typeof name === "string" ? findModel(catalogue, name) : undefined
    return model !== undefined && keeps_responses.has(model.id)
  }
  const created = complete<ResponsesPrompt, ModelResponse>(responses)
  const streamed = stream<ResponsesPrompt, ResponseEvent>(responses, eventsOf)
  /** Runs the call. If the model stores responses, the ids are checked first. */
  const within =
    <A, E>(ask: (call: ResponseCall) => Effect.Effect<A, E>) =>
    (call: ResponseCall): Effect.Effect<A, E | Kept.NotHandedOut> =>
      keeps_responses.size > 0 && keeps(call.prompt) ? Effect.zipRight(checked(call), ask(call)) : ask(call)
  return { create: within(created), stream: within(streamed), least } satisfies ResponsesContract
})
