/** Injected faults, and the list of calls. */
import { request } from "node:http"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { eventually, open } from "./Scene.ts"
import type { Answer, Scene } from "./Scene.ts"

let scene: Scene

beforeAll(async () => {
  scene = await open()
})

afterAll(() => scene.close())

beforeEach(async () => {
  for (const levers of ["/control/faults", "/control/calls"]) await scene.call(levers, undefined, { method: "DELETE" })
})

const fault = async (body: object): Promise<void> => {
  expect(await scene.call("/control/faults", { service: "chat", ...body })).toMatchObject({ status: 200 })
}

const chat = (body: object = {}, init?: RequestInit, upstream = "chat-a"): Promise<Answer> =>
  scene.call(
    `/${upstream}/v1/chat/completions`,
    { model: "sandbox-small", messages: [{ role: "user", content: "a b c d e f" }], ...body },
    init
  )

const calls = async (query = ""): Promise<ReadonlyArray<Record<string, unknown>>> =>
  (await scene.call(`/control/calls${query}`)).body

/** The part of a stream received before the connection broke; `undefined` if it did not break. */
const brokenStream = (): Promise<string | undefined> =>
  new Promise((resolve, reject) => {
    const sent = request(`${scene.url}/chat-a/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: "Bearer k" }
    })
    sent.on("error", reject).on("response", (response) => {
      let text = ""
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk))
      response.once("error", () => resolve(text)).once("end", () => resolve(undefined))
    })
    sent.end(JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "a b c d e f" }] }))
  })

describe("a fault", () => {
  it("answers its status, body and headers, the given number of times", async () => {
    await fault({ status: 429, body: { error: { message: "slow down" } }, headers: { "Retry-After": "7" }, times: 2 })
    for (let i = 0; i < 2; i++) {
      const answer = await chat()
      expect(answer).toMatchObject({ status: 429, body: { error: { message: "slow down" } } })
      expect(answer.headers.get("retry-after")).toBe("7")
    }
    expect((await chat()).status).toBe(200)
  })

  it("answers binary bodies", async () => {
    await fault({ body_base64: Buffer.of(0xff, 0x00).toString("base64"), headers: { "content-type": "image/png" } })
    const response = await fetch(`${scene.url}/chat-a/v1/chat/completions`, { method: "POST", body: "{}" })
    expect([...Buffer.from(await response.arrayBuffer())]).toEqual([0xff, 0x00])
    const wrong = await scene.call("/control/faults", { service: "chat", body_base64: "ÿ" })
    expect([wrong.status, wrong.body.details.field]).toEqual([400, "body_base64"])
  })

  it("applies to one call by default, at any address of the service", async () => {
    await fault({ status: 503 })
    expect(await chat({}, {}, "chat-b")).toMatchObject({ status: 503, body: { error: { type: "sandbox_fault" } } })
    expect((await chat()).status).toBe(200)
  })

  it("waits for earlier faults, and leaves other services alone", async () => {
    await fault({ status: 500 })
    await fault({ status: 502 })
    await fault({ service: "identity", status: 504 })
    expect([(await chat()).status, (await chat()).status, (await chat()).status]).toEqual([500, 502, 200])
    expect((await scene.call("/issuer/jwks")).status).toBe(504)
  })

  it("may have a body of any shape", async () => {
    await fault({ body: "not JSON", headers: { "Content-Type": "text/html" } })
    const answer = await chat()
    expect(answer).toMatchObject({ status: 200, text: "not JSON" })
    expect(answer.headers.get("content-type")).toBe("text/html")
    await fault({ status: 204 })
    expect(await chat()).toMatchObject({ status: 204, text: "" })
  })

  it("may add headers to the normal answer, and delay it", async () => {
    await fault({ headers: { "x-slow": "yes" }, delay_ms: 5 })
    const answer = await chat()
    expect(answer).toMatchObject({ status: 200, body: { object: "chat.completion" } })
    expect(answer.headers.get("x-slow")).toBe("yes")
  })

  it("closes the connection instead of answering", async () => {
    await fault({ drop: true })
    await expect(chat()).rejects.toThrow()
    expect((await chat()).status).toBe(200)
    expect((await calls()).map(({ aborted }) => aborted)).toEqual([false, false])
  })

  it("breaks a stream after its first chunks, never after its last", async () => {
    await fault({ drop: true })
    const text = await brokenStream()
    expect(text?.match(/"content":"[^"]*"/g)).toEqual([`"content":""`, `"content":"a"`, `"content":" b"`])
    expect(text?.endsWith("\n\n")).toBe(true)
    expect(text).not.toMatch(/"finish_reason":"|DONE/)
    expect((await calls())[0]).toMatchObject({ aborted: false })
  })

  it("may be its own stream, which breaks at its end", async () => {
    const body = `data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\ndata: {"x":1}\n\n`
    const headers = { "content-type": "text/event-stream" }
    await fault({ body, headers })
    expect((await chat({ stream: true })).text).toBe(body)
    await fault({ body, headers, drop: true })
    expect(await brokenStream()).toBe(body)
  })

  it("paces a stream", async () => {
    await fault({ chunk_delay_ms: 1 })
    const { text } = await chat({ stream: true })
    expect(text.match(/^data: /gm)).toHaveLength(9)
  })

  it("can be forgotten", async () => {
    await fault({ status: 500, times: 100 })
    await scene.call("/control/faults", undefined, { method: "DELETE" })
    expect((await chat()).status).toBe(200)
  })

  it("is refused with the name of the wrong field", async () => {
    const wrong: ReadonlyArray<readonly [unknown, string]> = [
      [{ service: "weather", status: 500 }, "service"],
      [{ status: 500 }, "service"],
      [{ service: "chat" }, "status"],
      [{ service: "chat", drop: false }, "status"],
      [{ service: "chat", status: 99 }, "status"],
      [{ service: "chat", status: "500" }, "status"],
      [{ service: "chat", status: 500, times: 0 }, "times"],
      [{ service: "chat", status: 500, times: 1.5 }, "times"],
      [{ service: "chat", delay_ms: -1 }, "delay_ms"],
      [{ service: "chat", chunk_delay_ms: 1e12 }, "chunk_delay_ms"],
      [{ service: "chat", status: 500, headers: { "a b": "c" } }, "headers"],
      [{ service: "chat", status: 500, headers: { a: "x\ny" } }, "headers"],
      [{ service: "chat", status: 500, delay: 3 }, "delay"],
      [[], "body"],
      ["x", "body"]
    ]
    for (const [body, field] of wrong) {
      const answer = await scene.call("/control/faults", body)
      expect(answer.status).toBe(400)
      expect(answer.body.details.field, answer.text).toBe(field)
      expect(answer.body.error.startsWith(`${field}: `)).toBe(true)
    }
    expect((await scene.call("/control/faults", undefined, { method: "POST", body: "{" })).body.details.field).toBe(
      "body"
    )
    expect((await chat()).status).toBe(200)
  })
})

it("forgotten faults delay no longer: a call that waits is answered", async () => {
  await fault({ delay_ms: 600_000 })
  const answer = chat()
  await eventually(async () => (await calls())[0])
  await scene.call("/control/faults", undefined, { method: "DELETE" })
  expect((await answer).status).toBe(200)
})

describe("the list of calls", () => {
  it("holds every call with its body, faulted or not, newest first", async () => {
    await fault({ status: 500 })
    await chat({ user: "first" })
    await chat({ user: "second" }, {}, "chat-b")
    await scene.call("/issuer/jwks?x=1")
    expect(await calls()).toMatchObject([
      { service: "identity", path: "/issuer/jwks?x=1", body: null, aborted: false },
      { service: "chat", path: "/chat-b/v1/chat/completions", body: { user: "second" }, aborted: false },
      { service: "chat", path: "/chat-a/v1/chat/completions", body: { user: "first" }, aborted: false }
    ])
    expect(await calls("?service=identity")).toHaveLength(1)
    expect(await calls("?service=chat&limit=1")).toMatchObject([{ body: { user: "second" } }])
    expect(await calls("?service=mail")).toEqual([])
    await scene.call("/control/calls", undefined, { method: "DELETE" })
    expect(await calls()).toEqual([])
  })

  it("holds other bodies as text, and only calls of the deployment", async () => {
    await scene.call("/chat-a/v1/chat/completions", undefined, { method: "POST", body: `{"half` })
    await scene.call("/issuer/token", { email: "a@example.com" })
    await scene.call("/nowhere")
    expect(await calls()).toMatchObject([{ service: "chat", body: `{"half` }])
  })

  it("marks calls whose client left early", async () => {
    for (const [delay, stream] of [
      [{ delay_ms: 60_000 }, false],
      [{ chunk_delay_ms: 60_000 }, true]
    ] as const) {
      await fault(delay)
      const gone = new AbortController()
      const leaving = chat({ stream }, { signal: gone.signal })
      await eventually(async () => (await calls())[0])
      gone.abort()
      await expect(leaving).rejects.toThrow()
      await eventually(async () => ((await calls())[0]?.aborted === true ? true : undefined))
      await scene.call("/control/calls", undefined, { method: "DELETE" })
    }
    await chat({ stream: true })
    expect((await calls())[0]).toMatchObject({ aborted: false })
  })

  it("refuses an unknown service or a wrong limit", async () => {
    for (const [query, field] of [
      ["?service=weather", "service"],
      ["?limit=0", "limit"],
      ["?limit=x", "limit"]
    ] as const) {
      const { body, status } = await scene.call(`/control/calls${query}`)
      expect([status, body.details.field]).toEqual([400, field])
    }
  })
})
