/** Turns of a conversation, put into the order that a protocol wants. */
import type { AssistantPart, Conversation, TextPart, Turn, UserPart } from "./Conversation.ts"

/** A turn of a protocol in which user and assistant alternate, and instructions stand apart. */
export type Alternating =
  | { readonly role: "user"; readonly at: string; readonly parts: ReadonlyArray<UserPart> }
  | { readonly role: "assistant"; readonly at: string; readonly parts: ReadonlyArray<AssistantPart> }

const isEmptyText = (part: { readonly type: string; readonly text?: string }): boolean =>
  part.type === "text" && part.text === ""

/** The texts of all instructions, in their order, without empty ones. */
export const instructionsOf = (turns: ReadonlyArray<Turn>): ReadonlyArray<TextPart> =>
  turns.flatMap((turn) =>
    turn.role === "system" || turn.role === "developer" ? turn.parts.filter((part) => part.text !== "") : []
  )

/**
 * User and assistant turns that alternate: those of the same role joined, without empty texts, thoughts that `takes` refuses, and turns
 * in which nothing is left.
 */
export const alternating = (
  { turns }: Conversation,
  takes: (part: Extract<AssistantPart, { type: "thinking" }>) => boolean
): ReadonlyArray<Alternating> => {
  const joined: Array<{ role: "user" | "assistant"; at: string; parts: Array<UserPart | AssistantPart> }> = []
  for (const turn of turns) {
    if (turn.role !== "user" && turn.role !== "assistant") continue
    const parts = (turn.parts as ReadonlyArray<UserPart | AssistantPart>).filter(
      (part) => !isEmptyText(part) && (part.type !== "thinking" || takes(part))
    )
    if (parts.length === 0) continue
    const last = joined.at(-1)
    if (last?.role === turn.role) for (const part of parts) last.parts.push(part)
    else joined.push({ role: turn.role, at: turn.at, parts })
  }
  return joined as ReadonlyArray<Alternating>
}

/** Whether the conversation ends with what the model is to go on from. */
export const isPrefilled = ({ protocol, turns }: Conversation): boolean =>
  protocol !== "chat" && protocol !== "responses" && turns.at(-1)?.role === "assistant"

/** Results of tools before everything else that the user says: so a vendor wants them after the calls. */
export const resultsFirst = (parts: ReadonlyArray<UserPart>): ReadonlyArray<UserPart> =>
  parts.some((part) => part.type === "tool_result")
    ? [...parts.filter((part) => part.type === "tool_result"), ...parts.filter((part) => part.type !== "tool_result")]
    : parts
