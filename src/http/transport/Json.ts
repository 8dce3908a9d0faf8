/** JSON of requests and answers: numbers keep all their digits, and no text is worth holding up everybody else. */
import { Either } from "effect"
import { parse as parseLossless } from "lossless-json"
import { Decimal, mark, unmarked } from "../../kernel/Decimal.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { endOfString } from "../../kernel/JsonText.ts"

// ---- answers ----------------------------------------------------------------------------------------------------------------

/** The bytes of an answer that `JSON.stringify` wrote, with all digits of its numbers. */
export const written = (bytes: Uint8Array): Uint8Array => {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return text.includes(mark) ? Buffer.from(unmarked(text.toString())) : bytes
}

// ---- requests ---------------------------------------------------------------------------------------------------------------

/** How many values and names a text may hold, counted by what stands between them; and how deep they may be nested. */
export const partsMax = 250_000
export const depthMax = 1_000
/** A text up to this long is neither. */
const looked = 2 * depthMax

const refused = (message: string, rule: string) => new InvalidRequest({ message, field: "", rule })
/** Of what is no JSON at all. */
export const notJson = refused("the request body is not JSON", "a JSON document")

/** Reads a JSON body, its numbers as doubles. */
export const parse = (bytes: Buffer): Either.Either<unknown, InvalidRequest> => {
  const wrong = bytes.length > looked ? excessOf(bytes) : undefined
  if (wrong !== undefined) return Either.left(wrong)
  try {
    return Either.right(JSON.parse(bytes.toString("utf8")))
  } catch {
    return Either.left(notJson)
  }
}

/** Reads a JSON body in which money may stand: a number of more digits than a double holds is a `Decimal`. */
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
    // It is JSON, so there is one thing that this parser cannot do: it recurses.
    return Either.left(tooDeep)
  }
}

/** Sixteen digits in a row, a point among them or not: any fifteen are those of a double. */
const manyDigits = /\d(?:\.?\d){15}/

const numberOf = (literal: string): number | Decimal => {
  const number = Number(literal)
  return digitsOf(literal) === digitsOf(String(number)) ? number : new Decimal(literal)
}

const digitsOf = (literal: string): string =>
  literal
    .replace(/[eE].*$/, "")
    .replace(/[-.]/g, "")
    .replace(/^0+|0+$/g, "")

/**
 * Why a text is not parsed: parsing a few megabytes of `{}` takes seconds, of one long string a few milliseconds. What stands in
 * strings is not looked at, and of the rest only as much as is allowed.
 */
const excessOf = (bytes: Buffer): InvalidRequest | undefined => {
  const end = bytes.length
  let depth = 0
  let parts = 0
  for (let i = 0; i < end; i++) {
    const kind = kinds[bytes[i]!]
    if (kind === other) continue
    if (kind === string) {
      i = endOfString(bytes, i + 1)
    } else if (kind === closing) {
      depth--
    } else {
      if (++parts > partsMax) return tooManyParts
      if (kind === opening && ++depth > depthMax) return tooDeep
    }
  }
  return undefined
}

const tooManyParts = refused("the request has too many parts", `up to ${partsMax} values and names`)
const tooDeep = refused("the request is nested too deeply", `nested up to ${depthMax} deep`)

const [other, string, opening, closing, between] = [0, 1, 2, 3, 4]
const kinds = new Uint8Array(256)
for (const [characters, kind] of [
  ['"', string],
  ["[{", opening],
  ["]}", closing],
  [",:", between]
] as const) {
  for (const character of characters) kinds[character.charCodeAt(0)] = kind
}
