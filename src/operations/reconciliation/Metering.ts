/**
 * Computes what the vendor should bill for the metered calls: their tokens by kind, at the upstream's configured cost or, without one, at the model's
 * price.
 *
 * Where the specification is silent:
 * - The expected cost of a model without a price (a tool, or a model removed from the configuration) is the charge.
 * - Audio and image tokens count as input or output tokens.
 */
import { hour } from "../../kernel/Moment.ts"
import { detailNames, promptDetails } from "../../kernel/TokenDetails.ts"
import type { TokenDetail } from "../../kernel/TokenDetails.ts"
import { linesAt } from "../../books/prices/Lines.ts"
import type { PriceLine, Quantity } from "../../books/prices/Lines.ts"
import { linesOf } from "../../calls/prompts/Model.ts"
import type { Model, VendorCost } from "../../calls/prompts/Model.ts"
import type { VendorCall } from "../../money/usage/VendorCalls.ts"
import type { BilledKind } from "../../upstream/billing/Bill.ts"
import { attoInNano } from "./Reconciliation.ts"
import type { Expected, Metered, MeteredCall } from "./Reconciliation.ts"

const kindOf: { readonly [Name in TokenDetail]: BilledKind } = {
  cached_audio_tokens: "cached_input",
  cached_tokens: "cached_input",
  cache_write_tokens: "cache_write",
  cache_write_1h_tokens: "cache_write_1h",
  prompt_audio_tokens: "input",
  prompt_image_tokens: "input",
  reasoning_tokens: "output",
  completion_audio_tokens: "output",
  completion_image_tokens: "output"
}

/** For a kind without its own price line, the quantities to try instead, in order. */
const wider: { readonly [Name in TokenDetail]: ReadonlyArray<Quantity> } = {
  cached_audio_tokens: ["cached_tokens", "prompt_tokens"],
  cached_tokens: ["prompt_tokens"],
  cache_write_tokens: ["prompt_tokens"],
  cache_write_1h_tokens: ["cache_write_tokens", "prompt_tokens"],
  prompt_audio_tokens: ["prompt_tokens"],
  prompt_image_tokens: ["prompt_tokens"],
  reasoning_tokens: ["completion_tokens"],
  completion_audio_tokens: ["completion_tokens"],
  completion_image_tokens: ["completion_tokens"]
}

const linesOfCost = ({ completion_price, prompt_price, request_price }: VendorCost): ReadonlyArray<PriceLine> => [
  { quantity: "prompt_tokens", unit: "token", price: prompt_price },
  { quantity: "completion_tokens", unit: "token", price: completion_price },
  { quantity: "requests", unit: "request", price: request_price }
]

/** A model at an upstream: the vendor's name for it, and the prices of the expected cost. */
interface Served {
  readonly model: string
  readonly lines: ReadonlyArray<PriceLine>
}

/** Returns a function that finds the vendor's name and the prices for a call's model at its upstream. */
export const servedLookup = (models: ReadonlyArray<Model>): ((call: VendorCall) => Served | undefined) => {
  const served = new Map(
    models.flatMap((model) =>
      model.routes.map(
        ({ cost, model: name, upstream }) =>
          [
            `${upstream}\n${model.id}`,
            { model: name, lines: cost === undefined ? linesOf(model) : linesOfCost(cost) }
          ] as const
      )
    )
  )
  return ({ model, provider }) => served.get(`${provider}\n${model}`)
}

type Kinds = { [Kind in BilledKind]?: Expected }

const addTo = (kinds: Kinds, kind: BilledKind, quantity: number, price: bigint): void => {
  const before = kinds[kind] ?? { quantity: 0, atto: 0n }
  kinds[kind] = { quantity: before.quantity + quantity, atto: before.atto + BigInt(quantity) * price }
}

/** Returns a call's tokens by kind and their expected cost. */
const expectedOf = (call: VendorCall, lines: ReadonlyArray<PriceLine>): Kinds => {
  const applying = linesAt(lines, call.prompt_tokens)
  const priceOf = (...names: ReadonlyArray<Quantity>): bigint => {
    for (const name of names) {
      const line = applying.find(({ quantity }) => quantity === name)
      if (line !== undefined) return line.price
    }
    return 0n
  }
  const kinds: Kinds = {}
  let [input, output] = [call.prompt_tokens, call.completion_tokens]
  for (const name of detailNames) {
    const tokens = call.token_details?.[name] ?? 0
    if (tokens === 0) continue
    if ((promptDetails as ReadonlyArray<string>).includes(name)) input -= tokens
    else output -= tokens
    addTo(kinds, kindOf[name], tokens, priceOf(name, ...wider[name]))
  }
  if (input !== 0) addTo(kinds, "input", input, priceOf("prompt_tokens"))
  if (output !== 0) addTo(kinds, "output", output, priceOf("completion_tokens"))
  const request = priceOf("requests")
  if (request !== 0n) addTo(kinds, "request", 1, request)
  return kinds
}

const isCut = ({ error_type }: VendorCall): boolean =>
  error_type === "client_disconnected" || error_type === "upstream_error"

export const meteredCallOf = (call: VendorCall, served: Served | undefined): MeteredCall => {
  const { at, cost, requests, usage_id } = call
  // A failed call without a cost used nothing, as far as this service knows.
  const isFailed = cost === 0n && !call.success && call.prompt_tokens + call.completion_tokens === 0
  const kinds: Kinds =
    served === undefined ? { request: { quantity: 1, atto: cost * attoInNano } } : expectedOf(call, served.lines)
  return {
    hour: at - (at % hour),
    model: served?.model ?? call.model,
    kinds: isFailed ? {} : kinds,
    requests: isFailed ? 0 : 1,
    failed: isFailed ? 1 : 0,
    cut: !isFailed && isCut(call) ? 1 : 0,
    retries: requests.retried.length,
    charged: cost,
    usage_id,
    call: requests.last,
    retried: requests.retried
  }
}

const together = (one: Metered, other: Metered): Metered => {
  const kinds: Kinds = { ...one.kinds }
  for (const [kind, { atto, quantity }] of Object.entries(other.kinds) as ReadonlyArray<[BilledKind, Expected]>) {
    const before = kinds[kind] ?? { quantity: 0, atto: 0n }
    kinds[kind] = { quantity: before.quantity + quantity, atto: before.atto + atto }
  }
  return {
    hour: one.hour,
    model: one.model,
    kinds,
    requests: one.requests + other.requests,
    failed: one.failed + other.failed,
    cut: one.cut + other.cut,
    retries: one.retries + other.retries,
    charged: one.charged + other.charged
  }
}

export class Hours {
  private readonly sums = new Map<string, Metered>()

  add(call: MeteredCall): void {
    const key = `${call.hour}\n${call.model}`
    const { call: _, retried: __, usage_id: ___, ...metered } = call
    const before = this.sums.get(key)
    this.sums.set(key, before === undefined ? metered : together(before, metered))
  }

  get list(): ReadonlyArray<Metered> {
    return [...this.sums.values()]
  }
}
