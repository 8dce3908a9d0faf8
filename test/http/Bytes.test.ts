/** Room for answers: who has it at once, who waits for it, and that all of it is given back. */
import { describe, expect, it } from "vitest"
import { make } from "../../src/http/transport/Bytes.ts"

const mebi = 1024 * 1024
const aTurn = () => new Promise((resolve) => setImmediate(resolve))
const budget = () => make({ bytes_total: 128 * mebi, window_ms: 1_000 })

describe("room for an answer", () => {
  it("is waited for in the order of the claims, and given as soon as there is enough for all of one", async () => {
    const { share } = budget()
    const [one, other, third] = ["one", "other", "third"].map(share)
    const told: Array<string> = []
    expect(one!.claim(50 * mebi, () => {})).toBeUndefined()
    expect(other!.claim(64 * mebi, (granted) => told.push(`other ${granted}`))).toBeTypeOf("function")
    expect(third!.claim(64 * mebi, (granted) => told.push(`third ${granted}`))).toBeTypeOf("function")
    one!.become(49 * mebi)
    await aTurn()
    expect(told).toEqual([])
    one!.release()
    await aTurn()
    expect(told).toEqual(["other true"])
    expect([other!.held, third!.held]).toEqual([64 * mebi, 0])
    other!.become(40 * mebi)
    await aTurn()
    expect(told).toEqual(["other true", "third true"])
    third!.release()
    other!.release()
    expect(share("one").claim(112 * mebi, () => {})).toBeUndefined()
  })

  it("is not begun by another answer of an account of which one waits", () => {
    const { share } = budget()
    const first = share("one")
    expect(first.claim(60 * mebi, () => {})).toBeUndefined()
    const end = share("one").claim(60 * mebi, () => {})
    expect(end).toBeTypeOf("function")
    expect(share("one").reserve(1)).toBe(false)
    expect(share("other").reserve(1)).toBe(true)
    end!()
    expect(share("one").reserve(1)).toBe(true)
  })

  it("is neither taken nor given by one that is over", () => {
    const { share } = budget()
    const late = share("one")
    late.release()
    expect(late.take(1)).toBe(false)
    late.become(112 * mebi)
    expect(late.claim(1, () => {})).toBeTypeOf("function")
    expect(late.held).toBe(0)
    expect(share("other").claim(112 * mebi, () => {})).toBeUndefined()
  })
})
