import { HttpApiSchema } from "@effect/platform"
import { Cause, Effect, Exit, JSONSchema, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { isProblem, Problem } from "../../src/kernel/Problem.ts"

class TooSmall extends Problem<TooSmall>()("TooSmall", {
  status: 422,
  error: "too small",
  code: "too_small",
  fields: { field: Schema.optional(Schema.String) }
}) {}

/** Its details have other names than its fields, and other types. */
class TooDear extends Problem<TooDear>()("TooDear", {
  status: 402,
  error: "too dear",
  fields: { price: Schema.BigIntFromSelf, secret: Schema.optional(Schema.String) },
  details: Schema.transform(
    Schema.Struct({ price_usd: Schema.Number }),
    Schema.typeSchema(Schema.Struct({ price: Schema.BigIntFromSelf, secret: Schema.optional(Schema.String) })),
    {
      strict: true,
      decode: ({ price_usd }) => ({ price: BigInt(price_usd * 1e9) }),
      encode: ({ price }) => ({ price_usd: Number(price) / 1e9 })
    }
  ),
  headers: ({ price }) => ({ "x-price": String(price) })
}) {}

class Asked extends Problem<Asked>()("Asked", { status: 400, error: "asked", details: { field: "who" } }) {}

class Elsewhere extends Problem<Elsewhere>()("Elsewhere", { status: 404, error: "not found" }) {}

describe("a problem", () => {
  it("is on the wire its error and its code, and nothing of ours", () => {
    expect(Schema.encodeSync(TooSmall)(new TooSmall())).toStrictEqual({ error: "too small", code: "too_small" })
    expect(Schema.encodeSync(Elsewhere)(new Elsewhere())).toStrictEqual({ error: "not found" })
  })

  it("may be worded by the case, and say more of it", () => {
    const worded = new TooSmall({ message: "0.001 is too small", field: "amount", retry_after: 3 })
    expect(Schema.encodeSync(TooSmall)(worded)).toStrictEqual({
      error: "0.001 is too small",
      code: "too_small",
      details: { field: "amount" }
    })
    expect(worded.retry_after).toBe(3)
    expect(worded.message).toBe("0.001 is too small")
  })

  it("has its status where the HTTP layer looks for it", () => {
    expect(HttpApiSchema.getStatusErrorAST(TooSmall.ast)).toBe(422)
    expect(HttpApiSchema.getStatusErrorAST(Elsewhere.ast)).toBe(404)
    expect(new TooSmall().status).toBe(422)
  })

  it("is yielded as a failure, and caught by its tag", async () => {
    const fails = Effect.gen(function* () {
      return yield* new TooSmall()
    })
    const exit = await Effect.runPromiseExit(fails)
    expect(Exit.isFailure(exit) && Cause.isFailType(exit.cause) && exit.cause.error).toBeInstanceOf(TooSmall)
    const caught = Effect.catchTag(fails, "TooSmall", ({ body, status }) => Effect.succeed([status, body.code]))
    expect(await Effect.runPromise(caught)).toEqual([422, "too_small"])
  })

  it("is read back from the wire as itself, so that a client can catch it", () => {
    const read = Schema.decodeUnknownSync(TooSmall)({ error: "so small", code: "too_small" })
    expect(read._tag).toBe("TooSmall")
    expect(read.body).toEqual({ error: "so small", code: "too_small" })
    expect(() => Schema.decodeUnknownSync(TooSmall)({ error: "not found" })).toThrow()
    expect(() => Schema.decodeUnknownSync(TooSmall)({ error: "x", code: "another" })).toThrow()
  })

  it("holds its data as values, and shows them as its details say", () => {
    const dear = new TooDear({ price: 1_500_000_000n, secret: "not for the caller" })
    expect([dear.price, dear.headers]).toEqual([1_500_000_000n, { "x-price": "1500000000" }])
    expect(Schema.encodeSync(TooDear)(dear)).toStrictEqual({ error: "too dear", details: { price_usd: 1.5 } })
    expect(new Asked().body).toStrictEqual({ error: "asked", details: { field: "who" } })
  })

  it("is read back with its data, as an instance of its own class", () => {
    const read = Schema.decodeUnknownSync(TooDear)({ error: "too dear", details: { price_usd: 0.25 } })
    expect(read).toBeInstanceOf(TooDear)
    expect(read.price).toBe(250_000_000n)
    // An older server may say less.
    expect(Schema.decodeUnknownSync(TooDear)({ error: "too dear" })._tag).toBe("TooDear")
  })

  it("is told from other errors", () => {
    expect(isProblem(new TooSmall())).toBe(true)
    for (const other of [new Error("TooSmall"), { _tag: "TooSmall" }, null, undefined, "TooSmall"]) {
      expect(isProblem(other)).toBe(false)
    }
  })

  it("has no field of a name that every problem has", () => {
    Problem()("Full", {
      status: 409,
      error: "full",
      // @ts-expect-error -- every problem has status; choose another name
      fields: { status: Schema.String, seats: Schema.Int }
    })
    // @ts-expect-error -- the same for the text
    Problem()("Full", { status: 409, error: "full", fields: { message: Schema.String } })
  })

  it("that hides its fields is read back with their defaults alone", () => {
    class Hidden extends Problem<Hidden>()("Hidden", {
      status: 404,
      error: "hidden",
      fields: {
        id: Schema.optional(Schema.String),
        again: Schema.propertySignature(Schema.Boolean).pipe(Schema.withConstructorDefault(() => false))
      },
      details: {}
    }) {}
    const read = Schema.decodeUnknownSync(Hidden)(Schema.encodeSync(Hidden)(new Hidden({ id: "one", again: true })))
    expect([read.id, read.again]).toEqual([undefined, false])
  })

  it("is documented as what it is on the wire", () => {
    expect(JSON.stringify(JSONSchema.make(Schema.encodedSchema(TooSmall)))).not.toContain("_tag")
  })
})
