/** The response headers of a metered call, which state its charge, its usage record and its rate limits. */
import type { Receipt } from "../../books/gate/Gate.ts"
import { rateHeaders } from "../../books/gate/RateHeaders.ts"
import type { RatesAt } from "../../books/gate/RateHeaders.ts"
import type { Shape } from "../../http/contract/Annotations.ts"
import { toDecimal } from "../../kernel/Money.ts"

/** Headers without the usage id, for responses that carry it in the body. */
export const chargeHeader = ({ charged, rates }: Pick<Receipt, "charged" | "rates">, shape?: Shape) => ({
  "x-charge-usd": toDecimal(charged),
  ...rateHeadersOf(rates, shape)
})

/** Headers of a stream, whose charge is not known yet. */
export const usageHeader = ({ rates, usage_id }: Pick<Receipt, "rates" | "usage_id">, shape?: Shape) => ({
  "x-usage-id": usage_id,
  ...rateHeadersOf(rates, shape)
})

export const headersOf = (
  { charged, rates, usage_id }: Pick<Receipt, "charged" | "rates" | "usage_id">,
  shape?: Shape
) => ({
  "x-charge-usd": toDecimal(charged),
  "x-usage-id": usage_id,
  ...rateHeadersOf(rates, shape)
})

const none: Readonly<Record<string, string>> = {}

/** The rate limit headers alone. */
export const rateHeadersOf = (rates: RatesAt | undefined, shape?: Shape) =>
  rates === undefined
    ? none
    : shape?.rateHeaders === undefined
      ? rateHeaders(rates)
      : { ...rateHeaders(rates), ...shape.rateHeaders(rates) }
