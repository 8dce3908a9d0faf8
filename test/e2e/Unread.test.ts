/** A client that asks for an answer and does not read it, over a socket of its own: how long it is waited for, and what it costs. */
import { Effect, Exit, Scope } from "effect"
import { rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { ServerResponse } from "node:http"
import { connect } from "node:net"
import type { AddressInfo, Socket } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import * as Sandbox from "../../src/sandbox/Sandbox.ts"
import { freshFolder, start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"
import * as Tables from "../support/tables.ts"

const chunk = (content: string) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta: { content } }] })}\n\n`
const piece = chunk("x".repeat(32 * 1024))
const ending = [
  { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
  { choices: [], usage: { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 } }
]
  .map((event) => `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", ...event })}\n\n`)
  .concat("data: [DONE]\n\n")
  .join("")

/** More than the buffers of two connections hold: a stream that its reader does not take stops before its end. */
const floodBytes = 64 * 1024 * 1024

/** Writes that much, as fast as it is taken, and then ends the stream. */
const flood = (response: ServerResponse): void => {
  response.writeHead(200, { "content-type": "text/event-stream" })
  let written = 0
  const more = (): void => {
    while (written < floodBytes) {
      written += piece.length
      if (!response.write(piece)) return void response.once("drain", more)
    }
    response.end(ending)
  }
  more()
}

const vendor = createServer((request, response) => {
  request.resume().once("end", () => {
    if (request.url === "/v1/chat/completions") return flood(response)
    // Says nothing for longer than a client may leave an answer unread.
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.write(chunk("slow"))
    setTimeout(() => response.end(ending), 2_500)
  })
})

const scope = Effect.runSync(Scope.make())
let folder: string
let service: Service
let ada: Person
let key: string
let sandbox: Sandbox.Sandbox

beforeAll(async () => {
  await new Promise<void>((resolve) => vendor.listen(0, "127.0.0.1", resolve))
  const at = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`
  sandbox = await Effect.runPromise(Scope.extend(Sandbox.make({}), scope))
  const model = (id: string) => ({
    id,
    context_length: 100_000,
    max_output_tokens: 1_000,
    price: { prompt_usd_per_million: "1", completion_usd_per_million: "2" },
    upstreams: [{ upstream: id }]
  })
  const { models, upstreams, ...others } = sandbox.configuration as {
    readonly models: ReadonlyArray<object>
    readonly upstreams: object
  }
  folder = freshFolder()
  const file = join(folder, "tollgate.json")
  writeFileSync(
    file,
    JSON.stringify({
      ...others,
      upstreams: {
        ...upstreams,
        flood: { base_url: `${at}/v1`, api_key: "key" },
        slow: { base_url: `${at}/slow`, api_key: "key" }
      },
      models: [...models, model("flood"), model("slow")],
      answers: { unread_seconds: 1 }
    })
  )
  service = await start({ args: ["--config", file] })
  ada = await signIn()
  key = await service.key(ada)
})

afterAll(async () => {
  await service.discard()
  await Effect.runPromise(Scope.close(scope, Exit.void))
  vendor.closeAllConnections()
  vendor.close()
  rmSync(folder, { recursive: true, force: true })
})

/** As `Service.signIn`, where the sandbox is not the service's own. */
const signIn = async (): Promise<Person> => {
  const { client_id, issuer } = sandbox
  const { id_token } = (await service.call(`${issuer}/token`, { json: { email: "ada@example.com" } })).body
  const { body } = await service.call("/v1/auth/google", { json: { id_token, client_id } })
  const { access_token: token, refresh_token } = body.result.token_response
  const { account } = (await service.call("/v1/me", { token })).body.result
  return { token, refresh_token, account_id: account.id, tenant_id: account.tenant_id, email: account.email }
}

const ask = (model: string, headers: ReadonlyArray<string> = []): Socket => {
  const body = JSON.stringify({
    model,
    stream: true,
    stream_options: { include_usage: true },
    messages: [{ role: "user", content: "hello" }]
  })
  const socket = connect(service.port, "127.0.0.1")
  const head = ["POST /v1/chat/completions HTTP/1.1", "Host: x", `Authorization: Bearer ${key}`, ...headers]
  socket.write([...head, `Content-Length: ${Buffer.byteLength(body)}`, "", body].join("\r\n"))
  return socket
}

const recorded = async (count: number) => {
  const look = async () => {
    const records = await service.usage(ada)
    expect(records).toHaveLength(count)
    return records[0]
  }
  return vi.waitFor(look, { timeout: 120_000, interval: 50 })
}

/** Calls that something is set aside for. */
const open = () => Tables.ask(service.folder, "SELECT id FROM tollgate_ledger_reservations")

describe("a client that does not read", () => {
  it("is left after a while: the upstream is read on, and what it reports is charged", async () => {
    const socket = ask("flood").pause()
    expect(await recorded(1)).toMatchObject({ prompt_tokens: 3, completion_tokens: 5, cost: 0.000013 })
    expect(await open()).toEqual([])
    // What had come before may be read; the connection ends without the stream's end.
    let text = ""
    socket.setEncoding("latin1").on("data", (data: string) => (text = (text + data).slice(-100)))
    await new Promise((resolve) => socket.once("close", resolve).once("error", resolve).resume())
    expect(text).not.toContain("[DONE]")
  })

  it("is left with an Idempotency-Key too", async () => {
    const socket = ask("flood", ["Idempotency-Key: unread-0123456789"]).pause()
    expect(await recorded(2)).toMatchObject({ cost: 0.000013 })
    expect(await open()).toEqual([])
    socket.on("error", () => {}).destroy()
  })
})

it("a client that waits for the next event of a stream is not left", async () => {
  const socket = ask("slow", ["Connection: close"])
  let text = ""
  socket.setEncoding("latin1").on("data", (data: string) => (text += data))
  await new Promise((resolve) => socket.once("close", resolve))
  expect(text).toContain("data: [DONE]")
  expect(await recorded(3)).toMatchObject({ success: true, cost: 0.000013 })
})
