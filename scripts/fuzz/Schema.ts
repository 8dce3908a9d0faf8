/** Implements the JSON Schema subset that the document uses: validates values and generates valid ones. */
import fc from "fast-check"
import { hostileNumbers, hostileTexts, texts } from "./Hostile.ts"

export interface Schema {
  readonly $ref?: string
  readonly type?: "string" | "number" | "integer" | "boolean" | "null" | "object" | "array"
  readonly enum?: ReadonlyArray<unknown>
  readonly anyOf?: ReadonlyArray<Schema>
  readonly allOf?: ReadonlyArray<Schema>
  readonly required?: ReadonlyArray<string>
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
  readonly pattern?: string
  readonly format?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
}

export type Schemas = Readonly<Record<string, Schema>>

const referred = (schemas: Schemas, reference: string): Schema => {
  const schema = schemas[reference.slice("#/components/schemas/".length)]
  if (schema === undefined) throw new Error(`the document has no ${reference}`)
  return schema
}

// ---- validation -------------------------------------------------------------------------------------------------------------

const typeOf = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "array" : typeof value === "object" ? "object" : typeof value

const isOfType = (type: string, value: unknown): boolean =>
  type === "integer" ? Number.isInteger(value) : typeOf(value) === type

const formats: Readonly<Record<string, RegExp>> = {
  "date-time": /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/,
  date: /^\d{4}-\d\d-\d\d$/,
  email: /^[^@\s]+@[^@\s]+$/
}

/** Returns where and how a value violates its schema, or `undefined` if the value is valid. */
export const misfit = (schemas: Schemas, schema: Schema, value: unknown, at = "$"): string | undefined => {
  if (schema.$ref !== undefined) {
    const found = misfit(schemas, referred(schemas, schema.$ref), value, at)
    if (found !== undefined) return found
  }
  for (const part of schema.allOf ?? []) {
    const found = misfit(schemas, part, value, at)
    if (found !== undefined) return found
  }
  if (schema.anyOf !== undefined) {
    const found = schema.anyOf.map((one) => misfit(schemas, one, value, at))
    if (found.every((one) => one !== undefined)) return `${at} is none of: ${[...new Set(found)].join("; ")}`
  }
  if (schema.enum !== undefined && !schema.enum.includes(value))
    return `${at} is ${JSON.stringify(value)?.slice(0, 100)}, not one of ${JSON.stringify(schema.enum).slice(0, 200)}`
  if (schema.type !== undefined && !isOfType(schema.type, value)) return `${at} is ${typeOf(value)}, not ${schema.type}`
  if (typeof value === "number") return misfitOfNumber(schema, value, at)
  if (typeof value === "string") return misfitOfText(schema, value, at)
  if (Array.isArray(value)) return misfitOfArray(schemas, schema, value, at)
  if (typeof value === "object" && value !== null) return misfitOfObject(schemas, schema, value, at)
  return undefined
}

const misfitOfNumber = ({ exclusiveMinimum, maximum, minimum }: Schema, value: number, at: string) =>
  value < (minimum ?? Number.NEGATIVE_INFINITY) ||
  value <= (exclusiveMinimum ?? Number.NEGATIVE_INFINITY) ||
  value > (maximum ?? Number.POSITIVE_INFINITY)
    ? `${at} is out of range: ${value}`
    : undefined

const misfitOfText = (
  { format = "", maxLength = Infinity, minLength = 0, pattern }: Schema,
  value: string,
  at: string
) =>
  value.length < minLength ||
  value.length > maxLength ||
  (pattern !== undefined && !new RegExp(pattern).test(value)) ||
  formats[format]?.test(value) === false
    ? `${at} is a string that the schema does not allow: ${JSON.stringify(value).slice(0, 100)}`
    : undefined

const misfitOfArray = (schemas: Schemas, schema: Schema, value: ReadonlyArray<unknown>, at: string) => {
  const { items, maxItems = Infinity, minItems = 0 } = schema
  if (value.length < minItems || value.length > maxItems) return `${at} has ${value.length} items`
  if (items === undefined) return undefined
  for (const [index, item] of value.entries()) {
    const found = misfit(schemas, items, item, `${at}[${index}]`)
    if (found !== undefined) return found
  }
  return undefined
}

