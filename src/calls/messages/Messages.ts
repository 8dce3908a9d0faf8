/**
 * Creates messages and counts tokens, in Anthropic's protocol.
 *
 * Where the specification is silent:
 * - The model's first upstream that speaks Messages counts the tokens. Vendors count for free, so a count is not a metered call and leaves no usage
 *   record. An API key's model list applies. A caller that cannot pay for a call gets a 402, and an account that exceeds 300 counts per minute gets a
 *   429. If no upstream can count or counting fails, the service estimates one token per four bytes plus `max_attachment_tokens` per attachment.
 * - The preview features in `betas` are sent to upstreams that speak Messages. A feature that changes the price is rejected unless the model's
 *   `extras` list it under `anthropic-beta`.
 */
import { Clock, Context, Effect, Either, Layer } from "effect"
import { Engine } from "../engine/Engine.ts"
import type { Call, ChatProblem, Completed, Streamed } from "../engine/Engine.ts"
import { LongPrompt } from "../engine/LongPrompts.ts"
import { findModel, Models } from "../prompts/Model.ts"
import type { Model } from "../prompts/Model.ts"
import { UnknownChatModel } from "../prompts/Problems.ts"
import { promptJson } from "../prompts/Outgoing.ts"
import { vendorObjectError, promptTokensEstimate } from "../prompts/Prompt.ts"
import type { ValidPrompt } from "../prompts/Prompt.ts"
import { Gate } from "../../books/gate/Gate.ts"
import { ModelNotAllowed } from "../../books/gate/Problems.ts"
import type { InsufficientCredits } from "../../books/gate/Problems.ts"
import { mayCall } from "../../kernel/Caller.ts"
import type { Caller } from "../../kernel/Caller.ts"
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import * as MinuteLimit from "../../kernel/MinuteLimit.ts"
import type { Nano } from "../../kernel/Money.ts"
import { parse, refused } from "../../upstream/wire/Failures.ts"
import type { UpstreamRejected } from "../../upstream/wire/Problems.ts"
import { Upstreams } from "../../upstream/models/Upstreams.ts"
import { eventsOf } from "./Events.ts"
import type { ModelMessage, MessageEvent } from "./Events.ts"
import { CountedTooOften } from "./Problems.ts"
import { readCount } from "../dialects/messages/Prompt.ts"
import type { CountTokensPrompt, MessagesPrompt } from "../dialects/messages/Prompt.ts"
import { messages } from "../dialects/messages/Protocol.ts"

/** The protocol's request headers. */
export interface Preview {
  /** The preview features that the client requests. */
  readonly betas?: ReadonlyArray<string> | undefined
  /** The protocol version, `2023-06-01` by default. */
  readonly version?: string | undefined
}

export interface MessageCall extends Omit<Call<MessagesPrompt>, "headers">, Preview {}

export interface CountTokensCall extends Preview {
  /** The caller, which must be able to pay and be allowed to use the model. Without a caller, neither condition nor the rate limit is checked. */
  readonly caller?: Caller | undefined
  readonly prompt: CountTokensPrompt
  readonly json?: Buffer | undefined
  readonly request_id?: string | undefined
}

export interface Counted {
  readonly input_tokens: number
  /** Whether the service estimated the count. */
  readonly estimated: boolean
}

/** The Messages service. Errors and interruption are the same as in `EngineContract`. */
export interface MessagesContract {
  readonly create: (call: MessageCall) => Effect.Effect<Completed<ModelMessage>, ChatProblem>
  /** Returns once an upstream has begun to respond. */
  readonly stream: (call: MessageCall) => Effect.Effect<Streamed<MessageEvent>, ChatProblem>
  /** Counts a prompt's tokens for free. Fails with the vendor's reason if the vendor rejects the prompt. */
  readonly countTokens: (
    call: CountTokensCall
  ) => Effect.Effect<
    Counted,
    InvalidRequest | ModelNotAllowed | InsufficientCredits | CountedTooOften | UpstreamRejected
  >
  /** The price of the cheapest possible `create` or `stream` call, in nano-USD. It is 0 if a model is free or none is configured. */
  readonly least: Nano
}

