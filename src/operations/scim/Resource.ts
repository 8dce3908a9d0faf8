/** Parts shared by all SCIM resources: bodies, lists, filters and PATCH operations. All functions here are pure. */
import { Either, Schema } from "effect"
import { isStorable } from "../../kernel/StoredText.ts"
import { InvalidFilter, InvalidPath, InvalidValue } from "./Problems.ts"

export const Resource = Schema.Record({ key: Schema.String, value: Schema.Unknown }).annotations({
  identifier: "ScimResource"
})
export type Resource = typeof Resource.Type

/** A resource's attributes. `null` means that an attribute has no value and is omitted. */
export type Body = { readonly [attribute: string]: unknown }

export const isBody = (value: unknown): value is Body =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Finds an attribute by name, ignoring case. */
export const attributeOf = (body: Body, name: string): unknown => {
  const found = Object.keys(body).find((key) => key.toLowerCase() === name.toLowerCase())
  return found === undefined ? undefined : body[found]
}

const longest = 320

/** Reads a string of up to 320 characters. Returns `undefined` if it is absent or null. */
export const textIn = (name: string, value: unknown): Either.Either<string | undefined, InvalidValue> => {
  if (value === undefined || value === null) return Either.right(undefined)
  return typeof value === "string" && value.length <= longest && isStorable(value)
    ? Either.right(value)
    : Either.left(new InvalidValue({ message: `${name} must be a string of up to ${longest} characters` }))
}

/** Reads a boolean, or the strings that Entra sends: `"True"` and `"False"`. */
export const truthIn = (name: string, value: unknown): Either.Either<boolean | undefined, InvalidValue> => {
  // Older versions of Entra send an array that contains one object.
  const plain = Array.isArray(value) && value.length === 1 && isBody(value[0]) ? value[0]["value"] : value
  if (plain === undefined || plain === null) return Either.right(undefined)
  if (typeof plain === "boolean") return Either.right(plain)
  const word = typeof plain === "string" ? plain.toLowerCase() : ""
  return word === "true" || word === "false"
    ? Either.right(word === "true")
    : Either.left(new InvalidValue({ message: `${name} must be true or false` }))
}

// ---- lists --------------------------------------------------------------------------------------------------------------

export interface Filter {
  /** The attribute's name, in lower case. */
  readonly attribute: string
  readonly value: string
}

/** Parses a filter of the form `attribute eq "value"`. */
export const filterIn = (
  text: string | undefined,
  attributes: ReadonlyArray<string>
): Either.Either<Filter | undefined, InvalidFilter> => {
  if (text === undefined || text === "") return Either.right(undefined)
  const found = /^\s*([\w.:]+)\s+eq\s+("(?:[^"\\]|\\.)*")\s*$/i.exec(text)
  const attribute = found?.[1]?.toLowerCase()
  if (found === null || attribute === undefined || !attributes.includes(attribute))
    return Either.left(new InvalidFilter())
  return Either.mapLeft(
    Either.try(() => ({ attribute, value: String(JSON.parse(found[2]!)) })),
    () => new InvalidFilter()
  )
}

export interface ListQuery {
  readonly filter?: string | undefined
  readonly startIndex?: string | undefined
  readonly count?: string | undefined
}

const mostResults = 200

/** Returns the start and size of the requested page. `startIndex` counts from 1. As RFC 7644 requires, values below the minimum are raised to it. */
export const pageIn = ({ count, startIndex }: ListQuery) => {
  const whole = (text: string | undefined, otherwise: number, least: number): number => {
    const number = Number(text ?? otherwise)
    return Number.isSafeInteger(number) ? Math.max(least, number) : otherwise
  }
  return { start: whole(startIndex, 1, 1), limit: Math.min(mostResults, whole(count, 100, 0)) }
}

export interface Listed {
  readonly total: number
  readonly start: number
  readonly resources: ReadonlyArray<Resource>
}

export const listed = ({ resources, start, total }: Listed): Resource => ({
  schemas: ["urn:ietf:params:scim:api:messages:2.0:ListResponse"],
  totalResults: total,
  startIndex: start,
  itemsPerPage: resources.length,
  Resources: resources
})

// ---- PATCH --------------------------------------------------------------------------------------------------------------

export interface Operation {
  readonly op: "add" | "remove" | "replace"
  /** The attribute's path; `undefined` if `value` is an object of attributes. */
  readonly path: string | undefined
  readonly value: unknown
}

const opOf = (name: unknown): Operation["op"] | undefined => {
  const op = typeof name === "string" ? name.toLowerCase() : ""
  return op === "add" || op === "remove" || op === "replace" ? op : undefined
}

/** Reads the operations. Ignores the case of `op`, because Entra capitalizes it. */
export const operationsIn = (body: Body): Either.Either<ReadonlyArray<Operation>, InvalidValue | InvalidPath> => {
  const all = attributeOf(body, "Operations")
  if (!Array.isArray(all) || all.length === 0)
    return Either.left(new InvalidValue({ message: "Operations must be an array of operations" }))
  return Either.all(all.map(operationIn))
}

const operationIn = (one: unknown): Either.Either<Operation, InvalidValue | InvalidPath> => {
  const op = isBody(one) ? opOf(attributeOf(one, "op")) : undefined
  if (!isBody(one) || op === undefined)
    return Either.left(new InvalidValue({ message: "op must be add, remove or replace" }))
  const path = attributeOf(one, "path")
  const value = attributeOf(one, "value")
  if (path === undefined || path === null || path === "") {
    return op !== "remove" && isBody(value)
      ? Either.right({ op, path: undefined, value })
      : Either.left(
          new InvalidPath({ message: "an operation must contain a path, or a value that is an object of attributes" })
        )
  }
  return typeof path === "string"
    ? Either.right({ op, path, value })
    : Either.left(new InvalidPath({ message: "path must be a string" }))
}
