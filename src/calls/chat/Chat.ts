/** Chat and text completions, in OpenAI's protocol. */
import { Context, Effect, Layer } from "effect"
import type { Nano } from "../../kernel/Money.ts"
import { chat, text } from "../dialects/chat/Completions.ts"
import { Engine } from "../engine/Engine.ts"
import type { Call, ChatProblem, Completed, EventsOf, Reach, Streamed } from "../engine/Engine.ts"
import { eventsOf } from "../engine/Events.ts"
import type { ChatChunk, ChatCompletion, TextCompletion } from "../engine/Events.ts"
import type { ChatPrompt, TextPrompt } from "../prompts/Prompt.ts"

/** One chat completion that is asked for. */
export interface ChatCall extends Call<ChatPrompt> {}

/** One text completion that is asked for. */
export interface TextCall extends Call<TextPrompt> {}

/** Each method picks its answer's form by itself, refuses and is interrupted as `EngineContract` says. */
export interface ChatContract {
  readonly complete: (call: ChatCall) => Effect.Effect<Completed<ChatCompletion>, ChatProblem>
  /** Answers once an upstream has begun to. */
  readonly stream: (call: ChatCall) => Effect.Effect<Streamed<ChatChunk>, ChatProblem>
  readonly completeText: (call: TextCall) => Effect.Effect<Completed<TextCompletion>, ChatProblem>
  readonly streamText: (call: TextCall) => Effect.Effect<Streamed<TextCompletion>, ChatProblem>
  /** By which protocols clients reach a model, these and the others. */
  readonly reach: (model: string) => Reach
  /** No call costs less: 0 where a model is free. */
  readonly least: Nano
}

export class Chat extends Context.Tag("tollgate/chat/Chat")<Chat, ChatContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Chat, make).pipe(Layer.provide(Engine.layer)))
}

const make = Effect.map(Engine, ({ complete, least, reach, stream }): ChatContract => ({
  complete: complete(chat),
  stream: stream(chat, eventsOf as EventsOf<ChatChunk>),
  completeText: complete(text),
  streamText: stream(text, eventsOf as EventsOf<TextCompletion>),
  reach,
  least
}))
