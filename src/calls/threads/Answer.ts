/** Parses long vendor responses on the long-body thread. */
import { Either } from "effect"
import { exceeded } from "../../kernel/JsonText.ts"
import { readJson } from "../../upstream/wire/Failures.ts"
import type { VendorJson } from "../../upstream/wire/Failures.ts"

/**
 * The maximum number of values and names in a response. A few bytes of JSON can take a hundred bytes of heap, and running out of memory inside
 * `JSON.parse` would end the whole process instead of this thread.
 */
const partsMax = 4_000_000

/** Parses a response. `Left` holds its defect. */
export const answerIn = (bytes: Buffer): Either.Either<VendorJson, string> => {
  if (hasTooManyParts(bytes)) return Either.left(`the response has more than ${partsMax} parts`)
  const json = readJson(bytes)
  return json === undefined ? Either.left("the response is not a JSON object") : Either.right(json)
}

export const hasTooManyParts = (bytes: Buffer): boolean => exceeded(bytes, partsMax, Infinity) !== undefined
