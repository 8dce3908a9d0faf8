/** Arranges a conversation's turns in the order that a protocol requires. */
import type { AssistantPart, Conversation, TextPart, Turn, UserPart } from "./Conversation.ts"

/** A turn in protocols where user and assistant alternate and instructions are separate. */
export type Alternating =
  | { readonly role: "user"; readonly at: string; readonly parts: ReadonlyArray<UserPart> }
  | { readonly role: "assistant"; readonly at: string; readonly parts: ReadonlyArray<AssistantPart> }

const isEmptyText = (part: { readonly type: string; readonly text?: string }): boolean =>
  part.type === "text" && part.text === ""

/** Returns the texts of all system and developer turns, except empty ones. */
export const instructionsOf = (turns: ReadonlyArray<Turn>): ReadonlyArray<TextPart> =>
  turns.flatMap((turn) =>
    turn.role === "system" || turn.role === "developer" ? turn.parts.filter((part) => part.text !== "") : []
  )

/** Joins consecutive turns of the same role. Drops empty texts, reasoning that `takes` rejects, and turns that become empty. */
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

/** Returns whether the last turn is the beginning of a response for the model to continue. Chat and Responses do not define such turns. */
export const isPrefilled = ({ protocol, turns }: Conversation): boolean =>
  protocol !== "chat" && protocol !== "responses" && turns.at(-1)?.role === "assistant"

/** Moves tool results before the other parts, because vendors require them directly after the calls. */
export const resultsFirst = (parts: ReadonlyArray<UserPart>): ReadonlyArray<UserPart> =>
  parts.some((part) => part.type === "tool_result")
    ? [...parts.filter((part) => part.type === "tool_result"), ...parts.filter((part) => part.type !== "tool_result")]
    : parts
