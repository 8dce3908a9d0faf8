/**
 * Building blocks for a deployment's settings: configuration values with their rules, secrets from the environment, and the error for an invalid
 * configuration. Each room declares its part of the file in its `Settings.ts`.
 */
import { Config, Effect, ParseResult, Schema } from "effect"
import type { Redacted } from "effect"
import { fromDecimal } from "./Money.ts"

/** An error in the configuration, described for the operator. */
export class ConfigProblem extends Schema.TaggedError<ConfigProblem>()("ConfigProblem", { message: Schema.String }) {}

export const NonEmpty = Schema.NonEmptyString.annotations({
  message: () => ({ message: "must be a non-empty string", override: true })
})

export const Address = Schema.String.pipe(
  Schema.filter((text) => /^https?:\/\/[^/]+/.test(text) && URL.canParse(text), {
    message: () => "must be a URL that begins with http:// or https://"
  })
)

export const Count = Schema.Int.pipe(Schema.positive({ message: () => "must be a positive whole number" }))

/** A duration, written in the file in whole seconds and read as milliseconds. */
export const Seconds = Schema.transform(Count, Schema.Int, {
  strict: true,
  decode: (seconds) => seconds * 1_000,
  encode: (ms) => ms / 1_000
})

const factorRule = "must be a decimal number above zero"

/** A factor, written in the file as a decimal number and read as millionths. */
export const Factor = Schema.transformOrFail(
  Schema.Union(Schema.String, Schema.JsonNumber),
  Schema.BigIntFromSelf.pipe(Schema.positiveBigInt({ message: () => factorRule })),
  {
    strict: true,
    decode: (literal, _, ast) => {
      const factor = fromDecimal(String(literal), 6)
      return factor === undefined
        ? ParseResult.fail(new ParseResult.Type(ast, literal, factorRule))
        : ParseResult.succeed(factor)
    },
    encode: (factor, _, ast) => readOnly(ast, factor)
  }
)

const readOnly = (ast: ParseResult.Forbidden["ast"], value: unknown) =>
  ParseResult.fail(new ParseResult.Forbidden(ast, value, "settings cannot be encoded"))

/** Converts a file entry to the form that the service uses. */
export const readAs = <A, I, B extends object>(
  entry: Schema.Schema<A, I>,
  read: (entry: A) => B
): Schema.Schema<B, I> =>
  Schema.transformOrFail(
    entry,
    Schema.declare((value): value is B => typeof value === "object"),
    {
      strict: true,
      decode: (value) => ParseResult.succeed(read(value)),
      encode: (value, _, ast) => readOnly(ast, value)
    }
  )

/** Creates a schema for an array of entries with distinct ids, none of them `reserved`. */
export const distinct = <A extends { readonly id: string }, I>(
  entry: Schema.Schema<A, I>,
  reserved: ReadonlyArray<string> = []
) =>
  Schema.Array(entry).pipe(
    Schema.filter((entries) => {
      const ids = new Set(reserved)
      return entries.flatMap(({ id }, i) => {
        if (ids.has(id)) return [{ path: [i, "id"], message: `${id} is taken` }]
        ids.add(id)
        return []
      })
    })
  )

/** The usual form of a variable name. Any other string might be a secret. */
const variableName = /^[A-Z_][A-Z0-9_]{0,63}$/

/**
 * Reads the secret from the environment variable named in the `entry` of the file. Returns `undefined` if the entry is absent. Fails if the variable
 * is not set. The error repeats the name only if it looks like a variable name, because an operator might have written the secret itself.
 */
export const secretOf = (
  entry: string,
  variable: string | undefined
): Effect.Effect<Redacted.Redacted | undefined, ConfigProblem> => {
  if (variable === undefined) return Effect.succeed(undefined)
  const message = variableName.test(variable)
    ? `${entry}: the environment variable ${variable} is not set`
    : `${entry}: must be the name of an environment variable that is set, not the secret itself`
  return Effect.mapError(Config.redacted(variable), () => new ConfigProblem({ message }))
}
