/** Describes the difference between an expected and an actual value. */

/**
 * Returns the first difference, or `undefined` if there is none. Only the fields of `expected` that are not `undefined` are compared. Amounts are
 * `bigint`, so the number 5 differs from the amount 5.
 */
export const difference = (expected: unknown, found: unknown, name: string): string | undefined => {
  if (typeof expected !== "object" || expected === null) {
    if (Object.is(expected, found)) return undefined
    const what = typeof expected === "bigint" && typeof found === "number" ? "the number " : ""
    return `${name} is ${what}${show(found)} but must be ${show(expected)}`
  }
  if (typeof found !== "object" || found === null) return `${name} is ${show(found)} but must be ${show(expected)}`
  for (const [key, value] of Object.entries(expected)) {
    if (value === undefined) continue
    const why = difference(value, (found as Record<string, unknown>)[key], `${key} of ${name}`)
    if (why !== undefined) return why
  }
  return undefined
}

/** Formats a value as text. A `bigint` is formatted as its digits. */
export const show = (value: unknown): string => {
  switch (typeof value) {
    case "object":
      return value === null ? "null" : showObject(value)
    default:
      return value === undefined ? "nothing" : String(value)
  }
}

/** Formats the fields, preceded by the tag if the value has one. */
const showObject = (value: object): string => {
  const fields = Object.entries(value).filter(([key, field]) => key !== "_tag" && field !== undefined)
  const tag = "_tag" in value ? String(value._tag) : ""
  const shown = fields.map(([key, field]) => `${key}: ${show(field)}`).join(", ")
  return fields.length === 0 ? tag || "{}" : `${tag}${tag && " "}{ ${shown} }`
}
