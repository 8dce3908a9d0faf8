import { HttpApiSchema } from "@effect/platform"
import { Cause, Effect, Exit, JSONSchema, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { isProblem, Problem } from "../../src/kernel/Problem.ts"

class TooSmall extends Problem<TooSmall>()("TooSmall", { status: 422, error: "too small", code: "too_small" }) {}

class Elsewhere extends Problem<Elsewhere>()("Elsewhere", { status: 404, error: "not found" }) {}

describe("a problem", () => {
  it("is on the wire its error and its code, and nothing of ours", () => {
    expect(Schema.encodeSync(TooSmall)(new TooSmall())).toStrictEqual({ error: "too small", code: "too_small" })
    expect(Schema.encodeSync(Elsewhere)(new Elsewhere())).toStrictEqual({ error: "not found" })
  })

  it("may be worded by the case, and say more of it", () => {
    const worded = new TooSmall({ error: "0.001 is too small", details: { field: "amount" }, retry_after: 3 })
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

  it("is told from other errors", () => {
    expect(isProblem(new TooSmall())).toBe(true)
    for (const other of [new Error("TooSmall"), { _tag: "TooSmall" }, null, undefined, "TooSmall"]) {
      expect(isProblem(other)).toBe(false)
    }
  })

  it("is documented as what it is on the wire", () => {
    expect(JSON.stringify(JSONSchema.make(Schema.encodedSchema(TooSmall)))).not.toContain("_tag")
  })
})
