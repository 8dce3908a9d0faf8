/** Long whole answers of a service with little room: they wait for each other, and the room is given back however a call ends. */
import { writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { freePort, freshFolder, start } from "../../support/Service.ts"
import type { Person, Service } from "../../support/Service.ts"

let world: Service
let service: Service
/** The requests that the vendor has not answered. */
const waiting: Array<{ readonly response: ServerResponse; readonly body: { readonly input?: ReadonlyArray<string> } }> =
  []
const vendor = createServer((request, response) => {
  let text = ""
  request.setEncoding("utf8").on("data", (piece: string) => (text += piece))
  request.on("end", () => waiting.push({ response, body: JSON.parse(text) as object }))
})

beforeAll(async () => {
  world = await start()
  await new Promise<void>((resolve) => vendor.listen(0, "127.0.0.1", resolve))
  const { issuer } = await world.sandbox()
  const file = join(freshFolder(), "tollgate.json")
  const price = { prompt_usd_per_million: "1", completion_usd_per_million: "1" }
  const upstreams = [{ upstream: "main" }]
  const configuration = {
    clients: [{ client_id: "console", name: "Console" }],
    identity: { google: { issuer, audiences: ["sandbox-google"] } },
    registration: { open: true },
    prices: { default_new_credits: 6, default_registration_credits: 0 },
    // The least that it may be. 112 MiB of it are for long answers, so one at a time is waited for.
    bodies: { bytes_total: 128 * 1024 * 1024 },
    upstreams: { main: { base_url: `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`, api_key: "k" } },
    models: [
      { id: "m", context_length: 10_000, max_output_tokens: 100, price, upstreams: [{ ...upstreams[0], model: "m" }] }
    ],
    embeddings: [{ id: "e", max_input_tokens: 10, dimensions: 64, price: { input_usd_per_million: "1" }, upstreams }]
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

const until = async (is: () => boolean): Promise<void> => {
  for (let i = 0; i < 800 && !is(); i++) await new Promise((resolve) => setTimeout(resolve, 25))
  expect(is()).toBe(true)
}
const asked = (count: number) => until(() => waiting.length === count)

const answer = Buffer.from(
  JSON.stringify({
    choices: [{ index: 0, message: { role: "assistant", content: "a".repeat(20_000_000) }, finish_reason: "stop" }],
    usage: { prompt_tokens: 3, completion_tokens: 2 }
  })
)
const head = { "content-type": "application/json" }
/** Begins an answer whose length is not said, so that room for the longest is claimed. */
const begin = ({ response }: (typeof waiting)[number]): ServerResponse => {
  response.writeHead(200, head)
  response.write(answer.subarray(0, 3_000_000))
  return response
}
const go = (key: string, signal?: AbortSignal) =>
  fetch(`${service.url}/v1/chat/completions`, {
    method: "POST",
    ...(signal !== undefined && { signal }),
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] })
  })

/** Repeats a call that is refused because the room of an earlier one is not given back yet. */
const patiently = async (key: string, signal?: AbortSignal): Promise<Response> => {
  const response = await go(key, signal)
  return response.status === 503 ? patiently(key, signal) : response
}

it("answers that are longer together than there is room come one after another, whole and charged", async () => {
  const { key, who } = await person("many")
  const calls = Array.from({ length: 8 }, async () => Buffer.from(await (await go(key)).arrayBuffer()).equals(answer))
  await asked(8)
  for (const one of waiting.splice(0)) begin(one).end(answer.subarray(3_000_000))
  expect(await Promise.all(calls)).toEqual(Array.from({ length: 8 }, () => true))
  const records = await service.usage(who)
  expect(records).toHaveLength(8)
  for (const record of records) expect(record).toMatchObject({ success: true, cost: 0.000005 })
})

for (const ending of ["leaves", "breaks", "is answered"] as const) {
  it(`while an answer waits, only its account is refused, before the vendor is asked; its room is given back when it ${ending}`, async () => {
    const [{ key }, other] = await Promise.all([person(`one-${ending.at(-1)}`), person(`other-${ending.at(-1)}`)])
    const first = go(key)
    await asked(1)
    const held = begin(waiting.splice(0)[0]!)
    const gone = new AbortController()
    const second = go(key, gone.signal).then(
      ({ status }) => status,
      () => "left"
    )
    await asked(1)
    const late = begin(waiting.splice(0)[0]!)
    // It waits as soon as a call of its account is refused.
    let refused = 200
    while (refused !== 503) {
      let isOver = false
      const third = go(key).then(({ status }) => {
        isOver = true
        return status
      })
      await until(() => isOver || waiting.length > 0)
      for (const { response } of waiting.splice(0)) response.writeHead(500).end("{}")
      refused = await third
    }
    const else_ = go(other.key)
    await asked(1)
    waiting.splice(0)[0]!.response.writeHead(200, head).end('{"choices":[]}')
    expect((await else_).status).toBe(200)

    if (ending === "leaves") {
      gone.abort()
      expect(await second).toBe("left")
    }
    // The upstream of a waiting answer is paused: the service learns that it broke once there is room.
    if (ending === "breaks") late.destroy()
    else late.end(answer.subarray(3_000_000))
    held.end(answer.subarray(3_000_000))
    expect(Buffer.from(await (await first).arrayBuffer()).equals(answer)).toBe(true)
    if (ending !== "leaves") expect(await second).toBe(ending === "breaks" ? 500 : 200)

    const again = patiently(key)
    await asked(1)
    begin(waiting.splice(0)[0]!).end(answer.subarray(3_000_000))
    expect(Buffer.from(await (await again).arrayBuffer()).equals(answer)).toBe(true)
  })
}

it("a long answer of numbers is given as base64 where that was asked for, with the bytes of a short one", async () => {
  const { key } = await person("numbers")
  const inputs = Array.from({ length: 2_000 }, () => "a")
  const vector = Array.from({ length: 64 }, (_, i) => Math.fround(i / 3) - 7)
  const call = service.call("/v1/embeddings", {
    token: key,
    json: { model: "e", input: inputs, encoding_format: "base64" }
  })
  await asked(1)
  const data = inputs.map((_, index) => ({ object: "embedding", index, embedding: vector, more: { é: '"' } }))
  waiting
    .splice(0)[0]!
    .response.writeHead(200, head)
    .end(JSON.stringify({ data, usage: { prompt_tokens: 9 } }))
  const { body, status } = await call
  const embedding = Buffer.from(new Float32Array(vector).buffer).toString("base64")
  expect(status).toBe(200)
  expect(body).toEqual({ data: data.map((one) => ({ ...one, embedding })), usage: { prompt_tokens: 9 } })
})
