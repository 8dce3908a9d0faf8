/** Decisions: one model, one try, one price. Its own statuses pass through; everything else that it says is a 502. */
import { Context, Effect, Layer } from "effect"
import { Gate } from "../gate/Gate.ts"
import type { Admission, Measured } from "../gate/Gate.ts"
import type { InsufficientCredits } from "../gate/Problems.ts"
import type { Caller } from "../kernel/Caller.ts"
import type { Inbound } from "../http/Inbound.ts"
import type { BodyProblem } from "../http/Incoming.ts"
import type { PayloadTooLarge } from "../http/Problems.ts"
import type { Reply } from "../http/Reply.ts"
import { Idempotency } from "../idempotency/Idempotency.ts"
import type { Beside, IdempotencyProblem } from "../idempotency/Idempotency.ts"
import { usageOf } from "../kernel/Ids.ts"
import { write } from "../kernel/Decimal.ts"
import { toDecimal, toJson } from "../kernel/Money.ts"
import { affordable, charge } from "../kernel/Price.ts"
import { PriceVersions } from "../prices/PriceVersions.ts"
import { isObject, parse } from "../upstream/Failures.ts"
import { Upstreams } from "../upstream/Upstreams.ts"
import * as Wire from "../upstream/Wire.ts"
import { bodyBytesMax, ConfiguredDecisionModel, read, reservation } from "./Decision.ts"
import type { DecisionModel } from "./Decision.ts"
import {
  DecisionBodyTooLarge,
  DecisionBodyUnreadable,
  DecisionsUnavailable,
  DecisionUpstreamFailed,
  DecisionUpstreamUnreachable
} from "./Problems.ts"

export type DecisionProblem =
  | Exclude<BodyProblem, PayloadTooLarge>
  | DecisionBodyUnreadable
  | DecisionBodyTooLarge
  | DecisionsUnavailable
  | InsufficientCredits
  | IdempotencyProblem
  | DecisionUpstreamFailed
  | DecisionUpstreamUnreachable

export interface DecisionsContract {
  /** `POST /v1/decisions`. */
  readonly decide: (caller: Caller, inbound: Inbound) => Effect.Effect<Reply, DecisionProblem>
}

/** How long the model may take, from the first byte to the last. */
export const timeoutMillis = 30_000
const answerBytesMax = 8 * 1024 * 1024

export class Decisions extends Context.Tag("tollgate/decisions/Decisions")<Decisions, DecisionsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Decisions, make))
}

const make = Effect.gen(function* () {
  const gate = yield* Gate
  const upstreams = yield* Upstreams
  const idempotency = yield* Idempotency
  const versions = yield* PriceVersions
  const model = yield* ConfiguredDecisionModel
  if (model === undefined) return { decide: () => new DecisionsUnavailable() } satisfies DecisionsContract
  const upstream = upstreams.get(model.upstream)!
  const price = yield* versions.of([{ quantity: "prompt_tokens", unit: "token", price: model.input_price }])

  const admitted = (caller: Caller, body: string, beside: Beside | undefined) =>
    gate.meter(
      {
        caller,
        usage_type: "inference",
        endpoint: "decisions",
        model: model.model,
        provider: upstream.name,
        price,
        most: reservation,
        least: reservation,
        beside
      },
      (admission) => ask(admission, body)
    )

  const ask = Effect.fnUntraced(function* (admission: Admission, body: string) {
    const request = { method: "POST", path: model.path, headers: upstream.headers, body } as const
    const answer = yield* upstream
      .wire(admission)
      .exchange(request, { limit: answerBytesMax, timeout: timeoutMillis })
      .pipe(
        Effect.catchAll(({ reason }) =>
          Effect.andThen(failed(upstream.name, reason), new DecisionUpstreamUnreachable())
        )
      )
    const { headers, status } = answer
    if (status === 422 || status === 429 || status === 529) {
      return yield* admission.answer(refusedBy(status), () => passed(answer))
    }
    const parsed = status >= 200 && status < 300 ? parse(answer.body) : undefined
    if (parsed === undefined) {
      yield* failed(upstream.name, `status ${status}`)
      return yield* new DecisionUpstreamFailed({ message: `The decision model upstream failed with status ${status}` })
    }
    const measured = measuredOf(model, parsed.usage, Buffer.byteLength(body))
    return yield* admission.answer(measured, ({ charged }) => ({
      status,
      headers: { "content-type": "application/json", ...retryAfter(headers), "x-charge-usd": toDecimal(charged) },
      body: write({
        ...parsed,
        id: typeof parsed.id === "string" ? parsed.id : usageOf(admission.call),
        model: typeof parsed.model === "string" ? parsed.model : model.model,
        provider: upstream.name,
        usage: {
          ...(isObject(parsed.usage) ? parsed.usage : {}),
          input_tokens: measured.prompt_tokens,
          output_tokens: measured.completion_tokens,
          cost: toJson(charged)
        }
      })
    }))
  })

  const decide: DecisionsContract["decide"] = (caller, inbound) => {
    const call = (inbound: Inbound, beside: Beside | undefined) =>
      Effect.flatMap(bodyOf(inbound), (bytes) =>
        Effect.flatMap(read(bytes, model), (body) => admitted(caller, body, beside))
      )
    return Effect.catchTag(
      idempotency.onceOf(caller, inbound, "decisions", bodyBytesMax, call),
      "PayloadTooLarge",
      () => new DecisionBodyTooLarge()
    )
  }

  return { decide } satisfies DecisionsContract
})

