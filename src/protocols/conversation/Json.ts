/** Guards for the kinds of JSON values, and readers of request fields that note a finding for a value of another kind. */
import type { JsonObject } from "./Conversation.ts"
import type { Findings } from "./Uncarriable.ts"

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const textOr = (value: unknown, otherwise: string): string => (typeof value === "string" ? value : otherwise)

export const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

/** A text that says something. */
export const wordsOr = (value: unknown, otherwise: string): string =>
  typeof value === "string" && value !== "" ? value : otherwise

export const objectOf = (value: unknown): JsonObject => (isObject(value) ? value : empty)

export const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : none)

const empty: JsonObject = {}
const none: ReadonlyArray<unknown> = []

/** JSON is written by recursion, which a value nested a few thousand levels deep takes out of stack. */
const levelsMax = 200

export const isDeep = (value: unknown, levels = levelsMax): boolean => {
  if (typeof value !== "object" || value === null) return false
  if (levels === 0) return true
  if (Array.isArray(value)) return value.some((one) => isDeep(one, levels - 1))
  for (const name in value) if (isDeep((value as JsonObject)[name], levels - 1)) return true
  return false
}

/** The JSON of a value; `undefined` of one that is nested too deeply, or is none. */
export const written = (value: unknown): string | undefined => (isDeep(value) ? undefined : JSON.stringify(value))

/** The value of a JSON text; `undefined` where it is none. */
export const parsed = (json: string): unknown => {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

/**
 * The value of a JSON text that a vendor wrote. Some vendors write numbers that JSON does not have (`NaN`, `Infinity`): those count as `null`.
 * `undefined` if the text is no JSON in other ways too.
 */
export const parsedOfVendor = (json: string): unknown => {
  try {
    return JSON.parse(json)
  } catch {
    return noNumber.test(json) ? parsed(withoutNoNumbers(json)) : undefined
  }
}

const noNumber = /NaN|Infinity/
const noNumberHere = /-?(?:NaN|Infinity)/y

/** The text with `null` for such numbers. Strings stay. (One expression for strings and numbers would run out of stack in a long string.) */
const withoutNoNumbers = (json: string): string => {
  let out = ""
  let from = 0
  for (let at = 0; at < json.length; at++) {
    const character = json[at]
    if (character === '"') {
      for (at++; at < json.length && json[at] !== '"'; at++) if (json[at] === "\\") at++
    } else if (character === "N" || character === "I" || character === "-") {
      noNumberHere.lastIndex = at
      if (!noNumberHere.test(json)) continue
      out += `${json.slice(from, at)}null`
      from = noNumberHere.lastIndex
      at = from - 1
    }
  }
  return out + json.slice(from)
}

/** The same object without the fields that are `undefined`. */
export const present = (fields: Readonly<Record<string, unknown>>): JsonObject => {
  const object: Record<string, unknown> = {}
  for (const name in fields) if (fields[name] !== undefined) object[name] = fields[name]
  return object
}

/** Reads fields of a request that may be left out or `null`, and notes what is of another kind. */
export class Fields {
  readonly #findings: Findings
  constructor(findings: Findings) {
    this.#findings = findings
  }

  refuse(at: string, why: string): undefined {
    this.#findings.add(at, why)
    return undefined
  }

  text(at: string, value: unknown): string | undefined {
    if (value === undefined || value === null) return undefined
    return typeof value === "string" ? value : this.refuse(at, "a text")
  }

  /** A text that must be there. */
  needed(at: string, value: unknown): string {
    if (typeof value === "string" && value !== "") return value
    this.refuse(at, "a text that is not empty")
    return ""
  }

  number(at: string, value: unknown): number | undefined {
    if (value === undefined || value === null) return undefined
    return typeof value === "number" && Number.isFinite(value) ? value : this.refuse(at, "a number")
  }

  /** A whole number from `least`. */
  whole(at: string, value: unknown, least: number): number | undefined {
    if (value === undefined || value === null) return undefined
    return Number.isSafeInteger(value) && (value as number) >= least
      ? (value as number)
      : this.refuse(at, `a whole number from ${least}`)
  }

  flag(at: string, value: unknown): boolean | undefined {
    if (value === undefined || value === null) return undefined
    return typeof value === "boolean" ? value : this.refuse(at, "true or false")
  }

  object(at: string, value: unknown): JsonObject | undefined {
    if (value === undefined || value === null) return undefined
    return isObject(value) ? value : this.refuse(at, "an object")
  }

  list(at: string, value: unknown): ReadonlyArray<unknown> {
    if (value === undefined || value === null) return none
    if (Array.isArray(value)) return value
    this.refuse(at, "an array")
    return none
  }

  /** Texts; one by itself stands for a list of one. */
  texts(at: string, value: unknown): ReadonlyArray<string> {
    if (typeof value === "string") return [value]
    const list = this.list(at, value)
    if (list.every((one) => typeof one === "string")) return list as ReadonlyArray<string>
    this.refuse(at, "an array of texts")
    return []
  }

  /** Every field but these is refused by name, unless it is `null` or an empty list: who sends it counts on it. */
  only(body: JsonObject, known: ReadonlySet<string>): void {
    for (const name in body) {
      const value = body[name]
      if (known.has(name) || value === undefined || value === null || (Array.isArray(value) && value.length === 0))
        continue
      this.refuse(name, "the upstream of this model speaks another protocol, in which this field has no counterpart")
      return
    }
  }
}
