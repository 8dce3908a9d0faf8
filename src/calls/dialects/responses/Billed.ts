/** The Responses request fields that change the vendor's bill beyond the model's price, each with the reason. */
import { anyValue, otherLimits, otherModels, valuesExcept, toolTypesExcept, vendorTools } from "../../prompts/Extras.ts"
import type { BilledValues, Billed, Rule } from "../../prompts/Extras.ts"

/** Types of tools that the client runs. */
const clients: ReadonlySet<unknown> = new Set([
  "function",
  "custom",
  "namespace",
  "local_shell",
  "apply_patch",
  "computer",
  "computer_use_preview"
])

const otherTools = toolTypesExcept((type) => clients.has(type))

/** Returns all tools, including those inside namespaces. */
const everyTool = (tools: unknown): unknown =>
  Array.isArray(tools)
    ? tools.flatMap((tool: { readonly type?: unknown; readonly tools?: unknown } | null) =>
        tool?.type === "namespace" && Array.isArray(tool.tools) ? [tool, ...(everyTool(tool.tools) as [])] : [tool]
      )
    : tools

/** Finds tools inside input items, such as a tool search's results. */
const toolsOfItems: BilledValues = (input) => {
  if (!Array.isArray(input)) return []
  for (const item of input as ReadonlyArray<{ readonly tools?: unknown } | null>) {
    const found = Array.isArray(item?.tools) ? otherTools(everyTool(item.tools)) : []
    if (found.length > 0) return found
  }
  return []
}

/** Finds context management that makes a model summarize the prompt. */
const summaries: BilledValues = (value) => (Array.isArray(value) ? anyValue(value) : [])

export const billed: Billed = new Map<string, Rule>([
  ["models", { asksFor: anyValue, why: otherModels }],
  ["fallbacks", { asksFor: anyValue, why: otherModels }],
  ["route", { asksFor: anyValue, why: otherModels }],
  ["provider", { asksFor: anyValue, why: "another provider may serve the call at another price" }],
  ["prompt", { asksFor: anyValue, why: "a prompt stored by the vendor may use other models and tools" }],
  ["background", { asksFor: anyValue, why: "a response that is fetched later cannot be charged", never: true }],
  [
    "service_tier",
    { asksFor: valuesExcept("auto", "default", "standard", "on_demand"), why: "other tiers are priced differently" }
  ],
  ["tools", { asksFor: (tools) => otherTools(everyTool(tools)), why: vendorTools }],
  ["input", { asksFor: toolsOfItems, why: "tools that the vendor runs must be listed in tools", never: true }],
  ["plugins", { asksFor: anyValue, why: vendorTools }],
  [
    "context_management",
    { asksFor: summaries, why: "the vendor bills a summary of the prompt in addition to the response" }
  ],
  ...otherLimits("max_output_tokens", ["max_tokens", "max_completion_tokens"])
])
