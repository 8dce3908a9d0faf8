/** Fields of responses that make a vendor bill otherwise than the model's price says, each with the reason. */
import { anything, otherLimits, otherModels, otherThan, toolsOtherThan, vendorTools } from "../chat/Extras.ts"
import type { AsksFor, Billed, Rule } from "../chat/Extras.ts"

/** Tools that the client runs. */
const clients: ReadonlySet<unknown> = new Set([
  "function",
  "custom",
  "namespace",
  "local_shell",
  "apply_patch",
  "computer",
  "computer_use_preview"
])

/** Summaries of the prompt, which a model writes. */
const summaries: AsksFor = (value) => (Array.isArray(value) ? anything(value) : [])

export const billed: Billed = new Map<string, Rule>([
  ["models", { asksFor: anything, why: otherModels }],
  ["fallbacks", { asksFor: anything, why: otherModels }],
  ["route", { asksFor: anything, why: otherModels }],
  ["provider", { asksFor: anything, why: "it may be served by another provider, at another price" }],
  ["prompt", { asksFor: anything, why: "a prompt that the vendor keeps may ask for other models and tools" }],
  ["background", { asksFor: anything, why: "an answer that is fetched later cannot be charged", never: true }],
  [
    "service_tier",
    { asksFor: otherThan("auto", "default", "standard", "on_demand"), why: "another tier has another price" }
  ],
  ["tools", { asksFor: toolsOtherThan((type) => clients.has(type)), why: vendorTools }],
  ["plugins", { asksFor: anything, why: vendorTools }],
  ["context_management", { asksFor: summaries, why: "a summary of the prompt is billed beside the answer" }],
  ...otherLimits("max_output_tokens", ["max_tokens", "max_completion_tokens"])
])
