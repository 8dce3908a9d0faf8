/** Response headers that name a call's charge and its usage record. */
import type { Receipt } from "../../books/gate/Gate.ts"
import { toDecimal } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"

export const chargeHeader = (charged: Nano) => ({ "x-charge-usd": toDecimal(charged) })

export const usageHeader = (usage_id: string) => ({ "x-usage-id": usage_id })

export const headersOf = ({ charged, usage_id }: Pick<Receipt, "charged" | "usage_id">) => ({
  "x-charge-usd": toDecimal(charged),
  "x-usage-id": usage_id
})
