/**
 * How a refusal is declared: once, as a class that is at the same time a tagged error to yield, and the schema of what the
 * caller sees, `{ error, code?, details? }` with its HTTP status.
 *
 *     export class TransferNotPending extends Problem<TransferNotPending>()("TransferNotPending", {
 *       status: 409, error: "the transfer is no longer pending", code: "transfer_not_pending"
 *     }) {}
 *
 *     yield* new TransferNotPending()
 *     yield* new InvalidRequest({ details: { field: "amount", rule: "at least 0.01" } })
 */
import { HttpApiSchema } from "@effect/platform"
import { Data, Schema } from "effect"
import type { Cause } from "effect"

/** The body of every refusal. */
export interface ProblemBody {
  readonly error: string
  readonly code?: string
  readonly details?: { readonly [key: string]: unknown }
}

/** What an instance may say beyond its class. `error` replaces the class's wording. */
export interface ProblemWords {
  readonly error?: string
  readonly details?: { readonly [key: string]: unknown }
  /** Seconds after which trying again makes sense; sent as `Retry-After`. */
  readonly retry_after?: number
  /** Sent with it, by their names in lower case. */
  readonly headers?: { readonly [name: string]: string }
}

export interface ProblemInstance<Tag extends string> extends Cause.YieldableError {
  readonly _tag: Tag
  readonly status: number
  readonly body: ProblemBody
  readonly retry_after: number | undefined
  readonly headers: { readonly [name: string]: string }
}

export interface ProblemClass<Self, Tag extends string> extends Schema.Schema<Self, ProblemBody> {
  new (words?: ProblemWords): ProblemInstance<Tag>
  readonly declared: Declared
}

/** What all instances say, unless they say otherwise. */
interface Declared {
  readonly status: number
  readonly error: string
  readonly code?: string
  readonly details?: ProblemBody["details"]
}

const none: { readonly [name: string]: string } = {}

const marker = Symbol.for("tollgate/Problem")

/** Whether a value is an instance of some problem class. */
export const isProblem = (value: unknown): value is ProblemInstance<string> =>
  typeof value === "object" && value !== null && marker in value

export const Problem =
  <Self>() =>
  <const Tag extends string>(tag: Tag, declared: Declared): ProblemClass<Self, Tag> => {
    class Base extends Data.Error<{ readonly message: string }> {
      readonly _tag = tag
      readonly status = declared.status
      readonly body: ProblemBody
      readonly retry_after: number | undefined
      readonly headers: { readonly [name: string]: string }
      readonly [marker] = tag

      constructor(words: ProblemWords = {}) {
        const error = words.error ?? declared.error
        const details = words.details ?? declared.details
        super({ message: error })
        this.name = tag
        this.retry_after = words.retry_after
        this.headers = words.headers ?? none
        this.body = {
          error,
          ...(declared.code !== undefined && { code: declared.code }),
          ...(details !== undefined && { details })
        }
      }
    }

    let schema: Schema.Schema<Base, ProblemBody> | undefined
    const asSchema = () => {
      if (schema !== undefined) return schema
      const encoded = Schema.Struct({
        error: Schema.String,
        ...(declared.code !== undefined && { code: Schema.Literal(declared.code) }),
        details: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.Unknown }))
      }).annotations({ identifier: `${tag}Body`, description: declared.error }) as unknown as Schema.Schema<ProblemBody>
      const instance = Schema.declare((value): value is Base => value instanceof Base, { identifier: tag, title: tag })
      schema = Schema.transform(encoded, instance, {
        strict: true,
        decode: ({ details, error }) => new Base({ error, ...(details !== undefined && { details }) }),
        encode: ({ body }) => body
      }).annotations(HttpApiSchema.annotations({ status: declared.status, identifier: tag }))
      return schema
    }
    Object.defineProperty(Base, "ast", { get: () => asSchema().ast })
    Object.assign(Base, {
      declared,
      [Schema.TypeId]: (Schema.Void as unknown as Record<symbol, unknown>)[Schema.TypeId],
      pipe: Schema.Void.pipe,
      annotations: (annotations: Schema.Annotations.GenericSchema<Base>) => asSchema().annotations(annotations)
    })
    return Base as unknown as ProblemClass<Self, Tag>
  }