export class Messages extends Context.Tag("tollgate/messages/Messages")<Messages, MessagesContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Messages, make).pipe(Layer.provide(Engine.layer)))
}

const countsPerMinute = 300

const make = Effect.gen(function* () {
  const engine = yield* Engine
  const gate = yield* Gate
  const counts = yield* MinuteLimit.make("count_tokens", countsPerMinute)
  const catalogue = yield* Models
  const upstreams = yield* Upstreams
  const create = engine.complete<MessagesPrompt, ModelMessage>(messages)
  const stream = engine.stream<MessagesPrompt, MessageEvent>(messages, eventsOf)

  /** Returns the vendor's token count, or `undefined` if no upstream can count or counting fails. Fails if the vendor rejects the prompt. */
  const countedFor = Effect.fnUntraced(function* (model: Model, prompt: ValidPrompt, call: CountTokensCall) {
    const route = model.routes.find(({ upstream }) => upstreams.get(upstream)!.speaks.includes("messages"))
    if (route === undefined) return undefined
    const upstream = upstreams.get(route.upstream)!
    const request = {
      method: "POST",
      path: "/messages/count_tokens",
      headers: { ...upstream.headersFor("messages"), ...messages.headers, ...headersOf(call) },
      body: promptJson(prompt, { ...prompt.body, model: route.model }, messages.long_member)
    } as const
    const answer = yield* Effect.option(upstream.unbilled.exchange(request, limits))
    if (answer._tag === "None") return undefined
    const { body, status } = answer.value
    if (status === 200) {
      const tokens = parse(body)?.input_tokens
      return typeof tokens === "number" ? tokens : undefined
    }
    return yield* refused(upstream.name, answer.value, call.request_id).pipe(
      Effect.catchAll((problem) => (problem._tag === "UpstreamRejected" ? problem : Effect.succeed(undefined)))
    )
  })

  const admitted = Effect.fnUntraced(function* (caller: Caller, model: string) {
    if (!mayCall(caller, model))
      return yield* new ModelNotAllowed({ model, allowed_models: caller.allowed_models ?? [] })
    yield* gate.mayPay(caller)
    const retry_after = yield* counts.take(caller.account_id, yield* Clock.currentTimeMillis)
    if (retry_after !== undefined) return yield* new CountedTooOften({ retry_after })
  })

  const countTokens = Effect.fnUntraced(function* (call: CountTokensCall) {
    const read = call.prompt instanceof LongPrompt ? Either.right(call.prompt.valid) : readCount(call.prompt, call.json)
    if (Either.isLeft(read)) return yield* read.left
    const model = findModel(catalogue, read.right.model)
    if (model === undefined) return yield* new UnknownChatModel(read.right.model)
    const { names_kept } = read.right
    if (names_kept !== undefined && model.vendor_files !== true) return yield* vendorObjectError(names_kept)
    if (call.caller !== undefined) yield* admitted(call.caller, model.id)
    const counted = yield* countedFor(model, read.right, call)
    return counted === undefined
      ? { input_tokens: promptTokensEstimate(model, read.right), estimated: true }
      : { input_tokens: counted, estimated: false }
  })

  return {
    create: (call) => create(withHeaders(call)),
    stream: (call) => stream(withHeaders(call)),
    countTokens,
    least: engine.least
  } satisfies MessagesContract
})

const limits = { limit: 1024 * 1024, timeout: 30_000, read_on: false } as const

const withHeaders = (call: MessageCall): Call<MessagesPrompt> =>
  call.betas === undefined && call.version === undefined ? call : { ...call, headers: headersOf(call) }

const headersOf = ({ betas, version }: Preview): Readonly<Record<string, string>> => ({
  ...(betas !== undefined && betas.length > 0 && { "anthropic-beta": betas.join(",") }),
  ...(version !== undefined && { "anthropic-version": version })
})
