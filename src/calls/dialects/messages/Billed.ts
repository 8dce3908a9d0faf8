/** The Messages request fields that change the vendor's bill beyond the model's price, each with the reason. */
import {
  anyValue,
  otherLimits,
  otherModels,
  valuesExcept,
  searches,
  toolTypesExcept,
  vendorTools
} from "../../prompts/Extras.ts"
import type { BilledValues, Billed, Rule } from "../../prompts/Extras.ts"

/**
 * Returns whether the client runs a tool, even one that the vendor defines. Client-run tools cost only tokens. A client-defined tool needs no type.
 */
const isClientTool = (type: unknown): boolean =>
  type === undefined || /^(?:custom$|bash_|text_editor_|computer_|memory_)/.test(String(type))

/** Finds context edits that make a model write a summary. */
const summaries: BilledValues = (value) => {
  const edits: unknown = (value as { readonly edits?: unknown } | null)?.edits
  const types = Array.isArray(edits) ? edits.map((edit: { readonly type?: unknown } | null) => String(edit?.type)) : []
  return types.filter((type) => type.startsWith("compact"))
}

/** Finds preview features in the beta header that change the price. */
const pricedBetas: BilledValues = (value) =>
  String(value)
    .split(",")
    .map((beta) => beta.trim())
    .filter((beta) => beta.startsWith("context-1m"))

export const billed: Billed = new Map<string, Rule>([
  ["models", { asksFor: anyValue, why: otherModels }],
  ["fallbacks", { asksFor: anyValue, why: otherModels }],
  ["provider", { asksFor: anyValue, why: "another provider may serve the call at another price" }],
  [
    "service_tier",
    { asksFor: valuesExcept("auto", "standard_only", "standard"), why: "other tiers are priced differently" }
  ],
  ["speed", { asksFor: valuesExcept("standard"), why: "other speeds are priced differently" }],
  ["inference_geo", { asksFor: valuesExcept("global", "not_available"), why: "regions are priced differently" }],
  ["anthropic-beta", { asksFor: pricedBetas, why: "long contexts are priced differently" }],
  ["tools", { asksFor: toolTypesExcept(isClientTool), why: vendorTools }],
  ["mcp_servers", { asksFor: anyValue, why: vendorTools }],
  ["plugins", { asksFor: anyValue, why: vendorTools }],
  ["container", { asksFor: anyValue, why: "the vendor bills container time in addition to the tokens" }],
  ["web_search_options", { asksFor: anyValue, why: searches }],
  [
    "context_management",
    { asksFor: summaries, why: "the vendor bills a summary of the prompt in addition to the answer" }
  ],
  ...otherLimits("max_tokens", ["max_completion_tokens", "max_output_tokens"])
])
