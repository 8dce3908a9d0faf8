/** A metered call's response headers: its charge, its usage record's id and its rate limits. */
import type { Receipt } from "../../books/gate/Gate.ts"
import { rateHeaders } from "../../books/gate/RateHeaders.ts"
import type { RatesAt } from "../../books/gate/RateHeaders.ts"
import type { Shape } from "../../http/contract/Annotations.ts"
import { toDecimal } from "../../kernel/Money.ts"

/** Returns the headers without the usage id. */
export const chargeHeader = ({ charged, rates }: Pick<Receipt, "charged" | "rates">, shape?: Shape) => ({
  "x-charge-usd": toDecimal(charged),
  ...rateHeadersOf(rates, shape)
})

/** Returns the headers without the charge, because it is not known when a stream begins. */
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

export const rateHeadersOf = (rates: RatesAt | undefined, shape?: Shape) =>
  rates === undefined
    ? none
    : shape?.rateHeaders === undefined
      ? rateHeaders(rates)
      : { ...rateHeaders(rates), ...shape.rateHeaders(rates) }
