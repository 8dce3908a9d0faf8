/** Reads and writes JSON. `written` and `parseExact` keep all digits of numbers. No text blocks the event loop for long. */
import { Effect, Either } from "effect"
import { isAscii } from "node:buffer"
import { randomUUID } from "node:crypto"
import { parse as parseLossless } from "lossless-json"
import { Decimal, mark, unmarked } from "../../kernel/Decimal.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { backslash, endOfString } from "../../kernel/JsonText.ts"
import { turn } from "../../kernel/Pieces.ts"

// ---- responses --------------------------------------------------------------------------------------------------------------

/** Restores all digits of numbers in a response written by `JSON.stringify`. */
export const written = (bytes: Uint8Array): Uint8Array => {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return text.includes(mark) ? Buffer.from(unmarked(text.toString())) : bytes
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

/** The maximum length of a body that is parsed in one step, in bytes. */
const atOnce = 1024 * 1024
/** The approximate length of the chunks of long strings, in bytes. */
const pieceOfString = 256 * 1024

/** Works like `parse`, for a body that can contain long strings, such as images. The event loop runs between their chunks. */
export const parseInPieces = (bytes: Buffer): Effect.Effect<Either.Either<unknown, InvalidRequest>> => {
  if (bytes.length <= atOnce) return Effect.sync(() => parse(bytes))
  const long = longStringsIn(bytes)
  return long.length === 0
    ? Effect.zipRight(
        turn,
        Effect.sync(() => parse(bytes))
      )
    : Effect.map(textsOf(bytes, long), (texts) =>
        texts === undefined ? Either.left(notJson) : parsedAround(bytes, long, texts)
      )
}

interface Span {
  readonly from: number
  readonly to: number
}

/** Finds the long strings and returns their positions without quotes. Bytes outside strings are read one by one, so their number is limited. */
const longStringsIn = (bytes: Buffer): ReadonlyArray<Span> => {
  const found: Array<Span> = []
  for (let at = 0, others = 0; at < bytes.length && others <= atOnce; at++, others++) {
    if (kinds[bytes[at]!] !== string) continue
    const to = endOfString(bytes, at + 1)
    if (to - at > pieceOfString) found.push({ from: at + 1, to })
    at = to
  }
  return found
}

/** Reads these strings. Returns `undefined` if any of them is not a valid JSON string. */
const textsOf = Effect.fnUntraced(function* (bytes: Buffer, spans: ReadonlyArray<Span>) {
  const texts: Array<string> = []
  for (const { from, to } of spans) {
    let text = ""
    for (let at = from; at < to;) {
      yield* turn
      const end = endOfPiece(bytes, at, to)
      const piece = textOf(bytes.subarray(at, end))
      if (piece === undefined) return undefined
      text += piece
      at = end
    }
    texts.push(text)
  }
  return texts
})

/** Decodes a chunk of a JSON string. Returns `undefined` if the chunk is invalid. */
const textOf = (piece: Buffer): string | undefined => {
  if (isAscii(piece)) {
    const plain = piece.toString("latin1")
    if (!special.test(plain)) return plain
  }
  try {
    return JSON.parse(`"${piece.toString("utf8")}"`) as string
  } catch {
    return undefined
  }
}

/** An escape, or a character that a JSON string must escape. */
// oxlint-disable-next-line no-control-regex -- the expression searches for control characters
const special = /[\\\0-\x1f]/

const isContinuation = (byte: number): boolean => (byte & 0xc0) === 0x80
/** The most bytes of a character, or of an escape, that can precede a cut. */
const ofCharacter = 3
const ofEscape = 5

/** Finds the end of the chunk that begins at `from`, without splitting a character or an escape. */
const endOfPiece = (bytes: Buffer, from: number, to: number): number => {
  let end = from + pieceOfString
  if (end >= to) return to
  for (let i = 0; i < ofCharacter && isContinuation(bytes[end]!); i++) end--
  for (let at = end - 1; at >= end - ofEscape; at--) {
    if (bytes[at] !== backslash) continue
    let first = at
    while (first > from && bytes[first - 1] === backslash) first--
    // After an odd number of backslashes, this backslash is itself escaped.
    if ((at - first) % 2 === 1) return end
    return at + (bytes[at + 1] === 0x75 ? ofEscape + 1 : 2) > end ? at : end
  }
  return end
}

/** The placeholder for a long string while the surrounding text is parsed. Clients cannot guess it. */
const standIn = randomUUID()

const parsedAround = (
  bytes: Buffer,
  spans: ReadonlyArray<Span>,
  texts: ReadonlyArray<string>
): Either.Either<unknown, InvalidRequest> => {
  const around: Array<Buffer> = []
  let from = 0
  for (const [i, span] of spans.entries()) {
    around.push(bytes.subarray(from, span.from), Buffer.from(`${standIn}${i}`))
    from = span.to
  }
  around.push(bytes.subarray(from))
  const short = parse(Buffer.concat(around))
  if (Either.isLeft(short)) return short
  const filled = filledIn(short.right, texts)
  // A placeholder is missing if a long string was the name of a member.
  return filled.count === texts.length ? Either.right(filled.value) : parse(bytes)
}

/** Replaces the placeholders in a value with the strings. */
const filledIn = (
  value: unknown,
  texts: ReadonlyArray<string>
): { readonly value: unknown; readonly count: number } => {
  let count = 0
  const fill = (one: unknown): unknown => {
    if (typeof one === "string") {
      if (!one.startsWith(standIn)) return one
      count++
      return texts[Number(one.slice(standIn.length))]
    }
    if (typeof one !== "object" || one === null) return one
    if (Array.isArray(one)) for (let i = 0; i < one.length; i++) one[i] = fill(one[i])
    else for (const name of Object.keys(one)) put(one as Record<string, unknown>, name, fill)
    return one
  }
  return { value: fill(value), count }
}

const put = (object: Record<string, unknown>, name: string, fill: (one: unknown) => unknown): void => {
  const before = object[name]
  const after = fill(before)
  // Assigning `__proto__` would not create the member.
  if (after !== before)
    Object.defineProperty(object, name, { value: after, enumerable: true, writable: true, configurable: true })
}

/** Parses a JSON body that can contain money. A number with more digits than a double can hold becomes a `Decimal`. */
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

/** Returns the limit that a JSON text exceeds: its number of values and names, or its depth. Returns `undefined` if it exceeds neither. */
export const exceeded = (bytes: Buffer, partsMax: number, depthMax: number): "parts" | "depth" | undefined => {
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
      if (++parts > partsMax) return "parts"
      if (kind === opening && ++depth > depthMax) return "depth"
    }
  }
  return undefined
}

const tooManyParts = refused("the request has too many parts", `must contain at most ${partsMax} values and names`)
const tooDeep = refused("the request is nested too deeply", `must be nested at most ${depthMax} levels deep`)

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
