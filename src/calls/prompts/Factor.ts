/** Applies a price factor to a model. */
import { isOne, times } from "../../books/prices/PriceFactors.ts"
import type { PriceFactor } from "../../books/prices/PriceFactors.ts"
import type { UnitPrice } from "../../kernel/Price.ts"
import type { DetailPrices, Model } from "./Model.ts"

/** Multiplies all the model's prices, including its extras' request prices. */
export const withFactor = (model: Model, factor: PriceFactor): Model => {
  if (isOne(factor)) return model
  const at = (price: UnitPrice): UnitPrice => times(price, factor)
  const details = (prices: DetailPrices | undefined): DetailPrices | undefined =>
    prices && Object.fromEntries(Object.entries(prices).map(([name, price]) => [name, at(price)]))
  return {
    ...model,
    prompt_price: at(model.prompt_price),
    completion_price: at(model.completion_price),
    request_price: at(model.request_price),
    detail_prices: details(model.detail_prices),
    long_context: model.long_context?.map((tier) => ({
      above_prompt_tokens: tier.above_prompt_tokens,
      prompt_price: tier.prompt_price && at(tier.prompt_price),
      completion_price: tier.completion_price && at(tier.completion_price),
      detail_prices: details(tier.detail_prices)
    })),
    extras: model.extras.map((extra) => ({ ...extra, request_price: at(extra.request_price) })),
    factors: [...(model.factors ?? []), factor.text]
  }
}
