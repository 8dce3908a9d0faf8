/** The vendors with a billing API, by their names in the configuration. */
import { anthropic } from "./Anthropic.ts"
import type { BillingApi } from "./BillingApi.ts"
import { openAi } from "./OpenAi.ts"
import { openRouter } from "./OpenRouter.ts"

export const billingApiNames = ["openai", "anthropic", "openrouter"] as const
export type BillingApiName = (typeof billingApiNames)[number]

export const billingApis: { readonly [Name in BillingApiName]: BillingApi } = {
  openai: openAi,
  anthropic,
  openrouter: openRouter
}
