/**
 * A client that leaves while its answer is made, on each path whose answer comes whole, and speech: it is charged as its vendor measures it,
 * however late, and for nothing where the vendor fails. Nothing stays set aside.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"
import * as Tables from "../support/tables.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

let people = 0
const person = () => service.signIn(`leaving${++people}@example.com`)

const model = "sandbox-small"
const messages = [{ role: "user", content: "one two three" }]

const json = (body: object): RequestInit => ({
  body: JSON.stringify(body),
  headers: { "content-type": "application/json" }
})

const wave = () => new File([new Uint8Array(16_000)], "talk.wav", { type: "audio/wav" })
const png = () => new File([Buffer.from("89504e470d0a1a0a", "hex")], "a.png", { type: "image/png" })

/** A search has no body. */
const nothing = (): RequestInit => ({ method: "GET" })

const form = (fields: Readonly<Record<string, string | File>>): RequestInit => {
  const body = new FormData()
  for (const [name, value] of Object.entries(fields)) body.set(name, value)
  return { body }
}

/** Each path, the vendor of the sandbox behind it, and what its call comes to. */
const paths: ReadonlyArray<
  readonly [path: string, vendor: string, request: () => RequestInit, record: Readonly<Record<string, unknown>>]
> = [
  [
    "/v1/chat/completions",
    "chat",
    () => json({ model, messages }),
    { endpoint: "chat/completions", prompt_tokens: 3, completion_tokens: 3, cost: 0.00000225 }
  ],
  ["/v1/search?query=tide", "search", nothing, { endpoint: "search", units: 1, cost: 0.005 }],
  [
    "/v1/speech",
    "speech",
    () => json({ input: "x".repeat(1_000), model: "tts-1", voice: "nova" }),
    { endpoint: "speech", units: 1_000, cost: 0.015 }
  ],
  [
    "/v1/messages",
    "messages",
    () => json({ model, max_tokens: 10, messages }),
    { endpoint: "messages", prompt_tokens: 3, completion_tokens: 3, cost: 0.00000225 }
  ],
  [
    "/v1/responses",
    "responses",
    () => json({ model, input: "one two three" }),
    { endpoint: "responses", prompt_tokens: 3, completion_tokens: 3, cost: 0.00000225 }
  ],
  [
    "/v1/embeddings",
    "embeddings",
    () => json({ model: "sandbox-embedding", input: "one two three" }),
    { endpoint: "embeddings", cost: 6e-8 }
  ],
  [
    "/v1/rerank",
    "rerank",
    () => json({ model: "sandbox-rerank", query: "tide", documents: ["high tide", "low"] }),
    { endpoint: "rerank", units: 1, cost: 0.002 }
  ],
  [
    "/v1/audio/translations",
    "transcription",
    () => form({ file: wave(), model: "whisper-1" }),
    { endpoint: "audio/translations", units: 1, cost: 0.0001 }
  ]
]

/** Sends a request, and leaves when its vendor has been asked. */
const leave = async (
  who: Person,
  path: string,
  vendor: string,
  request: RequestInit,
  at: Service = service
): Promise<void> => {
  await at.control("/calls", undefined, "DELETE")
  const leaving = new AbortController()
  const answer = fetch(at.url + path, {
    method: "POST",
    ...request,
    headers: { ...(request.headers as Record<string, string>), authorization: `Bearer ${who.token}` },
    signal: leaving.signal
  })
  await expect.poll(async () => (await at.control(`/calls?service=${vendor}`)).length, { timeout: 60_000 }).toBe(1)
  leaving.abort()
  await expect(answer).rejects.toThrow()
}

const nothingIsOpen = async () =>
  expect(await Tables.ask(service.folder, "SELECT id FROM tollgate_ledger_reservations")).toEqual([])

describe.each(paths)("a client that leaves %s", (path, vendor, request, record) => {
  it("pays what the vendor measured", async () => {
    const who = await person()
    await service.control("/faults", { service: vendor, delay_ms: 600_000, times: 1 })
    await leave(who, path, vendor, request())
    await service.control("/faults", undefined, "DELETE")
    await expect.poll(() => service.usage(who), { timeout: 60_000 }).toMatchObject([record])
    await nothingIsOpen()
  })

  it("pays nothing where the vendor fails", async () => {
    const who = await person()
    const before = await service.balance(who)
    await service.control("/faults", { service: vendor, delay_ms: 600_000, drop: true, times: 1 })
    await leave(who, path, vendor, request())
    await service.control("/faults", undefined, "DELETE")
    await expect
      .poll(() => service.usage(who), { timeout: 60_000 })
      .toMatchObject([{ endpoint: record["endpoint"], cost: 0, success: false }])
    expect(await service.balance(who)).toBe(before)
    await nothingIsOpen()
  })
})

it("a client that leaves /v1/images/edits pays for the images that were made", async () => {
  const who = await person()
  const edit = form({ image: png(), prompt: "the same at night" })
  await leave(who, "/v1/images/edits", "images", edit)
  await expect
    .poll(() => service.usage(who), { timeout: 30_000 })
    .toMatchObject([{ endpoint: "images/edits", cost: 0.04, success: true }])
  await nothingIsOpen()
})

it("a client that leaves any of them pays what staying costs, though its vendor answers after more than ten seconds", async () => {
  const later: Array<readonly [Person, Readonly<Record<string, unknown>>]> = []
  const images = () => json({ prompt: "a hill", sync_mode: true })
  for (const [path, vendor, request, record] of [
    ...paths,
    ["/v1/images/generate", "images", images, { endpoint: "images/generate", cost: 0.04 }] as const
  ]) {
    const who = await person()
    await service.control("/faults", { service: vendor, delay_ms: 12_000, times: 1 })
    await leave(who, path, vendor, request())
    later.push([who, record])
  }
  for (const [who, record] of later)
    await expect.poll(() => service.usage(who), { timeout: 40_000, interval: 500 }).toMatchObject([record])
  await nothingIsOpen()
}, 60_000)

it("a service that is stopped waits for ten seconds for a call whose client has left, and ends the call in the books", async () => {
  const stopped = await start()
  const who = await stopped.signIn("stopped@example.com")
  await stopped.control("/faults", { service: "chat", delay_ms: 300_000, times: 1 })
  await leave(who, "/v1/chat/completions", "chat", json({ model, messages }), stopped)
  expect(await stopped.end("SIGTERM")).toBe(0)
  expect(await Tables.ask(stopped.folder, "SELECT id FROM tollgate_ledger_reservations")).toEqual([])
  expect(await Tables.ask(stopped.folder, "SELECT error_type FROM tollgate_usage_records")).toMatchObject([
    { error_type: "client_disconnected" }
  ])
  await stopped.discard()
}, 60_000)