const misfitOfObject = (schemas: Schemas, schema: Schema, value: object, at: string) => {
  for (const name of schema.required ?? []) if (!Object.hasOwn(value, name)) return `${at} lacks ${name}`
  for (const [name, one] of Object.entries(value)) {
    const own = Object.hasOwn(schema.properties ?? {}, name) ? schema.properties![name]! : schema.additionalProperties
    if (own === undefined || own === true) continue
    const found = own === false ? `${at}.${name} is undocumented` : misfit(schemas, own, one, `${at}.${name}`)
    if (found !== undefined) return found
  }
  return undefined
}

// ---- generation ---------------------------------------------------------------------------------------------------------------

const nestedMax = 5

/** Generates values for a schema. `known` lists values to use, by property name. */
export const valuesOf = (
  schemas: Schemas,
  schema: Schema,
  known: (name: string) => fc.Arbitrary<unknown> | undefined,
  depth = 0
): fc.Arbitrary<unknown> => {
  const of = (inner: Schema): fc.Arbitrary<unknown> => valuesOf(schemas, inner, known, depth + 1)
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map(of))
  if (schema.$ref !== undefined) return of(referred(schemas, schema.$ref))
  if (schema.allOf !== undefined) return of(schema.allOf[0]!)
  switch (schema.type) {
    case "string":
      return textsOf(schema)
    case "integer":
    case "number":
      return numbersOf(schema)
    case "boolean":
      return fc.boolean()
    case "null":
      return fc.constant(null)
    case "array":
      if (depth > nestedMax) return fc.constant([])
      return fc.array(of(schema.items ?? {}), { minLength: schema.minItems ?? 0, maxLength: 3 })
    case "object":
      return depth > nestedMax ? fc.constant({}) : objectsOf(schema, known, of)
    default:
      return fc.jsonValue({ maxDepth: 2 })
  }
}

const textsOf = ({ format, maxLength = 200, minLength = 0 }: Schema): fc.Arbitrary<string> => {
  if (format === "email") return fc.constantFrom("grace@example.com", "bob@example.com", "o'hara+x@sub.example.org")
  if (format === "date-time")
    return fc.constantFrom("2026-01-31T00:00:00Z", "2099-12-31T23:59:59.999+14:00", "1970-01-01T00:00:00Z")
  if (format === "date") return fc.constantFrom("2026-01-31", "2024-02-29")
  const free = fc.string({ minLength, maxLength: Math.max(minLength, Math.min(maxLength, 30)), unit: "binary" })
  return fc.oneof({ weight: 3, arbitrary: texts }, free, hostileTexts)
}

const numbersOf = (schema: Schema): fc.Arbitrary<number> => {
  const from = schema.minimum ?? schema.exclusiveMinimum ?? -1e6
  const to = schema.maximum ?? 1e6
  const small = fc.integer({ min: Math.ceil(from), max: Math.max(Math.ceil(from), Math.floor(Math.min(to, 100))) })
  if (schema.type === "integer") return fc.oneof(small, fc.integer({ min: Math.ceil(from), max: Math.floor(to) }))
  return fc.oneof(small, fc.double({ min: from, max: to, noNaN: true }), hostileNumbers)
}

const objectsOf = (
  schema: Schema,
  known: (name: string) => fc.Arbitrary<unknown> | undefined,
  of: (inner: Schema) => fc.Arbitrary<unknown>
): fc.Arbitrary<unknown> => {
  const properties = Object.entries(schema.properties ?? {})
  const model = Object.fromEntries(
    properties.map(([name, inner]) => {
      const values = known(name)
      return [name, values === undefined ? of(inner) : fc.oneof({ weight: 4, arbitrary: values }, of(inner))] as const
    })
  )
  const whole = fc.record(model, { requiredKeys: [...(schema.required ?? [])].filter((name) => name in model) })
  const more = schema.additionalProperties
  if (more === undefined || more === false) return whole
  const others = fc.dictionary(texts, of(more === true ? {} : more), { maxKeys: 3 })
  return fc.tuple(whole, others).map(([own, other]) => ({ ...other, ...own }))
}
