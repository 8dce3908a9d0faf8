/** Long prompts: another thread reads and translates them as this one would, and what happens if that thread ends. */
import { Cause, Effect, Either, Exit } from "effect"
import { createHash } from "node:crypto"
import { Worker } from "node:worker_threads"
import { afterEach, describe, expect, it, vi } from "vitest"
import type { ReadDecisionTask } from "../../../src/calls/decisions/BodyTask.ts"
import { onThread, readOnThread } from "../../../src/calls/threads/BodyThreads.ts"
import type { CountTask, WriteTask } from "../../../src/calls/engine/BodyTask.ts"
import { conversationOf } from "../../../src/calls/engine/Conversation.ts"
import * as LongPrompts from "../../../src/calls/engine/LongPrompts.ts"
import * as Translated from "../../../src/calls/engine/Translated.ts"
import { chat, text } from "../../../src/calls/dialects/chat/Completions.ts"
import { readCount } from "../../../src/calls/dialects/messages/Prompt.ts"
import { messages } from "../../../src/calls/dialects/messages/Protocol.ts"
import { responses } from "../../../src/calls/dialects/responses/Protocol.ts"
import { extrasOf } from "../../../src/calls/prompts/Extras.ts"
import { mayBeAnHour, unpricedHour } from "../../../src/calls/prompts/CacheHour.ts"
import type { Model } from "../../../src/calls/prompts/Model.ts"
import { promptJson } from "../../../src/calls/prompts/Outgoing.ts"
import type { Passage, Protocol, UpstreamBody } from "../../../src/calls/prompts/Protocol.ts"
import { parse } from "../../../src/http/transport/Json.ts"
import { hashOf } from "../../../src/calls/metered/TextHash.ts"
import type { Caller } from "../../../src/kernel/Caller.ts"
import { originalName } from "../../../src/protocols/responses/Namespaces.ts"
import type { Upstream } from "../../../src/upstream/models/Upstreams.ts"
import { smallModel } from "../../support/SmallModel.ts"

const words = 'Each side "names"\n an account \u00e9\u{1f600}. '.repeat(9_000)
const image = Buffer.alloc(300_000, "noise").toString("base64")
const many = Array.from({ length: 3_000 }, (_, i) => ({ role: "user", content: `${i}: ${"an account ".repeat(10)}` }))
const tools = (tool: (name: string) => object) =>
  Array.from({ length: 2_000 }, (_, i) => tool(`tool${i}_${"x".repeat(40)}`))

/** Valid prompts of each protocol. Each has several long members or a long member of another kind. */
const prompts: ReadonlyArray<readonly [Protocol, ReadonlyArray<Readonly<Record<string, unknown>>>]> = [
  [
    chat,
    [
      { messages: [{ role: "user", content: words }], max_tokens: 5, user: "u", metadata: { a: "b" } },
      { messages: many, stream: true, stream_options: { include_usage: true }, n: 2, odd: { field: 1 } },
      {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "Hi" },
              { type: "image_url", image_url: { url: `data:image/png;base64,${image}` } },
              { type: "file", file: { file_data: `data:application/pdf;base64,${image}` } }
            ]
          }
        ]
      },
      {
        messages: [{ role: "user", content: words }],
        tools: tools((name) => ({ type: "function", function: { name, parameters: { type: "object" } } })),
        odd: words
      }
    ]
  ],
  [
    text,
    [{ prompt: words, max_tokens: 3 }, { prompt: Array.from({ length: 20_000 }, () => "some words to continue") }]
  ],
  [
    messages,
    [
      { messages: [{ role: "user", content: words }], max_tokens: 5, system: words, metadata: { user_id: "u" } },
      { messages: many, max_tokens: 5, tools: tools((name) => ({ name, input_schema: { type: "object" } })) },
      {
        max_tokens: 9,
        messages: [
          {
            role: "user",
            content: [
              { type: "image", source: { type: "base64", media_type: "image/png", data: image } },
              { type: "text", text: "Hi", cache_control: { type: "ephemeral", ttl: "1h" } }
            ]
          },
          { role: "assistant", content: [{ type: "thinking", thinking: "so", signature: "google:abc" }] },
          { role: "user", content: "and?" }
        ]
      }
    ]
  ],
  [
    responses,
    [
      { input: words, instructions: words, max_output_tokens: 7, store: true },
      { input: [...many, { type: "item_reference", id: "item_1" }] },
      {
        input: [{ role: "user", content: [{ type: "input_image", image_url: `data:image/png;base64,${image}` }] }],
        tools: [{ type: "function", name: "f", parameters: {} }]
      }
    ]
  ]
]

