/** Schemas of prompt fields, and a fast check of a complete body. */
import { Schema } from "effect"

/**
 * Annotates a common field with a hand-written check that is equivalent to the schema. The generated check takes ten times as long, and four such
 * checks took 2 % of a call.
 */
export const byHand = Symbol("byHand")
type Check = (value: unknown) => boolean

const checkOf = (schema: Schema.Schema.AnyNoContext): Check =>
  (schema.ast.annotations[byHand] as Check | undefined) ?? Schema.is(schema)

export const between = (least: number, most: number) =>
  Schema.JsonNumber.pipe(
    Schema.between(least, most, { message: () => `must be a number from ${least} to ${most}` })
  ).annotations({ [byHand]: (value: unknown) => typeof value === "number" && value >= least && value <= most })

export const whole = (least: number, most: number) =>
  Schema.Int.pipe(
    Schema.between(least, most, { message: () => `must be a whole number from ${least} to ${most}` })
  ).annotations({
    message: () => ({ message: `must be a whole number from ${least} to ${most}`, override: true }),
    [byHand]: (value: unknown) => Number.isInteger(value) && (value as number) >= least && (value as number) <= most
  })

export const optional = <A, I>(schema: Schema.Schema<A, I>) => {
  const is = checkOf(schema)
  return Schema.NullOr(schema).annotations({ [byHand]: (value: unknown) => value === null || is(value) })
}

export const Flag = Schema.Boolean.annotations({ [byHand]: (value: unknown) => typeof value === "boolean" })
export const ModelName = Schema.NonEmptyString.annotations({
  [byHand]: (value: unknown) => typeof value === "string" && value !== ""
})

/**
 * Checks a body's required fields and the optional fields that it contains. Decoding the body would take ten times as long, so only an invalid body
 * is decoded, to describe its defect.
 */
export const fits = (fields: {
  readonly required: Readonly<Record<string, Schema.Schema.AnyNoContext>>
  readonly optional: Readonly<Record<string, Schema.Schema.AnyNoContext>>
}) => {
  const required = Object.entries(fields.required).map(([name, schema]) => [name, checkOf(schema)] as const)
  const optional = new Map(Object.entries(fields.optional).map(([name, schema]) => [name, checkOf(schema)] as const))
  return (body: unknown): boolean => {
    if (typeof body !== "object" || body === null) return false
    const value = body as Readonly<Record<string, unknown>>
    for (const [name, is] of required) if (!is(value[name])) return false
    for (const name in value) {
      const is = optional.get(name)
      if (is !== undefined && !is(value[name])) return false
    }
    return true
  }
}
