/** Long answers of embeddings: they come out of the budget of what the process holds at once. */
import { writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { freePort, freshFolder, start } from "../../support/Service.ts"
import type { Person, Service } from "../../support/Service.ts"

const inputs = 2_048

let world: Service
let service: Service
/** What the vendor was asked and has not answered. */
const waiting: Array<{ readonly response: ServerResponse; readonly input: ReadonlyArray<string> }> = []
const vendor = createServer((request, response) => {
  let body = ""
  request.setEncoding("utf8").on("data", (text: string) => (body += text))
  request.on("end", () =>
    waiting.push({ response, ...(JSON.parse(body) as { readonly input: ReadonlyArray<string> }) })
  )
})

beforeAll(async () => {
  world = await start()
  await new Promise<void>((resolve) => vendor.listen(0, "127.0.0.1", resolve))
  const { issuer } = await world.sandbox()
  const file = join(freshFolder(), "tollgate.json")
  const configuration = {
    clients: [{ client_id: "console", name: "Console" }],
    identity: { google: { issuer, audiences: ["sandbox-google"] } },
    registration: { open: true },
    prices: { default_new_credits: 6, default_registration_credits: 0 },
    // The least that it may be: 112 MiB for what is long, half of it for one account.
    bodies: { bytes_total: 128 * 1024 * 1024 },
    upstreams: { main: { base_url: `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`, api_key: "k" } },
    embeddings: [
      {
        id: "large",
        max_input_tokens: 10,
        dimensions: 1_024,
        price: { input_usd_per_million: "1" },
        upstreams: [{ upstream: "main" }]
      }
    ]
  }
  writeFileSync(file, JSON.stringify(configuration))
  service = await start({ port: await freePort(), args: ["--config", file] })
})
afterAll(async () => {
  await Promise.all([service?.discard(), world?.discard()])
  vendor.closeAllConnections()
  vendor.close()
})

const person = async (name: string): Promise<{ readonly who: Person; readonly key: string }> => {
  const { issuer } = await world.sandbox()
  const who = await service.signIn(`${name}@example.com`, {}, { client_id: "console", issuer })
  return { who, key: await service.key(who) }
}

/** Waits until the vendor has been asked so many times that it has not answered. */
const asked = async (count: number): Promise<void> => {
  for (let i = 0; i < 400 && waiting.length < count; i++) await new Promise((resolve) => setTimeout(resolve, 25))
  expect(waiting).toHaveLength(count)
}

const answerAll = (): void => {
  for (const { input, response } of waiting.splice(0)) {
    const data = input.map((_, index) => ({ object: "embedding", index, embedding: [1] }))
    const usage = { prompt_tokens: input.length, total_tokens: input.length }
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ object: "list", data, usage }))
  }
}

it("there is room for some of them at once, of an account for fewer; others are refused before anybody is asked", async () => {
  const [one, other, third] = await Promise.all(["one", "other", "third"].map(person))
  // Of 2,048 embeddings as JSON 48 MiB are expected.
  const embed = (key: string, more: object = {}, headers: Record<string, string> = {}) =>
    service.call("/v1/embeddings", {
      token: key,
      headers,
      json: { model: "large", input: Array.from({ length: inputs }, () => "a"), ...more }
    })
  const busy = { status: 503, body: { error: { code: "busy" } } }

  const first = embed(one!.key)
  await asked(1)
  const again = { "idempotency-key": "one-that-comes-again" }
  const refused = await embed(one!.key, {}, again)
  expect(refused).toMatchObject(busy)
  expect(refused.headers.get("retry-after")).toBe("5")

  const second = embed(other!.key)
  await asked(2)
  expect(await embed(third!.key)).toMatchObject(busy)
  const shorter = [embed(third!.key, { input: ["a"] }), embed(third!.key, { encoding_format: "base64" })]
  await asked(4)

  answerAll()
  expect((await Promise.all([first, second, ...shorter])).map(({ status }) => status)).toEqual([200, 200, 200, 200])
  const retried = embed(one!.key, {}, again)
  await asked(1)
  answerAll()
  expect((await retried).status).toBe(200)
  expect(await Promise.all([one!, other!, third!].map(({ who }) => service.usage(who)))).toMatchObject([
    [{ success: true }, { success: true }],
    [{ success: true }],
    [{ success: true }, { success: true }]
  ])
})

it("room is given back where a client leaves and where an upstream fails", async () => {
  const { key } = await person("leaving")
  for (let i = 0; i < 4; i++) {
    const gone = new AbortController()
    const left = fetch(`${service.url}/v1/embeddings`, {
      method: "POST",
      signal: gone.signal,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "large", input: Array.from({ length: inputs }, () => "a") })
    })
    await asked(1)
    if (i % 2 === 0) {
      gone.abort()
      await expect(left).rejects.toThrow()
      answerAll()
    } else {
      waiting.splice(0)[0]!.response.writeHead(500).end("{}")
      expect((await left).status).toBe(500)
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
})
