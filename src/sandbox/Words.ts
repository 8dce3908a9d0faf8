/**
 * What a vendor of the sandbox says: it repeats what it is told, and a token is a word between whitespace. On request it does more: a line
 * `call <tool> <JSON>` makes it call that tool, if it was given one, and it tells its thoughts if it is asked to think.
 */
import { randomUUID } from "node:crypto"

export const countWords = (text: string): number => {
  const word = /\S+/g
  let count = 0
  while (word.test(text)) count += 1
  return count
}

/** An answer to one prompt: at most `limit` words of `text`. */
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

/** The text word by word; what stands between two words goes with the second, what follows the last with it. */
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

/** A part of an answer. */
export type Part =
  | { readonly type: "thought" | "text"; readonly text: string }
  | { readonly type: "call"; readonly id: string; readonly name: string; readonly input: string }

export interface Speech {
  readonly parts: ReadonlyArray<Part>
  readonly words: number
  /** Of them, those of its thoughts. */
  readonly thoughts: number
  readonly end: "stop" | "length" | "tools"
}

interface Wishes {
  readonly limit: number | undefined
  /** The names of the tools that may be called. */
  readonly tools: ReadonlySet<string>
  readonly thinks: boolean
}

const order = /^call (\S+) (\{.*\})$/

/** What it says to a text, in at most `limit` words beside its thoughts and calls. */
export const speechOf = (text: string, { limit, thinks, tools }: Wishes): Speech => {
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

/** What of a prompt its vendor has in its cache. */
export interface Cached {
  /** Words that came from the cache, and that went into it. */
  readonly read: number
  readonly written: number
}

/** Remembers prompts: a text that is cached is written the first time, and read from then on. */
export const cache = (): ((text: string) => Cached) => {
  const known = new Set<string>()
  return (text) => {
    const words = countWords(text)
    if (known.has(text)) return { read: words, written: 0 }
    known.add(text)
    return { read: 0, written: words }
  }
}
