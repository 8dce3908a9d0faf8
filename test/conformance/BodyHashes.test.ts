/** The receipt of a call states the hashes of exactly the bytes that the client sent and received. */
import { createHash } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { otherBodies } from "../../src/money/receipts/BodyVerifier.ts"
import { verify } from "../../src/money/receipts/Verifier.ts"
import { commandHere } from "../support/CommandLine.ts"
import { start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"

let service: Service
let ada: Person

beforeAll(async () => {
  service = await start()
  ada = await service.signIn("ada@example.com")
})
afterAll(() => service.discard())

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("base64")

interface Exchanged {
  readonly usage_id: string
  readonly request: Buffer
  readonly answer: Buffer
}

const exchange = async (path: string, json: object, encode?: (body: Buffer) => Buffer): Promise<Exchanged> => {
  const request = Buffer.from(JSON.stringify(json))
  const response = await fetch(service.url + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${ada.token}`,
      "content-type": "application/json",
      ...(encode !== undefined && { "content-encoding": "gzip" })
    },
    body: new Uint8Array(encode?.(request) ?? request)
  })
  const answer = Buffer.from(await response.arrayBuffer())
  expect([path, response.status]).toEqual([path, 200])
  // The responses of embeddings and rerank name no usage record.
  const usage_id = response.headers.get("x-usage-id") ?? (await service.usage(ada))[0].id
  return { usage_id, request, answer }
}

const receiptOf = async (usage_id: string) => {
  const path = `/v1/usage/${usage_id}/receipt`
  // The log adds entries once a second.
  await expect.poll(async () => (await service.call(path, { token: ada.token })).status, { timeout: 20_000 }).toBe(200)
  return (await service.call(path, { token: ada.token })).body
}

const logKeys = async (): Promise<ReadonlyArray<string>> => (await service.call("/v1/log/keys")).body.keys

const hashesOf = async (usage_id: string) => {
  const { entry } = await verify(await receiptOf(usage_id), await logKeys())
  return [entry.request_hash, entry.answer_hash]
}

const messages = [{ role: "user", content: "one two three" }]
const model = "sandbox-small"
const long = { model, messages: [{ role: "user", content: "word ".repeat(120_000) }], max_tokens: 16 }

const calls: ReadonlyArray<readonly [name: string, path: string, json: object]> = [
  ["a chat answer", "/v1/chat/completions", { model, messages }],
  ["a chat stream", "/v1/chat/completions", { model, messages, stream: true }],
  [
    "a chat stream with its usage",
    "/v1/chat/completions",
    { model, messages, stream: true, stream_options: { include_usage: true } }
  ],
  [
    "a chat stream of more than one batch of chunks",
    "/v1/chat/completions",
    { model, messages: [{ role: "user", content: "word ".repeat(300) }], stream: true, max_tokens: 300 }
  ],
  ["a text completion", "/v1/completions", { model, prompt: "one two" }],
  ["a message", "/v1/messages", { model, messages, max_tokens: 10 }],
  ["a stream of messages", "/v1/messages", { model, messages, max_tokens: 10, stream: true }],
  ["a response", "/v1/responses", { model, input: "one two three" }],
  ["a stream of responses", "/v1/responses", { model, input: "one two three", stream: true }],
  ["embeddings", "/v1/embeddings", { model: "sandbox-embedding", input: "one two three" }],
  ["a ranking", "/v1/rerank", { model: "sandbox-rerank", query: "two", documents: ["one", "two"] }]
]

describe("the receipt of a call", () => {
  it.each(calls)("states the hashes of %s", async (_, path, json) => {
    const { answer, request, usage_id } = await exchange(path, json)
    expect(await hashesOf(usage_id)).toEqual([sha256(request), sha256(answer)])
  })

  it("states the hash of a prompt that another thread reads, and of its decoded bytes", async () => {
    for (const encode of [undefined, gzipSync]) {
      const { answer, request, usage_id } = await exchange("/v1/chat/completions", long, encode)
      expect(request.length).toBeGreaterThan(512 * 1024)
      expect(await hashesOf(usage_id)).toEqual([sha256(request), sha256(answer)])
    }
  })

  it("includes the event that reports an error", async () => {
    await service.control("/faults", { service: "messages", drop: true, times: 1 })
    const { answer, request, usage_id } = await exchange("/v1/messages", {
      model,
      messages,
      max_tokens: 10,
      stream: true
    })
    expect(answer.toString()).toContain("event: error")
    expect(await hashesOf(usage_id)).toEqual([sha256(request), sha256(answer)])
  })

  it("states no hash for a tool", async () => {
    expect((await service.call("/v1/search?query=tide", { token: ada.token })).status).toBe(200)
    const [newest] = await service.usage(ada)
    expect(newest.endpoint).toBe("search")
    expect(await hashesOf(newest.id)).toEqual(["", ""])
  })
})

describe("tollgate receipt verify", () => {
  it("compares a request and an answer with the receipt", async () => {
    const { answer, request, usage_id } = await exchange("/v1/chat/completions", { model, messages })
    const receipt = await receiptOf(usage_id)
    const keys = await logKeys()
    const { entry } = await verify(receipt, keys)
    expect(await otherBodies(entry, { request, answer })).toEqual([])
    expect(await otherBodies(entry, { request: Buffer.concat([Buffer.from("\uFEFF"), request]) })).toEqual([])
    expect(await otherBodies(entry, { request: answer })).toEqual([
      "the request is not the one that the receipt is for"
    ])
    const folder = mkdtempSync(join(tmpdir(), "bodies-"))
    const file = (name: string, content: string | Buffer) => {
      writeFileSync(join(folder, name), content)
      return join(folder, name)
    }
    const check = (...args: ReadonlyArray<string>) => commandHere(["receipt", "verify", "--key", keys[0]!, ...args])
    try {
      const [one, sent, got] = [file("r.json", JSON.stringify(receipt)), file("q", request), file("a", answer)]
      const good = await check("--request", sent, "--answer", got, one)
      expect([good.code, good.stderr]).toEqual([0, ""])
      expect(good.stdout).toContain("the receipt is for this request and this answer")
      const swapped = await check("--request", got, one)
      expect(swapped.code).toBe(1)
      expect(swapped.stdout).toContain("the request is not the one that the receipt is for")
      const credit = (await service.call(`/v1/tenants/${ada.tenant_id}/billing/ledger/1/receipt`, { token: ada.token }))
        .body
      const other = await check("--request", sent, file("c.json", JSON.stringify(credit)))
      expect([other.code, other.stdout.includes("the receipt contains no hash of the request")]).toEqual([1, true])
      expect((await check("--request", sent, one, one)).stderr).toContain("give one FILE")
      expect((await check("--request", join(folder, "absent"), one)).stderr).toContain("could not be read")
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