const model: Model = smallModel
const route = model.routes[0]!
const passage = (keeps_responses: boolean): Passage => ({ route, upstream: { keeps_responses } as Upstream })
const caller = { account_id: "acc_1", tenant_id: "ten_1" } as unknown as Caller

const joined = (body: UpstreamBody): Buffer =>
  typeof body === "string"
    ? Buffer.from(body)
    : Buffer.isBuffer(body)
      ? body
      : Buffer.concat(body as ReadonlyArray<Buffer>)

const readLong = (protocol: Protocol, json: Buffer, account = "acc_1") =>
  Effect.runPromise(LongPrompts.read(protocol.name, Buffer.from(json), account))

/** Reads a prompt on both threads. */
const both = async (protocol: Protocol, json: Buffer) => {
  const value = Either.getOrThrow(parse(json))
  return { here: Either.getOrThrow(protocol.read(value, json)), there: (await readLong(protocol, json)).valid }
}

describe("a long prompt", () => {
  for (const [protocol, bodies] of prompts) {
    for (const [i, body] of bodies.entries()) {
      const json = Buffer.from(JSON.stringify({ model: "small", ...body }))

      it(`of ${protocol.name} (${i}) has the same figures on another thread, and the same bytes go upstream`, async () => {
        const { here, there } = await both(protocol, json)
        const figures = (prompt: typeof here) => ({ ...prompt, body: {}, json: undefined, long: undefined })
        expect(figures(there)).toEqual(figures(here))
        expect(Object.keys(there.body)).toEqual(Object.keys(here.body))
        // Its long members are not here.
        expect(JSON.stringify(there.body).length).toBeLessThan(70_000)
        for (const keeps of [true, false]) {
          const refusal = protocol.refusal?.(here, passage(keeps))
          expect(protocol.refusal?.(there, passage(keeps))).toEqual(refusal)
          for (const streams of [true, false]) {
            const sent = joined(protocol.bodyFor(here, passage(keeps), streams, 4))
            const sentFromThere = joined(protocol.bodyFor(there, passage(keeps), streams, 4))
            expect(JSON.parse(sentFromThere.toString())).toEqual(JSON.parse(sent.toString()))
          }
        }
        expect(conversationOf(caller, there)).toBe(conversationOf(caller, here))
        expect(Translated.isForeign(protocol.name, there)).toBe(Translated.isForeign(protocol.name, here))
        const priced = { ...model, detail_prices: { cache_write_tokens: model.prompt_price } } as Model
        for (const one of [model, priced]) {
          expect(mayBeAnHour(one, there)).toBe(mayBeAnHour(one, here))
          expect(unpricedHour(one, there)).toEqual(unpricedHour(one, here))
          expect(extrasOf(one, protocol.billed, there.body, undefined, there.long!.asked)).toEqual(
            extrasOf(one, protocol.billed, here.body, undefined)
          )
        }
      })

      if (protocol === text) continue
      it(`of ${protocol.name} (${i}) is translated on another thread as on this one`, async () => {
        const { here, there } = await both(protocol, json)
        for (const vendor of ["chat", "messages", "responses", "google", "bedrock"] as const) {
          const pair = Translated.pairOf(protocol.name, vendor)!
          const way = { ...route }
          const expected = Translated.bodyFor(pair, here, way, false, 4)
          await Effect.runPromise(LongPrompts.translate(there.long!, { pair, route: way, hashes: true }, false, 4))
          const found = Translated.bodyFor(pair, there, way, false, 4)
          const hash = Either.isLeft(found) ? undefined : createHash("sha256").update(joined(found.right)).digest("hex")
          expect(there.long!.translations.get(way)!.sha256).toBe(hash)
          expect(Either.mapBoth(found, { onLeft: String, onRight: (body) => joined(body).toString() })).toEqual(
            Either.mapBoth(expected, { onLeft: String, onRight: String })
          )
          // The translation for another limit replaces it.
          await Effect.runPromise(LongPrompts.translate(there.long!, { pair, route: way, hashes: true }, false, 3))
          expect(() => Translated.bodyFor(pair, there, way, false, 4)).toThrow("not translated")
        }
        // The received bytes are still here.
        expect(there.long!.json.equals(json)).toBe(true)
      })
    }
  }

  it("is translated after another prompt was read", async () => {
    const json = (content: string) =>
      Buffer.from(JSON.stringify({ model: "small", messages: [{ role: "user", content: content + words }] }))
    const one = await readLong(chat, json("one"))
    const other = await readLong(chat, json("other"))
    const pair = Translated.pairOf("chat", "messages")!
    const all = await Effect.runPromise(
      Effect.forEach([one, other, one], ({ valid }, i) =>
        LongPrompts.translate(valid.long!, { pair, route, hashes: false }, false, i)
      )
    )
    const texts = all.map((body) => joined(Either.getOrThrow(body)).toString())
    expect(
      texts.map((text) => /"text":"(o[a-z]+)Each|"content":"(o[a-z]+)Each/.exec(text)?.slice(1).find(Boolean))
    ).toEqual(["one", "other", "one"])
  })

  it("that is not valid is refused as a short one is", async () => {
    const wrong: ReadonlyArray<readonly [Protocol, string]> = [
      [chat, `{"model":"small","messages":[{"role":"user","content":"${"a".repeat(300_000)}"}]`],
      [chat, `{"model":"small","messages":[${"[],".repeat(260_000)}1]}`],
      [chat, `{"model":"small","odd":${"[".repeat(1_100)}${"]".repeat(1_100)},"messages":"${"a".repeat(300_000)}"}`],
      [chat, JSON.stringify({ model: "small", messages: [...many, { role: "user", content: 7 }] })],
      [chat, JSON.stringify({ model: "small", messages: many, temperature: 3 })],
      [chat, JSON.stringify({ messages: many })],
      [text, JSON.stringify({ model: "small", prompt: [words, 7] })],
      [
        messages,
        JSON.stringify({ model: "small", messages: [...many, { role: "user", content: [{}] }], max_tokens: 1 })
      ],
      [messages, JSON.stringify({ model: "small", messages: many })],
      [responses, JSON.stringify({ model: "small", input: [words, null] })],
      [responses, JSON.stringify([words])],
      [responses, JSON.stringify(words)]
    ]
    for (const [protocol, json] of wrong) {
      const bytes = Buffer.from(json)
      const here = Either.flatMap(parse(bytes), (value) => protocol.read(value, bytes))
      const there = await Effect.runPromise(Effect.either(LongPrompts.read(protocol.name, Buffer.from(bytes), "acc_1")))
      expect(Either.isLeft(here)).toBe(true)
      expect(there).toEqual(here)
    }
  })

  it("whose tokens are only counted has the same figures and mistakes on another thread", async () => {
    const counted = async (body: object) => {
      const json = Buffer.from(JSON.stringify(body))
      const there = LongPrompts.read("count_tokens", Buffer.from(json), "acc_1")
      return { here: readCount(body, json), there: await Effect.runPromise(Effect.either(there)) }
    }
    const [, bodies] = prompts.find(([protocol]) => protocol === messages)!
    for (const { max_tokens: _, ...body } of bodies) {
      const { here, there } = await counted({ model: "small", ...body })
      const [one, other] = [Either.getOrThrow(here), Either.getOrThrow(there).valid]
      expect({ ...other, body: {}, json: undefined, long: undefined }).toEqual({ ...one, body: {}, json: undefined })
      const sent = joined(promptJson(other, { ...other.body, model: "m" }, "messages"))
      expect(JSON.parse(sent.toString())).toEqual({ ...body, model: "m" })
    }
    for (const body of [{ messages: many }, { model: "small", messages: [...many, { role: 7 }] }]) {
      const { here, there } = await counted(body)
      expect(Either.isLeft(here)).toBe(true)
      expect(there).toEqual(here)
    }
  })

  it("keeps what a translated answer needs of its long tools: their namespaces", async () => {
    const functions = tools((name) => ({ type: "function", name }))
    const withTool = (tool: object) => {
      const spaces = [{ type: "namespace", name: "files", tools: [{ ...tool, name: "read", description: words }] }]
      return both(
        responses,
        Buffer.from(JSON.stringify({ model: "small", input: "Hi", tools: [...spaces, ...functions] }))
      )
    }
    const { here, there } = await withTool({ type: "function" })
    for (const name of ["files__read", "other"])
      expect(originalName(there.body, name)).toEqual(originalName(here.body, name))
    expect(there.body.tools).toEqual([{ type: "namespace", name: "files", tools: [{ name: "read" }] }])
    // A tool without a type is refused, as in a short prompt.
    const odd = await withTool({})
    const refusal = extrasOf(model, responses.billed, odd.here.body, undefined)
    expect(Either.isLeft(refusal)).toBe(true)
    expect(extrasOf(model, responses.billed, odd.there.body, undefined, odd.there.long!.asked)).toEqual(refusal)
  })

  it("with a long name of its user is labelled with its hash, and sends the name", async () => {
    const { there } = await both(chat, Buffer.from(JSON.stringify({ model: "small", messages: many, user: words })))
    expect(there.body.user).toBe(hashOf(words))
    expect(JSON.parse(joined(chat.bodyFor(there, passage(false), false, 4)).toString()).user).toBe(words)
  })

  it("asks for billed fields as a short one does, even where they are long", async () => {
    const others = tools((name) => ({ type: name }))
    const body = { model: "small", messages: many, tools: [...others, { type: "web_search" }], models: many }
    const { here, there } = await both(chat, Buffer.from(JSON.stringify(body)))
    expect(there.body.tools).toBe(true)
    const refusal = extrasOf(model, chat.billed, here.body, undefined)
    expect(Either.isLeft(refusal)).toBe(true)
    expect(extrasOf(model, chat.billed, there.body, undefined, there.long!.asked)).toEqual(refusal)
  })

  it("goes upstream as one value if a name occurs twice in it", async () => {
    const twice = `{"model":"small","messages":[{"role":"user","content":"a","content":"${"b".repeat(300_000)}"}]}`
    const { here, there } = await both(chat, Buffer.from(twice))
    const sent = joined(chat.bodyFor(there, passage(false), false, 4)).toString()
    expect(JSON.parse(sent)).toEqual(JSON.parse(joined(chat.bodyFor(here, passage(false), false, 4)).toString()))
    expect(sent.match(/"content"/g)).toHaveLength(1)
  })
})

