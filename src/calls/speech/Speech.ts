/** Converts text to speech over OpenAI's audio route. Audio is relayed as it arrives, and the call is charged per character. */
import { Context, Deferred, Effect, Exit, Layer } from "effect"
import type { Readable } from "node:stream"
import { failure, Gate } from "../../books/gate/Gate.ts"
import type { Admission, Claim, Measured, Metered, Receipt } from "../../books/gate/Gate.ts"
import type { GateRefusal } from "../../books/gate/Problems.ts"
import type { RatesAt } from "../../books/gate/RateHeaders.ts"
import { closeIfUnclaimed } from "../../upstream/wire/ByteStream.ts"
import type { StreamEnd } from "../../upstream/wire/ByteStream.ts"
import type { Caller } from "../../kernel/Caller.ts"
import * as Ids from "../../kernel/Ids.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { Nano } from "../../kernel/Money.ts"
import { charge } from "../../kernel/Price.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { PriceVersions } from "../../books/prices/PriceVersions.ts"
import { failed, isRefusal, refused } from "../../upstream/wire/Failures.ts"
import type { UpstreamProblem } from "../../upstream/wire/Failures.ts"
import * as Passage from "../../upstream/wire/Passage.ts"
import { pick, pickModel } from "../../upstream/models/Provider.ts"
import type { UnknownModel, UnknownProvider } from "../../upstream/models/Provider.ts"
import { upstreamLookup } from "../../upstream/models/Upstreams.ts"
import type { Upstream } from "../../upstream/models/Upstreams.ts"
import * as Wire from "../../upstream/wire/Wire.ts"
import { measuredOf } from "../metered/Measured.ts"
import { SpeechProviders } from "./Settings.ts"
import type { SpeechModel, SpeechProvider } from "./Settings.ts"
import { charactersOf, formats } from "./Request.ts"
import type { SpeechRequest } from "./Request.ts"

export interface SpeechCall {
  readonly caller: Caller
  readonly request: SpeechRequest
  /** The route's name in usage records; `speech` by default. */
  readonly endpoint?: string | undefined
  /** Statements committed together with the call's admission. */
  readonly beside?: Claim["beside"]
}

export interface SpeechAudio {
  /**
   * The audio, or the events that contain it. The stream ends once the charge is committed. It is destroyed with an error if the upstream's audio
   * ends early. The caller must read the stream to its end or destroy it, because the call remains open until then.
   */
  readonly audio: Readable
  readonly content_type: string
  /** The price of the complete text, in nano-USD. If the upstream's audio ends early, the call is free. */
  readonly cost: Nano
  /** The id of the usage record, which is written when the audio ends. */
  readonly usage_id: string
  /** The call's rate limits; absent if no budget applies to it. */
  readonly rates?: RatesAt | undefined
  /** Waits for the audio to end and the call to be settled. */
  readonly receipt: Effect.Effect<Receipt, BooksUnavailable>
}

export type SpeechProblem = InvalidRequest | UnknownProvider | UnknownModel | GateRefusal | UpstreamProblem

export interface SpeechContract {
  /** Returns once the first bytes of audio have arrived. */
  readonly speak: (call: SpeechCall) => Effect.Effect<SpeechAudio, SpeechProblem>
}

const refusalBytesMax = 1024 * 1024

export class Speech extends Context.Tag("tollgate/speech/Speech")<Speech, SpeechContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Speech, make))
}

/** A text to speak, with its provider, model and cost. */
interface Order {
  readonly provider: SpeechProvider
  readonly model: SpeechModel
  readonly request: SpeechRequest
  readonly characters: number
  readonly cost: Nano
}

interface Parts {
  readonly gate: Gate["Type"]
  readonly providers: ReadonlyArray<SpeechProvider>
  readonly upstreamOf: (name: string) => Upstream
  readonly versions: PriceVersions["Type"]
}

const make = Effect.gen(function* () {
  const gate = yield* Gate
  const providers = yield* SpeechProviders
  const upstreamOf = yield* upstreamLookup("speech provider", providers)
  return { speak: speak({ gate, providers, upstreamOf, versions: yield* PriceVersions }) } satisfies SpeechContract
})

