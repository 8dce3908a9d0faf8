/**
 * Translates reasoning settings between vendors that use efforts and vendors that use token budgets.
 *
 * Where the specification is silent:
 * - An effort becomes a share of the completion limit (`shares`), but at least 1,024 tokens. A budget becomes `low` or `medium` if that effort's
 *   share covers it, otherwise `high`.
 * - Claude models from 4.6 on get the effort itself. Older Claude models and other models that use Messages get a budget. This budget is only a hint,
 *   so it is dropped if the model would reject it: with a forced tool call, after tool calls without their reasoning, or if it exceeds the limit. A
 *   budget that the client itself sets is sent unchanged.
 */
import type { AssistantPart, Conversation, Effort, JsonObject, Reasoning } from "./Conversation.ts"
import { present } from "./Json.ts"
import { isSignedBy } from "./Thoughts.ts"

const shares: Readonly<Record<Effort, number>> = {
  minimal: 0.1,
  low: 0.2,
  medium: 0.5,
  high: 0.8,
  xhigh: 0.95,
  max: 0.95
}

export const isEffort = (value: unknown): value is Effort => typeof value === "string" && Object.hasOwn(shares, value)

const budgetMin = 1_024
/** The assumed completion limit of a request without one. */
const assumedLimit = 32_000

export const budgetOf = (effort: Effort, limit: number | undefined): number =>
  Math.max(budgetMin, Math.floor((limit ?? assumedLimit) * shares[effort]))

/** Returns the requested effort, or one derived from the budget; `undefined` for the model's default. */
export const effortOf = ({ budget, effort }: Reasoning, limit: number | undefined): Effort | undefined => {
  if (effort !== undefined || budget === undefined) return effort
  const share = budget / (limit ?? assumedLimit)
  return share <= shares.low ? "low" : share <= shares.medium ? "medium" : "high"
}

/** Returns whether a Claude model accepts only a budget. */
const requiresBudget = (model: string): boolean =>
  /claude-(?:[123]|instant|v\d|(?:opus|sonnet|haiku)-4(?:-[015])?(?:$|[-:@]\d{8}|[@:]|-latest|-v\d))/.test(model)

const knowsEffort = (model: string): boolean => model.includes("claude") && !requiresBudget(model)

/** Returns whether the last assistant turn contains tool calls but no reasoning signed by Anthropic. */
const lacksReasoning = ({ turns }: Conversation): boolean => {
  const last = turns.findLast((turn) => turn.role === "assistant")
  const parts: ReadonlyArray<AssistantPart> = last?.role === "assistant" ? last.parts : []
  return (
    parts.some((part) => part.type === "tool_call") &&
    !parts.some((part) => part.type === "thinking" && isSignedBy("anthropic", part))
  )
}

/** The fields `thinking` and `output_config.effort`, as Anthropic's models expect them. */
export interface AnthropicThinking {
  readonly thinking: JsonObject | undefined
  readonly effort: Effort | undefined
}

const nothing: AnthropicThinking = { thinking: undefined, effort: undefined }

export const anthropicThinking = (
  conversation: Conversation,
  model: string,
  limit: number | undefined
): AnthropicThinking => {
  const { protocol, reasoning, tool_choice } = conversation
  if (reasoning === undefined) return nothing
  const display = reasoning.summary === false ? "omitted" : undefined
  if (reasoning.off) return { thinking: { type: "disabled" }, effort: reasoning.effort }
  if (reasoning.adaptive) return { thinking: present({ type: "adaptive", display }), effort: reasoning.effort }
  if (reasoning.budget !== undefined)
    return {
      thinking: present({ type: "enabled", budget_tokens: reasoning.budget, display }),
      effort: reasoning.effort
    }
  if (reasoning.effort === undefined) return nothing
  if (protocol === "messages" || protocol === "bedrock") return { thinking: undefined, effort: reasoning.effort }
  const forced = tool_choice !== undefined && tool_choice.type !== "auto" && tool_choice.type !== "none"
  if (knowsEffort(model)) {
    const effort = reasoning.effort === "minimal" ? "low" : reasoning.effort
    return forced ? { thinking: undefined, effort } : { thinking: { type: "adaptive" }, effort }
  }
  const budget_tokens = budgetOf(reasoning.effort, limit)
  if (forced || lacksReasoning(conversation) || (limit !== undefined && budget_tokens >= limit)) return nothing
  return { thinking: { type: "enabled", budget_tokens }, effort: undefined }
}
