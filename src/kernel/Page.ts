/** Pagination: a `page` number from 1, a `per_page` count up to a maximum, and the resulting page. */
import { ParseResult, Schema } from "effect"

/** The maximum number of records per page, and the default. */
export const perPageMax = 200
export const perPageDefault = 50

/** Creates the schema of a positive whole number in a query. */
export const positive = (description: string) =>
  Schema.transformOrFail(Schema.String.annotations({ description }), Schema.Int, {
    strict: true,
    decode: (text, _, ast) =>
      /^0*[1-9]\d{0,14}$/.test(text)
        ? ParseResult.succeed(Number(text))
        : ParseResult.fail(new ParseResult.Type(ast, text, "must be a positive whole number")),
    encode: (number) => ParseResult.succeed(String(number))
  })

/** The query of a paginated route. A `per_page` above the maximum is reduced to the maximum. */
export const PageQuery = {
  page: Schema.optionalWith(positive("The number of the page, from 1"), { default: () => 1 }),
  per_page: Schema.optionalWith(
    Schema.transform(
      positive(`The number of records per page: ${perPageDefault} by default, up to ${perPageMax}`),
      Schema.Int,
      {
        strict: true,
        decode: (count) => Math.min(count, perPageMax),
        encode: (count) => count
      }
    ),
    { default: () => perPageDefault }
  )
} as const

export interface PageOf {
  readonly page: number
  readonly per_page: number
}

export const Paginated = <A, I, R>(record: Schema.Schema<A, I, R>) =>
  Schema.Struct({
    page: Schema.Int,
    per_page: Schema.Int,
    total_pages: Schema.Int,
    total_records: Schema.Int,
    records: Schema.Array(record)
  })

export interface Paged<A> extends PageOf {
  readonly total_pages: number
  readonly total_records: number
  readonly records: ReadonlyArray<A>
}

export const paginated = <A>(
  { page, per_page }: PageOf,
  total_records: number,
  records: ReadonlyArray<A>
): Paged<A> => ({
  page,
  per_page,
  total_pages: Math.ceil(total_records / per_page),
  total_records,
  records
})
