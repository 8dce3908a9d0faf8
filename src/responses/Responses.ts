/**
 * Responses, in OpenAI's newer protocol.
 *
 * Where the specification is silent:
 * - `store` goes upstream as `false` unless the upstream keeps responses for its callers (`keeps_responses`): then it goes as the client
 *   says, and where that says nothing, the vendor's own default holds (OpenAI keeps). `previous_response_id`, `conversation` and items by
 *   reference are refused where nothing is kept. Who knows the id of a response that an upstream has kept may go on from it.
 * - `background` is refused: an answer that is fetched later cannot be charged.
 */
import { Context, Effect, Layer } from "effect"
import { Engine } from "../chat/Engine.ts"
import type { Call, ChatProblem, Completed, Streamed } from "../chat/Engine.ts"
import type { Nano } from "../kernel/Money.ts"
import { eventsOf } from "./Events.ts"
import type { ModelResponse, ResponseEvent } from "./Events.ts"
import type { ResponsesPrompt } from "./Prompt.ts"
import { responses } from "./Protocol.ts"

/** One response that is asked for. */
export interface ResponseCall extends Call<ResponsesPrompt> {}

/** Each method picks its answer's form by itself, refuses and is interrupted as `EngineContract` says. */
export interface ResponsesContract {
  readonly create: (call: ResponseCall) => Effect.Effect<Completed<ModelResponse>, ChatProblem>
  /** Answers once an upstream has begun to. */
  readonly stream: (call: ResponseCall) => Effect.Effect<Streamed<ResponseEvent>, ChatProblem>
  /** No call costs less: 0 where a model is free. */
  readonly least: Nano
}

export class Responses extends Context.Tag("tollgate/responses/Responses")<Responses, ResponsesContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Responses, make).pipe(Layer.provide(Engine.layer)))
}

const make = Effect.map(Engine, ({ complete, least, stream }): ResponsesContract => ({
  create: complete(responses),
  stream: stream(responses, eventsOf),
  least
}))
