/**
 * Declares a refusal in one place, as a `Schema.TaggedError` with its data and its HTTP form. The schema encodes to the body `{ error, code?,
 * details? }` and is annotated with the status, so a contract can refer to the class itself.
 *
 *     export class TransferNotPending extends Problem<TransferNotPending>()("TransferNotPending", {
 *       status: 409, error: "the transfer is no longer pending", code: "transfer_not_pending"
 *     }) {}
 *
 *     export class SeatsTaken extends Problem<SeatsTaken>()("SeatsTaken", {
 *       status: 409, error: "all seats are taken", code: "seats_taken", fields: { seats: Schema.Int }
 *     }) {}
 *
 *     yield* new SeatsTaken({ seats: 25 })                          // { error, code, details: { seats: 25 } }
 *     Effect.catchTag("SeatsTaken", ({ seats }) => …)
 */
import { HttpApiSchema } from "@effect/platform"
import { ParseResult, Schema } from "effect"
import type { Cause } from "effect"

export interface ProblemBody {
  readonly error: string
  readonly code?: string
  readonly details?: { readonly [key: string]: unknown }
}

/** An instance's optional values, besides its fields. */
export interface ProblemWords {
  /** Overrides the error text of the class. */
  readonly message?: string
  /** Seconds to wait before retrying, sent as `Retry-After`. */
  readonly retry_after?: number
}

export interface ProblemInstance<Tag extends string> extends Cause.YieldableError {
  readonly _tag: Tag
  readonly status: number
  /** The body's code; `undefined` if the class declares none. */
  readonly code: string | undefined
  readonly body: ProblemBody
  readonly retry_after: number | undefined
  /** The response headers, by lower-case name. */
  readonly headers: { readonly [name: string]: string }
}

/** The constructor's arguments. They are optional if no field is required. */
export type ProblemArguments<Fields extends Schema.Struct.Fields> =
  {} extends Schema.Struct.Constructor<Fields>
    ? [words?: ProblemWords & Schema.Struct.Constructor<Fields>]
    : [words: ProblemWords & Schema.Struct.Constructor<Fields>]

export interface ProblemClass<Self, Tag extends string, Fields extends Schema.Struct.Fields> extends Schema.Schema<
  Self,
  ProblemBody
> {
  new (...words: ProblemArguments<Fields>): ProblemInstance<Tag> & Schema.Struct.Type<Fields>
  readonly fields: Fields
  readonly declared: Declared<Fields>
}

/** The declaration shared by all instances of a class. */
export interface Declared<Fields extends Schema.Struct.Fields> {
  readonly status: number
  readonly error: string
  readonly code?: string
  /** Matches the error texts that instances set. Without a code, a client recognizes the problem by its status and text. */
  readonly like?: RegExp
  /** An instance's data. It is encoded as `details` unless `details` is declared. */
  readonly fields?: Fields
  /**
   * How `details` is produced: by a schema that converts the fields, or as one object for all instances. An empty object is omitted. If `details` is
   * an object, the fields are not sent. An instance decoded from the body then has only the fields with a constructor default.
   */
  readonly details?: { readonly [key: string]: unknown } | Schema.Schema.AnyNoContext
  readonly headers?: (fields: Schema.Struct.Type<Fields>) => ProblemInstance<string>["headers"]
}

/** The member names that all instances already use. */
type Reserved = Exclude<keyof ProblemInstance<string> | keyof ProblemWords, symbol>

/** A type error for a field with a reserved name. The compiler prints the text of the impossible property. */
type Unreserved<Fields> = [keyof Fields & Reserved] extends [never]
  ? unknown
  : {
      readonly fields: {
        readonly [Name in keyof Fields & Reserved]: `every problem has ${Name}; choose another name`
      }
    }

const marker = Symbol.for("tollgate/Problem")

export const isProblem = (value: unknown): value is ProblemInstance<string> =>
  typeof value === "object" && value !== null && marker in value

const none: ProblemInstance<string>["headers"] = {}

