/** Text to speech over the OpenAI audio route: the audio passes through as it comes, at the model's price of a character. */
import { Context, Effect, Layer } from "effect"
import type { Either } from "effect"
import { Gate } from "../gate/Gate.ts"
import type { Admission, Measured, Metered } from "../gate/Gate.ts"
import type { InsufficientCredits } from "../gate/Problems.ts"
import { json } from "../http/Body.ts"
import type { Caller } from "../kernel/Caller.ts"
import type { Inbound } from "../http/Inbound.ts"
import type { BodyProblem } from "../http/Incoming.ts"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"
import type { Reply } from "../http/Reply.ts"
import { Idempotency } from "../idempotency/Idempotency.ts"
import type { Beside, IdempotencyProblem } from "../idempotency/Idempotency.ts"
import { toDecimal } from "../kernel/Money.ts"
import { charge } from "../kernel/Price.ts"
import { PriceVersions } from "../prices/PriceVersions.ts"
import { failed, refused } from "../upstream/Failures.ts"
import type { UpstreamProblem } from "../upstream/Failures.ts"
import * as Passage from "../upstream/Passage.ts"
import { pick } from "../upstream/Provider.ts"
import { Upstreams } from "../upstream/Upstreams.ts"
import * as Wire from "../upstream/Wire.ts"
import { SpeechProviders } from "./Provider.ts"
import type { SpeechModel, SpeechProvider } from "./Provider.ts"
import { charactersOf, formats, SpeechRequest, ToolSpeechRequest } from "./Request.ts"

type SpeechProblem = BodyProblem | InsufficientCredits | IdempotencyProblem | UpstreamProblem

export interface SpeechContract {
  /** `POST /v1/speech`. */
  readonly speak: (caller: Caller, inbound: Inbound) => Effect.Effect<Reply, SpeechProblem>
  /** `POST /v1/tools/speech`, which needs only the text. */
  readonly speakSimply: (caller: Caller, inbound: Inbound) => Effect.Effect<Reply, SpeechProblem>
}

const bodyBytesMax = 1024 * 1024
const refusalBytesMax = 1024 * 1024

export class Speech extends Context.Tag("tollgate/speech/Speech")<Speech, SpeechContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Speech, make))
}

const make = Effect.gen(function* () {
  const gate = yield* Gate
  const upstreams = yield* Upstreams
  const providers = yield* SpeechProviders
  const idempotency = yield* Idempotency
  const versions = yield* PriceVersions

  const serve = (read: (bytes: Buffer) => Either.Either<SpeechRequest, InvalidRequest>) =>
    Effect.fnUntraced(function* (caller: Caller, inbound: Inbound, beside: Beside | undefined) {
      const asked = yield* read(yield* inbound.read(bodyBytesMax))
      const provider = yield* pick(providers, asked.provider)
      const model = yield* modelOf(provider, asked.model)
      const characters = charactersOf(asked.input)
      const cost = charge([{ units: characters, price: model.price }])
      const claim = {
        caller,
        usage_type: "tool",
        endpoint: "speech",
        model: model.id,
        provider: provider.id,
        price: yield* versions.of([{ quantity: "units", unit: "character", price: model.price }]),
        most: cost,
        least: cost,
        beside
      } as const
      return yield* gate.meter(claim, (admission) => ask(admission, provider, model, asked, characters, inbound))
    })

  const ask = Effect.fnUntraced(function* (
    admission: Admission,
    provider: SpeechProvider,
    model: SpeechModel,
    { input, instructions, response_format, speed, voice }: SpeechRequest,
    characters: number,
    inbound: Inbound
  ): Effect.fn.Return<Metered<Reply>, UpstreamProblem> {
    const upstream = upstreams.get(provider.upstream)!
    const unreachable = ({ reason }: Wire.Unreachable) => failed(upstream.name, reason, inbound.request_id)
    const body = JSON.stringify({ model: model.upstream_model, input, voice, response_format, speed, instructions })
    const request = { method: "POST", path: "/audio/speech", headers: upstream.headers, body } as const
    const answer = yield* Effect.catchAll(upstream.wire(admission).open(request), unreachable)
    if (answer.status < 200 || answer.status > 299) {
      const whole = yield* Effect.catchAll(Wire.collect(answer, refusalBytesMax), unreachable)
      return yield* refused(upstream.name, whole, inbound.request_id)
    }
    const type = Wire.header(answer.headers, "content-type") ?? ""
    if (/json|text\//.test(type)) {
      answer.abort()
      return yield* failed(upstream.name, `its answer is ${type}, not audio`, inbound.request_id)
    }
    const passage = Passage.make(answer)
    // Once the head has left, the only way to say that nothing came is to cut the connection.
    if (!(yield* passage.begun)) return yield* failed(upstream.name, "its answer is empty", inbound.request_id)
    const settled = Effect.flatMap(passage.ended, (ending) =>
      Effect.matchCause(admission.settle(measuredOf(ending, provider, model, characters)), {
        onFailure: passage.cut,
        onSuccess: () => passage.finish(ending)
      })
    )
    return yield* admission.goOn(
      {
        status: 200,
        headers: { "content-type": formats[response_format], "x-charge-usd": toDecimal(admission.reserved) },
        body: passage.body
      },
      settled
    )
  })

  const once = (route: string, schema: Parameters<typeof serve>[0]) => {
    const call = serve(schema)
    return (caller: Caller, inbound: Inbound) =>
      idempotency.onceOf(caller, inbound, route, bodyBytesMax, (inbound, beside) => call(caller, inbound, beside))
  }

  return {
    speak: once("speech", json(SpeechRequest)),
    speakSimply: once("tools/speech", json(ToolSpeechRequest))
  } satisfies SpeechContract
})

const modelOf = ({ models }: SpeechProvider, asked: string): Effect.Effect<SpeechModel, InvalidRequest> => {
  const found = asked === "" ? models[0] : models.find(({ id }) => id === asked)
  const rule = `one of ${models.map(({ id }) => id).join(", ")}`
  return found === undefined ? InvalidRequest.of("model", rule) : Effect.succeed(found)
}

/** A client that leaves has had it made all the same; what the upstream broke off costs nothing. */
const measuredOf = (
  { how }: Passage.PassageEnding,
  provider: SpeechProvider,
  model: SpeechModel,
  characters: number
): Measured => ({
  cost: how === "broken" ? 0n : charge([{ units: characters, price: model.price }]),
  prompt_tokens: 0,
  completion_tokens: 0,
  units: how === "broken" ? 0 : characters,
  provider: provider.id,
  success: how !== "broken",
  error_type: how === "broken" ? "upstream_error" : how === "left" ? "client_disconnected" : null,
  usage_source: how === "broken" ? "none" : "counted"
})
