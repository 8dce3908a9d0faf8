/** Checks of JSON values, and a reader of request fields that reports wrong types as findings. */
import type { JsonObject } from "./Conversation.ts"
import type { Findings } from "./Uncarriable.ts"

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const textOr = (value: unknown, otherwise: string): string => (typeof value === "string" ? value : otherwise)

export const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

export const wordsOr = (value: unknown, otherwise: string): string =>
  typeof value === "string" && value !== "" ? value : otherwise

export const objectOf = (value: unknown): JsonObject => (isObject(value) ? value : empty)

export const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : none)

const empty: JsonObject = {}
const none: ReadonlyArray<unknown> = []

/** The maximum nesting depth. JSON is serialized recursively, so a few thousand levels overflow the stack. */
const levelsMax = 200

export const isDeep = (value: unknown, levels = levelsMax): boolean => {
  if (typeof value !== "object" || value === null) return false
  if (levels === 0) return true
  if (Array.isArray(value)) return value.some((one) => isDeep(one, levels - 1))
  for (const name in value) if (isDeep((value as JsonObject)[name], levels - 1)) return true
  return false
}

/** Returns the value's JSON, or `undefined` if the value is nested too deeply or has no JSON representation. */
export const written = (value: unknown): string | undefined => (isDeep(value) ? undefined : JSON.stringify(value))

/** Returns `undefined` for invalid JSON. */
export const parsed = (json: string): unknown => {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

/** Parses JSON from a vendor. Returns `undefined` for invalid JSON, except that `NaN` and `Infinity`, which some vendors write, count as `null`. */
export const parsedOfVendor = (json: string): unknown => {
  try {
    return JSON.parse(json)
  } catch {
    return noNumber.test(json) ? parsed(withoutNoNumbers(json)) : undefined
  }
}

const noNumber = /NaN|Infinity/
const noNumberHere = /-?(?:NaN|Infinity)/y

/** Replaces `NaN` and `Infinity` outside strings with `null`. (A single regular expression would overflow the stack on a long string.) */
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

/** Returns the object without its `undefined` fields. */
export const present = (fields: Readonly<Record<string, unknown>>): JsonObject => {
  const object: Record<string, unknown> = {}
  for (const name in fields) if (fields[name] !== undefined) object[name] = fields[name]
  return object
}

/** Reads request fields and reports wrong types as findings. Every field except a `needed` one can be absent or `null`. */
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
    return typeof value === "string" ? value : this.refuse(at, "must be a string")
  }

  /** Reads a required, non-empty string. */
  needed(at: string, value: unknown): string {
    if (typeof value === "string" && value !== "") return value
    this.refuse(at, "must be a non-empty string")
    return ""
  }

  number(at: string, value: unknown): number | undefined {
    if (value === undefined || value === null) return undefined
    return typeof value === "number" && Number.isFinite(value) ? value : this.refuse(at, "must be a number")
  }

  whole(at: string, value: unknown, least: number): number | undefined {
    if (value === undefined || value === null) return undefined
    return Number.isSafeInteger(value) && (value as number) >= least
      ? (value as number)
      : this.refuse(at, `must be a whole number of at least ${least}`)
  }

  flag(at: string, value: unknown): boolean | undefined {
    if (value === undefined || value === null) return undefined
    return typeof value === "boolean" ? value : this.refuse(at, "must be true or false")
  }

  object(at: string, value: unknown): JsonObject | undefined {
    if (value === undefined || value === null) return undefined
    return isObject(value) ? value : this.refuse(at, "must be an object")
  }

  list(at: string, value: unknown): ReadonlyArray<unknown> {
    if (value === undefined || value === null) return none
    if (Array.isArray(value)) return value
    this.refuse(at, "must be an array")
    return none
  }

  /** Reads an array of strings. A single string counts as an array with one element. */
  texts(at: string, value: unknown): ReadonlyArray<string> {
    if (typeof value === "string") return [value]
    const list = this.list(at, value)
    if (list.every((one) => typeof one === "string")) return list as ReadonlyArray<string>
    this.refuse(at, "must be an array of strings")
    return []
  }

  /** Rejects the first unknown field that is neither `null` nor an empty array, because a client can rely on its effect. */
  only(body: JsonObject, known: ReadonlySet<string>): void {
    for (const name in body) {
      const value = body[name]
      if (known.has(name) || value === undefined || value === null || (Array.isArray(value) && value.length === 0))
        continue
      this.refuse(name, "the upstream of this model uses another protocol without this field")
      return
    }
  }
}
