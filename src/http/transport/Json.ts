/** Reads and writes JSON. Numbers keep all their digits, and no text blocks the event loop for long. */
import { Either } from "effect"
import { parse as parseLossless } from "lossless-json"
import { Decimal, mark, restoreDecimals } from "../../kernel/Decimal.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { exceeded } from "../../kernel/JsonText.ts"

// ---- responses --------------------------------------------------------------------------------------------------------------

/** Restores all digits of numbers in a response written by `JSON.stringify`. */
export const written = (bytes: Uint8Array): Uint8Array => {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return text.includes(mark) ? Buffer.from(restoreDecimals(text.toString())) : bytes
}

// ---- requests ---------------------------------------------------------------------------------------------------------------

/** The limits on JSON text: the number of values and names (counted by their separators) and the nesting depth. */
export const partsMax = 250_000
export const depthMax = 1_000
/** JSON of at most this many bytes cannot exceed either limit. */
const looked = 2 * depthMax

const refused = (message: string, rule: string) => new InvalidRequest({ message, field: "", rule })
export const notJson = refused("the request body is not JSON", "must be a JSON document")

/** Parses a JSON body, with numbers as doubles. */
export const parse = (bytes: Buffer): Either.Either<unknown, InvalidRequest> => {
  const wrong = bytes.length > looked ? excessOf(bytes) : undefined
  if (wrong !== undefined) return Either.left(wrong)
  try {
    return Either.right(JSON.parse(bytes.toString("utf8")))
  } catch {
    return Either.left(notJson)
  }
}

/** Parses a JSON body that may contain money. A number with more digits than a double can hold becomes a `Decimal`. */
export const parseExact = (bytes: Buffer): Either.Either<unknown, InvalidRequest> => {
  const read = parse(bytes)
  if (Either.isLeft(read)) return read
  const text = bytes.toString("utf8")
  if (!manyDigits.test(text)) return read
  try {
    return Either.right(
      parseLossless(text, null, { parseNumber: numberOf, onDuplicateKey: ({ newValue }) => newValue })
    )
  } catch {
    // The text is valid JSON, so the parser can only have failed because of deep recursion.
    return Either.left(tooDeep)
  }
}

/** Sixteen digits in a row, with or without a decimal point. A double can represent any fifteen. */
const manyDigits = /\d(?:\.?\d){15}/

const numberOf = (literal: string): number | Decimal => {
  const number = Number(literal)
  return digitsOf(literal) === digitsOf(String(number)) ? number : new Decimal(literal)
}

/** Returns the digits of a number without leading and trailing zeros. `/0+$/` would take quadratic time for zeros in the middle. */
const digitsOf = (literal: string): string => {
  const digits = literal
    .replace(/[eE].*$/, "")
    .replace(/[-.]/g, "")
    .replace(/^0+/, "")
  let end = digits.length
  while (digits[end - 1] === "0") end--
  return digits.slice(0, end)
}

/**
 * Finds a reason to refuse JSON before it is parsed. A few megabytes of `{}` take seconds to parse; one long string of that size takes a few
 * milliseconds. The search skips the content of strings and stops at the limit.
 */
const excessOf = (bytes: Buffer): InvalidRequest | undefined => {
  switch (exceeded(bytes, partsMax, depthMax)) {
    case "parts":
      return tooManyParts
    case "depth":
      return tooDeep
    default:
      return undefined
  }
}

const tooManyParts = refused("the request has too many parts", `must contain at most ${partsMax} values and names`)
const tooDeep = refused("the request is nested too deeply", `must be nested at most ${depthMax} levels deep`)
