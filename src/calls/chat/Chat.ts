/** Serves chat and text completions in OpenAI's protocol. */
import { Context, Effect, Layer } from "effect"
import type { Nano } from "../../kernel/Money.ts"
import { chat, text } from "../dialects/chat/Completions.ts"
import { Engine } from "../engine/Engine.ts"
import type { Call, ChatProblem, Completed, EventsOf, Reach, Streamed } from "../engine/Engine.ts"
import { eventsOf } from "../engine/Events.ts"
import type { ChatChunk, ChatCompletion, TextCompletion } from "../engine/Events.ts"
import type { ChatPrompt, TextPrompt } from "../prompts/Prompt.ts"

export interface ChatCall extends Call<ChatPrompt> {}

export interface TextCall extends Call<TextPrompt> {}

/** The chat service. Errors and interruption are the same as in `EngineContract`. */
export interface ChatContract {
  readonly complete: (call: ChatCall) => Effect.Effect<Completed<ChatCompletion>, ChatProblem>
  /** Returns once an upstream has begun to respond. */
  readonly stream: (call: ChatCall) => Effect.Effect<Streamed<ChatChunk>, ChatProblem>
  readonly completeText: (call: TextCall) => Effect.Effect<Completed<TextCompletion>, ChatProblem>
  readonly streamText: (call: TextCall) => Effect.Effect<Streamed<TextCompletion>, ChatProblem>
  /** Returns the client protocols that can be used to call a model, and those that its first upstream serves without translation. */
  readonly reach: (model: string) => Reach
  /** The price of the cheapest possible call, in nano-USD; 0 if a model is free or none is configured. */
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