describe("the thread for long bodies", () => {
  afterEach(() => vi.restoreAllMocks())

  const json = (content = words) =>
    Buffer.from(JSON.stringify({ model: "small", messages: [{ role: "user", content }] }))
  const exitOf = (account: string, body = json()) => Effect.runPromiseExit(LongPrompts.read("chat", body, account))

  /** Collects the threads that get tasks, and the tasks' prompts. */
  const watched = (kills = 0) => {
    const threads: Array<Worker> = []
    const tasks: Array<{ readonly prompt?: number }> = []
    const { postMessage } = Worker.prototype
    vi.spyOn(Worker.prototype, "postMessage").mockImplementation(function (this: Worker, task, moved) {
      threads.push(this)
      tasks.push(task as { readonly prompt?: number })
      postMessage.call(this, task, moved as ReadonlyArray<ArrayBuffer>)
      if (threads.length <= kills) void this.terminate()
    })
    return { threads, tasks }
  }

  it("that ends during a task fails it with 503, and another thread does the next", async () => {
    const { threads } = watched(1)
    // Long enough that the thread cannot end its task before it is ended.
    const reading = exitOf("acc_1", json("word ".repeat(5_000_000)))
    const following = exitOf("acc_1")
    const exit = await reading
    const [failure] = Exit.isFailure(exit) ? Cause.failures(exit.cause) : []
    expect(failure ?? exit).toMatchObject({ _tag: "Busy", retry_after: 5 })
    expect(Exit.isSuccess(await following)).toBe(true)
    expect(threads[1]).not.toBe(threads[0])
  })

  it("does not parse an answer that would take too much memory", async () => {
    const body = Uint8Array.from(Buffer.from(`{"choices":[${"[],".repeat(10_000_000)}1]}`))
    const task: CountTask = { how: "count", client: "chat", body }
    const done = await Effect.runPromise(onThread(task, "acc_1"))
    expect(done).toMatchObject({ fault: "the response has more than 4000000 parts" })
    expect(Exit.isSuccess(await exitOf("acc_1"))).toBe(true)
  })

  it("serves accounts in turn, and forgets a task that nobody waits for", async () => {
    const { tasks } = watched()
    const order: Array<string> = []
    const ask = (account: string, name: string) => exitOf(account).then(() => order.push(name))
    const first = [ask("acc_1", "1a"), ask("acc_1", "1b"), ask("acc_1", "1c")]
    const left = Effect.runFork(LongPrompts.read("chat", json(), "acc_3"))
    const second = [ask("acc_2", "2a"), ask("acc_2", "2b")]
    await vi.waitFor(() => expect(tasks).not.toHaveLength(0), 20_000)
    left.unsafeInterruptAsFork(left.id())
    await Promise.all([...first, ...second])
    expect(order).toEqual(["1a", "1b", "2a", "1c", "2b"])
    expect(tasks).toHaveLength(5)
  })

  it("reads a response before the requests that came earlier", async () => {
    watched()
    const order: Array<string> = []
    const asked = ["1a", "1b", "1c"].map((name) => exitOf("acc_1").then(() => order.push(name)))
    const body = Uint8Array.from(Buffer.from(`{"choices":[]}`))
    const task: CountTask = { how: "count", client: "chat", body }
    const read = Effect.runPromise(readOnThread(task, "acc_1")).then(() => order.push("response"))
    await Promise.all([...asked, read])
    expect(order).toEqual(["1a", "response", "1b", "1c"])
  })

  it("goes on after a response that is nested too deeply for one of the two threads", async () => {
    for (const depth of [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000]) {
      const body = Uint8Array.from(Buffer.from(`{"usage":{"x":${"[".repeat(depth)}${"]".repeat(depth)}}}`))
      const task: ReadDecisionTask = { how: "read_decision", body }
      await Effect.runPromise(readOnThread(task, "acc_1"))
      expect(Exit.isSuccess(await exitOf("acc_1"))).toBe(true)
    }
  })

  it("reports an error of its code as one, and so a body that cannot be moved", async () => {
    const route = { model: "m", limit_field: "max_tokens" } as const
    const about = { how: "write", prompt: -1, client: "chat", vendor: "chat", route, limit: 1, stream: false } as const
    const task: WriteTask = { ...about, hashes: false, body: Uint8Array.from(Buffer.from("{")) }
    const ask = Effect.runPromise(onThread(task, "acc_1"))
    const again = Effect.runPromise(onThread(task, "acc_1"))
    expect(await ask).toHaveProperty("failed")
    expect(await again).toHaveProperty("failed")
    expect(Exit.isSuccess(await exitOf("acc_1"))).toBe(true)
  })
})