/** Creates the functions that encode an instance's fields as `details` and decode them again. */
const detailsOf = <Fields extends Schema.Struct.Fields>({ details, fields }: Declared<Fields>) => {
  if (details !== undefined && !Schema.isSchema(details)) {
    const same = Object.keys(details).length === 0 ? undefined : (details as Readonly<Record<string, unknown>>)
    return { encode: () => same, decode: () => ({}) }
  }
  if (fields === undefined) return { encode: () => undefined, decode: () => ({}) }
  const schema = (details ?? Schema.Struct(fields)) as unknown as Schema.Schema<
    object,
    Readonly<Record<string, unknown>>
  >
  const encode = Schema.encodeSync(schema)
  const decode = Schema.decodeUnknownOption(schema)
  const own = Object.keys(fields)
  return {
    encode: (instance: object) => {
      const encoded = encode(
        Object.fromEntries(
          Object.entries(instance).filter(([name, value]) => own.includes(name) && value !== undefined)
        )
      )
      return Object.keys(encoded).length === 0 ? undefined : encoded
    },
    decode: (encoded: unknown) => {
      const decoded = decode(encoded ?? {})
      return decoded._tag === "Some" ? decoded.value : {}
    }
  }
}

export const Problem =
  <Self>() =>
  <const Tag extends string, Fields extends Schema.Struct.Fields = {}>(
    tag: Tag,
    declared: Declared<Fields> & Unreserved<Fields>
  ): ProblemClass<Self, Tag, Fields> => {
    const { code, error, headers, like, status } = declared
    const isText = (text: string): boolean => code !== undefined || (like?.test(text) ?? text === error)
    const codec = detailsOf(declared)
    const data = {
      ...declared.fields,
      message: Schema.propertySignature(Schema.String).pipe(Schema.withConstructorDefault(() => error)),
      retry_after: Schema.optional(Schema.Number)
    }
    interface Instance extends ProblemInstance<Tag> {
      readonly message: string
    }
    // Skip validation: the types check the fields, and a refusal must not turn into a defect.
    class Base extends Schema.TaggedError<Instance>(`tollgate/${tag}`)(tag, data) {
      // @effect-diagnostics-next-line overriddenSchemaConstructor:off -- the declared text is the default
      constructor(words: ProblemWords = {}) {
        super((words.message === undefined ? { ...words, message: error } : words) as never, true)
      }
      readonly [marker] = tag
      get status() {
        return status
      }
      get code() {
        return code
      }
      get body(): ProblemBody {
        const details = codec.encode(this)
        return {
          error: this.message,
          ...(code !== undefined && { code }),
          ...(details !== undefined && { details })
        }
      }
      get headers() {
        return headers === undefined ? none : headers(this as unknown as Schema.Struct.Type<Fields>)
      }
    }

    const encoded = Schema.Struct({
      error: Schema.String,
      ...(code !== undefined && { code: Schema.Literal(code) }),
      details: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.Unknown }))
    }).annotations({ identifier: `${tag}Body`, description: error }) as unknown as Schema.Schema<ProblemBody>

    /** Each class gets its own schema, so that a subclass decodes to its own instances. */
    const schemas = new WeakMap<object, Schema.Schema<Instance, ProblemBody>>()
    const schemaOf = (self: typeof Base): Schema.Schema<Instance, ProblemBody> => {
      let schema = schemas.get(self)
      if (schema === undefined) {
        const instance = Schema.declare((value): value is Instance => value instanceof self, {
          identifier: tag,
          title: tag
        })
        schema = Schema.transformOrFail(encoded, instance, {
          strict: true,
          decode: (body, _, ast) =>
            isText(body.error)
              ? ParseResult.succeed(
                  new self({ ...codec.decode(body.details), message: body.error }) as unknown as Instance
                )
              : ParseResult.fail(new ParseResult.Type(ast, body, "the error text belongs to another problem")),
          encode: ({ body }) => ParseResult.succeed(body)
        }).annotations(HttpApiSchema.annotations({ status, identifier: tag }))
        schemas.set(self, schema)
      }
      return schema
    }
    Object.defineProperties(Base, {
      ast: {
        get(this: typeof Base) {
          return schemaOf(this).ast
        }
      },
      annotations: {
        value(this: typeof Base, annotations: Schema.Annotations.GenericSchema<Instance>) {
          return schemaOf(this).annotations(annotations)
        }
      },
      declared: { value: declared }
    })
    return Base as unknown as ProblemClass<Self, Tag, Fields>
  }