const speak = (parts: Parts): SpeechContract["speak"] =>
  Effect.fnUntraced(function* ({ beside, caller, endpoint = "speech", request }) {
    const { gate, providers, versions } = parts
    const provider = yield* pick(providers, request.provider)
    const model = yield* pickModel(provider.models, request.model)
    if (request.stream_format === "sse" && !model.events) return yield* noEvents
    const characters = charactersOf(request.input)
    const cost = charge([{ units: characters, price: model.price }])
    const claim = {
      caller,
      usage_type: "tool",
      capability: "speech",
      endpoint,
      model: model.id,
      provider: provider.id,
      price: yield* versions.of([{ quantity: "units", unit: "character", price: model.price }]),
      most: cost,
      least: cost,
      beside
    } as const
    const order = { provider, model, request, characters, cost }
    return yield* closeIfUnclaimed(
      gate.meter(claim, (admission) => ask(parts, admission, order)),
      ({ audio }) => audio
    )
  })

/** Calls the upstream. Returns the audio once its first bytes have arrived. */
const ask = Effect.fnUntraced(function* (
  { upstreamOf }: Parts,
  admission: Admission,
  order: Order
): Effect.fn.Return<Metered<SpeechAudio>, UpstreamProblem> {
  const events = isSse(order)
  const upstream = upstreamOf(order.provider.upstream)
  const unreachable = ({ reason }: Wire.Unreachable) => failed(upstream.name, reason)
  const sent = { method: "POST", path: "/audio/speech", headers: upstream.headers, body: bodyOf(order) } as const
  const answer = yield* Effect.catchAll(upstream.wire(admission).open(sent, admission.to_its_end), unreachable)
  admission.servedAs(Wire.vendorRequestOf(answer.headers))
  if (isRefusal(answer)) {
    const whole = yield* Effect.catchAll(Wire.collect(answer, { limit: refusalBytesMax }), unreachable)
    return yield* refused(upstream.name, whole)
  }
  const type = Wire.header(answer.headers, "content-type") ?? ""
  if (events ? !eventStream.test(type) : /json|text\//.test(type)) {
    answer.abort()
    return yield* failed(upstream.name, `it returned ${type} instead of ${events ? "events" : "audio"}`)
  }
  const passage = Passage.make(answer, admission.to_its_end)
  // The audio must be checked before the client's response begins, because a response that has begun can only be aborted.
  if (!(yield* passage.begun)) return yield* failed(upstream.name, "the response is empty")
  return yield* passing(admission, order, passage)
})

/** Relays the audio to the client and settles the call when it ends. */
const passing = Effect.fnUntraced(function* (admission: Admission, order: Order, passage: Passage.Passage) {
  const receipt = yield* Deferred.make<Receipt, BooksUnavailable>()
  const settled = Effect.flatMap(passage.ended, (ending) =>
    Effect.map(Effect.exit(admission.settle(settlementOf(ending, order))), (exit) => {
      Deferred.unsafeDone(receipt, exit)
      if (Exit.isSuccess(exit)) passage.finish(ending)
      else passage.cut()
    })
  )
  return yield* admission.goOn(
    {
      audio: passage.body,
      content_type: isSse(order) ? "text/event-stream" : formats[order.request.response_format],
      cost: order.cost,
      usage_id: Ids.usageOf(admission.call),
      rates: admission.rates,
      receipt: Deferred.await(receipt)
    },
    settled
  )
})

const isSse = ({ request }: Order): boolean => request.stream_format === "sse"

const bodyOf = (order: Order): string => {
  const { input, instructions, response_format, speed, stream_format, voice } = order.request
  return JSON.stringify({
    model: order.model.upstream_model,
    input,
    voice,
    response_format,
    speed,
    instructions,
    stream_format: isSse(order) ? stream_format : undefined
  })
}

const eventStream = /^text\/event-stream\b/i
const noEvents = InvalidRequest.of("stream_format", "must be audio, because this model does not stream events")

/**
 * Determines the charge. Audio that ended early at the upstream is free. Any other audio is charged in full, because the upstream generated all of
 * it. `left`: the service stopped reading before the end of the audio. `unfinished`: the upstream stopped because the client was too slow.
 */
const settlementOf = (how: StreamEnd, { characters, cost, provider }: Order): Measured =>
  how === "broken"
    ? { ...failure("upstream_error"), provider: provider.id }
    : measuredOf(cost, characters, provider.id, {
        success: how !== "unfinished",
        error_type: how === "complete" ? null : how === "left" ? "client_disconnected" : "upstream_error"
      })