const bodyOf = (inbound: Inbound) =>
  Effect.catchTag(
    inbound.read(bodyBytesMax),
    "InvalidRequest",
    ({ field, rule }) => new DecisionBodyUnreadable({ field, rule })
  )

const failed = (upstream: string, reason: string) =>
  Effect.annotateLogs(Effect.logWarning("the decision model failed"), { upstream, reason })

const retryAfter = (headers: Wire.WireHeaders): Record<string, string> => {
  const after = Wire.header(headers, "retry-after")
  return after === undefined ? {} : { "retry-after": after }
}

/** The model's own words, as they came; they cost nothing. */
const passed = ({ body, headers, status }: Wire.Whole): Reply => ({
  status,
  headers: {
    "content-type": Wire.header(headers, "content-type") ?? "application/json",
    ...retryAfter(headers),
    "x-charge-usd": "0"
  },
  body
})

/** A refusal of the model costs nothing. */
const refusedBy = (status: number): Measured => ({
  cost: 0n,
  prompt_tokens: 0,
  completion_tokens: 0,
  units: 0,
  provider: null,
  success: false,
  error_type: status === 422 ? "upstream_rejected" : status === 429 ? "upstream_rate_limited" : "upstream_overloaded",
  usage_source: "none"
})

/**
 * The charge. A token is at least a byte, so the request bounds its input tokens, and what was set aside bounds them too. A figure
 * that is not within that is charged at the bound; where there is none, a token is four bytes. Both are estimated. Output tokens
 * cost nothing.
 */
const measuredOf = (model: DecisionModel, usage: unknown, bytes: number): Measured => {
  const { input_tokens, output_tokens } = isObject(usage) ? usage : {}
  const most = Math.min(bytes + tokensBeyondText, affordable(reservation, model.input_price))
  const told = count(input_tokens, most)
  const prompt_tokens = told ?? Math.min(most, isAbsent(input_tokens) ? Math.ceil(bytes / 4) : most)
  const answered = count(output_tokens, outputTokensMax)
  return {
    cost: charge([{ units: prompt_tokens, price: model.input_price }]),
    prompt_tokens,
    completion_tokens: answered ?? 0,
    units: prompt_tokens,
    provider: null,
    success: true,
    error_type: null,
    usage_source: told === undefined || (answered === undefined && !isAbsent(output_tokens)) ? "estimated" : "provider"
  }
}

/** A whole number from 0 to `most`. */
const count = (value: unknown, most: number): number | undefined =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= most ? value : undefined

const isAbsent = (value: unknown): boolean => value === undefined || value === null

/** What the model may put around the request by itself. */
const tokensBeyondText = 100_000
/** More tokens than this are in no answer. */
const outputTokensMax = 1_000_000
