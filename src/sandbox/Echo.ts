/**
 * The replies of the sandbox's models: they repeat the last message. A token is a whitespace-separated word. A line `call <tool> <JSON>` makes a
 * model call that tool if the request lists the tool. If the request enables thinking, the model adds a thought.
 */
import { randomUUID } from "node:crypto"

export const countWords = (text: string): number => {
  const word = /\S+/g
  let count = 0
  while (word.test(text)) count += 1
  return count
}

/** The first `limit` words of a text. */
export interface Repetition {
  readonly text: string
  readonly words: number
  readonly finish_reason: "stop" | "length"
}

export const repeat = (text: string, limit: number | undefined): Repetition => {
  const words = countWords(text)
  return limit === undefined || words <= limit
    ? { text: words === 0 ? "" : text, words, finish_reason: "stop" }
    : { text: cut(text).slice(0, limit).join(""), words: limit, finish_reason: "length" }
}

/** Splits a text into words. Whitespace belongs to the word that follows it, or to the last word at the end of the text. */
export const cut = (text: string): Array<string> => {
  const pieces: Array<string> = []
  const word = /\S+/g
  let from = 0
  while (word.test(text)) {
    pieces.push(text.slice(from, word.lastIndex))
    from = word.lastIndex
  }
  if (pieces.length > 0) pieces[pieces.length - 1] += text.slice(from)
  return pieces
}

export const idOf = (prefix: string): string => `${prefix}-${randomUUID().replaceAll("-", "")}`

export type Part =
  | { readonly type: "thought" | "text"; readonly text: string }
  | { readonly type: "call"; readonly id: string; readonly name: string; readonly input: string }

export interface Reply {
  readonly parts: ReadonlyArray<Part>
  readonly words: number
  /** The number of words in the thought, which `words` includes. */
  readonly thoughts: number
  readonly end: "stop" | "length" | "tools"
}

interface ReplyOptions {
  readonly limit: number | undefined
  readonly tools: ReadonlySet<string>
  readonly thinks: boolean
}

const order = /^call (\S+) (\{.*\})$/

/** Replies to a message. The words of thoughts and calls also count against `limit`. */
export const replyTo = (text: string, { limit, thinks, tools }: ReplyOptions): Reply => {
  const parts: Array<Part> = []
  const lines = text.split("\n")
  const calls = lines.flatMap((line): ReadonlyArray<Extract<Part, { readonly type: "call" }>> => {
    const [, name = "", input = ""] = order.exec(line) ?? []
    return tools.has(name) ? [{ type: "call", id: idOf("call"), name, input }] : []
  })
  const thought = thinks ? "The same words again." : ""
  if (thinks) parts.push({ type: "thought", text: thought })
  const thoughts = countWords(thought)
  const others = calls.reduce((sum, { input }) => sum + countWords(input), thoughts)
  const told = calls.length === 0 ? text : lines.filter((line) => !order.test(line)).join("\n")
  const said = repeat(told, limit === undefined ? undefined : Math.max(0, limit - others))
  if (said.text !== "" || calls.length === 0) parts.push({ type: "text", text: said.text })
  parts.push(...calls)
  return {
    parts,
    thoughts,
    words: said.words + others,
    end: said.finish_reason === "length" ? "length" : calls.length > 0 ? "tools" : "stop"
  }
}

export interface CacheUse {
  /** The word counts read from the cache and written to it. */
  readonly read: number
  readonly written: number
}

/** Creates a prompt cache. It writes a text on first use and reads it afterwards. */
export const promptCache = (): ((text: string) => CacheUse) => {
  const known = new Set<string>()
  return (text) => {
    const words = countWords(text)
    if (known.has(text)) return { read: words, written: 0 }
    known.add(text)
    return { read: 0, written: words }
  }
}
