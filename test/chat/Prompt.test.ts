/** What is asked by hand of every body says what the schema says, which is asked only of those that do not fit. */
import { Either, FastCheck as fc, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { ChatRequest, readChat } from "../../src/chat/Prompt.ts"

const rarely = fc.oneof(fc.constantFrom(null, "", "text", "assistant", 0, true), fc.constant([]), fc.constant({}))

const message = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ role: fc.constantFrom("user", "assistant"), content: rarely }, { requiredKeys: [] })
  },
  { weight: 1, arbitrary: fc.record({ role: rarely, content: rarely, name: rarely }, { requiredKeys: [] }) },
  { weight: 1, arbitrary: rarely }
)

describe("a chat request", () => {
  it("is read exactly when the schema accepts it", () => {
    const accepts = Schema.is(ChatRequest)
    let accepted = 0
    fc.assert(
      fc.property(fc.oneof(fc.array(message, { maxLength: 3 }), rarely), (messages) => {
        const body: unknown = JSON.parse(JSON.stringify({ model: "m", messages }))
        const is = accepts(body)
        if (is) accepted++
        expect(Either.isRight(readChat(Buffer.from(JSON.stringify(body))))).toBe(is)
      }),
      { numRuns: 2_000 }
    )
    expect(accepted).toBeGreaterThan(100)
  })
})
