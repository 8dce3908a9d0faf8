/** A provider's numbers are not trusted: whatever it says that was used, nobody is credited, and a hold is the most that is taken. */
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

const figure = fc.oneof(
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(-1, 0, 1, 0.5, 1e9, 1e12, 1e300, Number.MAX_SAFE_INTEGER),
  fc.constantFrom<unknown>(null, undefined, "7", "many", true, [], {}, [3], { tokens: 3 })
)

/** Usage objects as no honest provider would send them, and some as it would. */
const usages = fc.oneof(
  fc.record(
    {
      prompt_tokens: figure,
      completion_tokens: figure,
      total_tokens: figure,
      input_tokens: figure,
      output_tokens: figure,
      seconds: figure,
      cost: figure
    },
    { requiredKeys: [] }
  ),
  fc.constantFrom<unknown>(null, undefined, "usage", 7, [], [{ prompt_tokens: 1 }])
)

const samples = (count: number) => fc.sample(usages, { numRuns: count, seed: Number(process.env.FC_SEED ?? 7) })

/** What the books say of the last call. */
const told = async (who: Person) => {
  const [record] = await service.usage(who)
  const { body } = await service.call(`/v1/usage/${record.id}/explain`, { token: who.token })
  return { record, explained: body, balance: await service.balance(who) }
}

const within = async (who: Person, before: number) => {
  const { balance, explained, record } = await told(who)
  expect(record.cost).toBeGreaterThanOrEqual(0)
  expect(record.cost).toBeLessThanOrEqual(explained.reserved_usd)
  expect(explained.computed_usd).toBeCloseTo(record.cost + (record.uncollected ?? 0), 9)
  expect(balance).toBeGreaterThanOrEqual(0)
  expect(balance).toBeCloseTo(before - record.cost, 9)
  return balance
}

describe("whatever a provider says that was used", () => {
  it("a decision never costs more than its hold, nor less than nothing", async () => {
    const who = await service.signIn("decisions@example.com")
    let balance = 6
    for (const usage of samples(60)) {
      await service.control("/faults", { service: "decisions", status: 200, body: { answers: {}, usage }, times: 1 })
      const answer = await service.call("/v1/decisions", {
        token: who.token,
        json: { state: "x", questions: { a: { type: "noul", instructions: "x" } } }
      })
      expect(answer.status).toBe(200)
      balance = await within(who, balance)
    }
  })

  it("nor does a transcription", async () => {
    const who = await service.signIn("transcriptions@example.com")
    let balance = 6
    for (const usage of samples(40)) {
      const duration = (usage as { seconds?: unknown } | null | undefined)?.seconds
      await service.control("/faults", {
        service: "transcription",
        status: 200,
        body: { text: "x", usage, ...(duration !== undefined && { duration }) },
        times: 1
      })
      const form = new FormData()
      form.set("file", new File([new Uint8Array(40_000)], "talk.mp3"))
      const answer = await fetch(`${service.url}/v1/transcriptions`, {
        method: "POST",
        headers: { authorization: `Bearer ${who.token}` },
        body: form
      })
      expect(answer.status).toBe(200)
      balance = await within(who, balance)
    }
  })

  it("a chat call never credits, and never takes a balance below zero; what it cannot pay is on its record", async () => {
    const who = await service.signIn("chats@example.com")
    const models = (await service.call("/v1/models", { token: who.token })).body.data
    const { context_length } = models.find(({ id }: { readonly id: string }) => id === "sandbox-large")
    let balance = 6
    for (const usage of samples(60)) {
      await service.control("/credit", { tenant_id: who.tenant_id, amount: 1, source: "admin" })
      balance += 1
      await service.control("/faults", {
        service: "chat",
        status: 200,
        body: {
          id: "x",
          object: "chat.completion",
          choices: [{ index: 0, message: { role: "assistant", content: "x" } }],
          usage
        },
        times: 1
      })
      const answer = await service.call("/v1/chat/completions", {
        token: who.token,
        json: { model: "sandbox-large", max_tokens: 10, messages: [{ role: "user", content: "hello" }] }
      })
      expect(answer.status).toBe(200)
      const { balance: after, explained, record } = await told(who)
      expect(record.cost).toBeGreaterThanOrEqual(0)
      expect(after).toBeGreaterThanOrEqual(0)
      expect(after).toBeCloseTo(balance - record.cost, 6)
      // A count above the model's context is charged at the context, and all of the charge is accounted for.
      expect(record.prompt_tokens).toBeLessThanOrEqual(context_length)
      expect(explained.computed_usd).toBeCloseTo(record.cost + (record.uncollected ?? 0), 6)
      balance = after
    }
  })
})
