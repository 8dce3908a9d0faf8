/** The Responses request fields that change the vendor's bill beyond the model's price, each with the reason. */
import { anything, otherLimits, otherModels, otherThan, toolsOtherThan, vendorTools } from "../../prompts/Extras.ts"
import type { AsksFor, Billed, Rule } from "../../prompts/Extras.ts"

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

const otherTools = toolsOtherThan((type) => clients.has(type))

/** Returns all tools, including those inside namespaces. */
const everyTool = (tools: unknown): unknown =>
  Array.isArray(tools)
    ? tools.flatMap((tool: { readonly type?: unknown; readonly tools?: unknown } | null) =>
        tool?.type === "namespace" && Array.isArray(tool.tools) ? [tool, ...(everyTool(tool.tools) as [])] : [tool]
      )
    : tools

/** Finds tools inside input items, such as a tool search's results. */
const toolsOfItems: AsksFor = (input) => {
  if (!Array.isArray(input)) return []
  for (const item of input as ReadonlyArray<{ readonly tools?: unknown } | null>) {
    const found = Array.isArray(item?.tools) ? otherTools(everyTool(item.tools)) : []
    if (found.length > 0) return found
  }
  return []
}

/** Finds context management that makes a model summarize the prompt. */
const summaries: AsksFor = (value) => (Array.isArray(value) ? anything(value) : [])

export const billed: Billed = new Map<string, Rule>([
  ["models", { asksFor: anything, why: otherModels }],
  ["fallbacks", { asksFor: anything, why: otherModels }],
  ["route", { asksFor: anything, why: otherModels }],
  ["provider", { asksFor: anything, why: "another provider may serve the call at another price" }],
  ["prompt", { asksFor: anything, why: "a prompt stored by the vendor may use other models and tools" }],
  ["background", { asksFor: anything, why: "a response that is fetched later cannot be charged", never: true }],
  [
    "service_tier",
    { asksFor: otherThan("auto", "default", "standard", "on_demand"), why: "other tiers are priced differently" }
  ],
  ["tools", { asksFor: (tools) => otherTools(everyTool(tools)), why: vendorTools }],
  ["input", { asksFor: toolsOfItems, why: "tools that the vendor runs must be listed in tools", never: true }],
  ["plugins", { asksFor: anything, why: vendorTools }],
  [
    "context_management",
    { asksFor: summaries, why: "the vendor bills a summary of the prompt in addition to the response" }
  ],
  ...otherLimits("max_output_tokens", ["max_tokens", "max_completion_tokens"])
])
