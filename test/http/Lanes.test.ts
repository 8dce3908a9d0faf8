/**
 * The fast lane and the platform's router answer the same bytes. Each request goes, byte for byte, to two servers of one service: one with
 * the lane, and one without.
 */
import { HttpApi } from "@effect/platform"
import { Context } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { gzipSync } from "node:zlib"
import { Api } from "../../src/app/Api.ts"
import { Fast } from "../../src/http/contract/Annotations.ts"
import { InProcess } from "../support/InProcess.ts"
import type { Ports } from "../support/InProcess.ts"
import type { Person, Service } from "../support/Service.ts"
import { events, head, line, serve } from "./Edge.ts"
import type { Edge } from "./Edge.ts"

const goOn = "HTTP/1.1 100 Continue\r\n\r\n"

/** An answer with what differs between any two answers blotted out: its time, its name, and the names that a vendor gives. */
const comparable = (answer: string): string => {
  if (answer.startsWith(goOn)) return goOn + comparable(answer.slice(goOn.length))
  const [head = "", ...rest] = answer.split("\r\n\r\n")
  const chunked = /^transfer-encoding: chunked$/im.test(head)
  const body = rest.join("\r\n\r\n")
  return [
    head
      .replace(/^date: .*$/im, "date: -")
      .replace(/^x-request-id: req_\w+$/im, "x-request-id: -")
      .replace(/^x-usage-id: use_\w+$/im, "x-usage-id: -"),
    (chunked ? dechunked(body) : body)
      .replace(/"(item_)?id":"\w+-?[\w-]+"/g, '"id":"-"')
      .replace(/"request_id":"req_\w+"/g, '"request_id":"-"')
      .replace(/"created(_at)?":\d+/g, '"created":0')
  ].join("\r\n\r\n")
}

/** How a stream is cut into chunks is a matter of time. */
const dechunked = (body: string): string => {
  const at = body.indexOf("\r\n")
  const size = Number.parseInt(body.slice(0, at), 16)
  return size > 0 ? body.slice(at + 2, at + 2 + size) + dechunked(body.slice(at + 4 + size)) : ""
}

const exchange = async (port: number, bytes: ReadonlyArray<string | Buffer>): Promise<string> => {
  const connection = await line(port)
  for (const piece of bytes) connection.write(piece)
  return connection.closed
}

/** Sends it to both, and gives the one answer. */
const same = async (ports: Ports, bytes: ReadonlyArray<string | Buffer>): Promise<string> => {
  const byLane = comparable(await exchange(ports.lane, bytes))
  const byRouter = comparable(await exchange(ports.router, bytes))
  expect(byLane).toBe(byRouter)
  return byLane
}

/** Makes a body so long that another thread reads it. */
const padded = (body: string): string => `${body}${" ".repeat(300_000)}`

const statusOf = (answer: string): number =>
  Number(/^(?:HTTP\/1\.1 100 Continue\r\n\r\n)?HTTP\/1\.1 (\d{3})/.exec(answer)?.[1])

// ---- every fast endpoint of the contract ----------------------------------------------------------------------------------

const question = {
  type: "choice",
  instructions: "What is it about?",
  criteria: { billing: "money", other: "the rest" }
}

interface Good {
  readonly query?: string
  readonly body?: object
  /** The vendor of the sandbox behind it. */
  readonly vendor: string
  /** How its stream ends, where it streams. */
  readonly end?: RegExp
  /** It costs nothing, and is answered whatever its vendor does. */
  readonly free?: boolean
}

const hi = { model: "sandbox-large", messages: [{ role: "user", content: "Hi" }] }
const done = /data: \[DONE\]\n\n$/

/** A request of each that is answered with success. */
const rerank = { model: "sandbox-rerank", query: "two", documents: ["one", "two"] }
const good: Record<string, Good> = {
  "POST /v1/chat/completions": { body: hi, vendor: "chat", end: done },
  "POST /v1/completions": { body: { model: "sandbox-large", prompt: "Hi" }, vendor: "chat", end: done },
  "POST /v1/messages": { body: { ...hi, max_tokens: 9 }, vendor: "messages", end: /"message_stop"\}\n\n$/ },
  "POST /v1/messages/count_tokens": { body: hi, vendor: "messages", free: true },
  "POST /v1/responses": {
    body: { model: "sandbox-large", input: "Hi" },
    vendor: "responses",
    end: /event: response.completed\ndata: .*\n\n$/
  },
  "POST /v1/decisions": {
    body: { state: "charged twice for billing", questions: { about: question } },
    vendor: "decisions"
  },
  "POST /v1/systemone": {
    body: { state: "charged twice for billing", questions: { about: question } },
    vendor: "decisions"
  },
  "POST /v1/embeddings": { body: { model: "sandbox-embedding", input: ["one two", "three"] }, vendor: "embeddings" },
  "POST /v1/rerank": { body: rerank, vendor: "rerank" },
  "POST /v2/rerank": { body: rerank, vendor: "rerank" },
  "GET /v1/search": { query: "?query=why%20is%20it&max_results=2", vendor: "search" }
}

const fast: Array<string> = []
HttpApi.reflect(Api as unknown as HttpApi.HttpApi.AnyWithProps, {
  onGroup: () => {},
  onEndpoint: ({ endpoint, mergedAnnotations }) => {
    if (Context.get(mergedAnnotations, Fast)) fast.push(`${endpoint.method} ${endpoint.path}`)
  }
})

it("every fast endpoint of the contract is tried", () => {
  expect(fast.toSorted()).toEqual(Object.keys(good).toSorted())
})

let ports: InProcess
let service: Service
let ada: Person
let key: string
let token: string
let poor: string

beforeAll(async () => {
  ports = await InProcess.start()
  service = ports.service
  ada = await service.signIn("ada@example.com")
  token = ada.token
  key = await service.key(ada)
  poor = await service.key(await service.signIn("poor@example.com", { email_verified: false }))
})
afterAll(() => ports.stop())

describe.each(fast)("%s", (endpoint) => {
  const [method = "", path = ""] = endpoint.split(" ")
  const { body, end, free = false, query = "", vendor } = good[endpoint]!
  const posts = body !== undefined
  const bytes = posts ? JSON.stringify(body) : ""

  interface Changes {
    readonly method?: string
    readonly target?: string
    readonly version?: string
    readonly authorization?: string | null
    readonly headers?: ReadonlyArray<string>
    readonly body?: string | Buffer
    /** Where it is not that of the body. */
    readonly length?: number
  }
  const request = (changes: Changes = {}): ReadonlyArray<string | Buffer> => {
    const { authorization = `Bearer ${key}`, headers = [], target = path + query, version = "1.1" } = changes
    const content = changes.body ?? bytes
    const lines = [
      `${changes.method ?? method} ${target} HTTP/${version}`,
      "Host: x",
      ...(authorization === null ? [] : [`Authorization: ${authorization}`]),
      ...(posts ? ["Content-Type: application/json"] : []),
      ...(content.length > 0 || changes.length !== undefined
        ? [`Content-Length: ${changes.length ?? content.length}`]
        : []),
      ...headers,
      "Connection: close",
      "",
      ""
    ]
    return [lines.join("\r\n"), content]
  }
  const answered = async (changes?: Changes) => same(ports, request(changes))

  it("is answered with success", async () => {
    for (const changes of [{}, { authorization: `bearer  ${token} ` }, { version: "1.0" }]) {
      const answer = await answered(changes)
      expect(statusOf(answer)).toBe(200)
      if (!free) expect(answer).toMatch(/\r\nx-charge-usd: 0\.0/)
    }
  })

  it("is found by the same paths", async () => {
    const escaped = path.replace("c", "%63")
    const and = query === "" ? "?" : `${query}&`
    const found = [`${path}/${query}`, `${escaped}${query}`, `${path}${and}other=%20&other=2`, `${path}/${and}`]
    for (const target of found) expect([target, statusOf(await answered({ target }))]).toEqual([target, 200])
    const strange = [
      `//${path.slice(1)}${query}`,
      `${path}//${query}`,
      `${path.toUpperCase()}${query}`,
      `${path}/x`,
      `${path}%2F`
    ]
    for (const target of strange) expect([target, statusOf(await answered({ target }))]).toEqual([target, 404])
    await answered({ target: `${path}%${query}` })
  })

  it("asks for the same credential", async () => {
    const none = "0".repeat(64)
    const refused = [
      null,
      "",
      "Basic YTpi",
      "Bearer ",
      "Bearer nonsense",
      "Bearer svc-prod",
      `Bearer abc-prod-${none}`,
      `Bearer svc-prod-${none}`,
      "Bearer a.b.c",
      `Bearer ${token}x`
    ]
    for (const authorization of refused) {
      const answer = await answered({ authorization })
      expect([authorization, statusOf(answer)]).toEqual([authorization, 401])
      expect(answer).toMatch(/^HTTP\/1\.1 401 [a-zA-Z ]+\r\n/)
    }
    expect(statusOf(await answered({ authorization: `Bearer ${poor}` }))).toBe(free ? 200 : 402)
    // The credential comes first, whatever the body is.
    if (posts) expect(statusOf(await answered({ authorization: null, body: "{" }))).toBe(401)
    // Clients of Anthropic's protocol have a header of their own.
    const own = path.startsWith("/v1/messages")
    for (const [authorization, given] of [
      [null, key],
      ["", key],
      ["Bearer nonsense", key],
      [null, "nonsense"],
      [null, ""]
    ] as const) {
      const answer = await answered({ authorization, headers: [`X-Api-Key: ${given}`] })
      expect([authorization, given, statusOf(answer)]).toEqual([
        authorization,
        given,
        own && given === key && !authorization ? 200 : 401
      ])
    }
  })

  it("has the same methods", async () => {
    for (const other of ["PUT", "DELETE", "PATCH", posts ? "GET" : "POST", "HEAD"]) {
      const answer = await answered({ method: other, body: "" })
      expect([other, statusOf(answer)]).toEqual([other, 405])
      expect(answer).toMatch(new RegExp(`\r\nallow: ${method}\r\n`))
    }
    if (posts) {
      const headers = ["Connection: Upgrade", "Upgrade: websocket"]
      const asked = await answered({ method: "GET", body: "", headers })
      expect(statusOf(asked)).toBe(path === "/v1/responses" ? 426 : 405)
    }
    const preflight = await answered({
      method: "OPTIONS",
      headers: ["Access-Control-Request-Headers: x-one, content-type"]
    })
    expect(statusOf(preflight)).toBe(204)
  })

  it("takes a body in the same ways", async () => {
    if (!posts) {
      // One that nobody asked for is no fault.
      expect(statusOf(await answered({ body: "{}" }))).toBe(200)
      return
    }
    expect(statusOf(await answered({ headers: ["Expect: 100-continue"] }))).toBe(200)
    const chunks = ["Transfer-Encoding: chunked"]
    const head = String(request({ headers: chunks })[0]).replace(/Content-Length: .*\r\n/, "")
    const chunk = `${Buffer.byteLength(bytes).toString(16)}\r\n${bytes}\r\n0\r\n\r\n`
    expect(statusOf(await same(ports, [head, chunk]))).toBe(200)
    const gzip = ["Content-Encoding: gzip"]
    expect(statusOf(await answered({ headers: gzip, body: gzipSync(bytes) }))).toBe(200)
    expect(statusOf(await answered({ headers: gzip }))).toBe(400)
    expect(statusOf(await answered({ headers: ["Content-Encoding: zstd"] }))).toBe(415)
    // Another thread reads a long prompt.
    if (end !== undefined) expect(statusOf(await answered({ body: padded(bytes) }))).toBe(200)
    const asks = { headers: ["Expect: 100-continue"], length: 50_000_000, body: "" }
    expect(statusOf(await answered(asks))).toBe(413)
    expect(statusOf(await answered({ body: Buffer.alloc(33 * 1024 * 1024, " ") }))).toBe(413)
  })

  it("refuses what does not fit in the same words", async () => {
    const idempotency = ["Idempotency-Key: short"]
    if (posts) {
      const nested = `${"[".repeat(30_000)}${"]".repeat(30_000)}`
      const wrong = [
        "",
        "{",
        "[]",
        "{}",
        "null",
        '"text"',
        nested,
        `{"model":"nobody"}`,
        `{"model":${nested}}`,
        "\uFEFF{}",
        "\0"
      ]
      for (const body of wrong) {
        const answer = await answered({ body })
        expect([body, statusOf(answer)]).toEqual([body, 400])
        // The declared length counts characters, so it is wrong for other bodies. An empty body is read as an empty object.
        const isPaddable = body !== "" && Buffer.byteLength(body) === body.length
        if (end !== undefined && isPaddable) expect(await answered({ body: padded(body) })).toBe(answer)
      }
      expect(statusOf(await answered({ headers: idempotency }))).toBe(free ? 200 : 400)
    } else {
      for (const wrong of ["", "?query=", "?query=x&max_results=many", "?query=x&provider=nobody"]) {
        expect([wrong, statusOf(await answered({ target: path + wrong }))]).toEqual([wrong, 400])
      }
    }
  })

  it("passes on what its upstream says in the same words", async () => {
    for (const status of [400, 401, 422, 429, 500, 529]) {
      const fault = { status, body: { error: { message: `no: ${status}` } }, headers: { "retry-after": "7" } }
      await service.control("/faults", { service: vendor, times: 2, ...fault })
      const answer = await answered()
      if (!free) expect([status, statusOf(answer)]).not.toEqual([status, 200])
    }
    await service.control("/faults", { service: vendor, times: 2, drop: true })
    if (free) expect(statusOf(await answered())).toBe(200)
    else expect(statusOf(await answered())).toBeGreaterThanOrEqual(500)
  })

  it("names rate limits in the same words, and refuses by them", async () => {
    if (free) return
    const later = /^(x-ratelimit-reset-\w+|anthropic-ratelimit-\w+-reset|retry-after): .*$/gim
    /** Each server gets the budget anew, since each call counts. */
    const limited = async (requests: number, bytes: ReadonlyArray<string | Buffer>) => {
      const answers: Array<string> = []
      for (const port of [ports.lane, ports.router]) {
        await ports.setBudget(budget, { limit: { requests, tokens: 5_000_000 }, period: "hour" }, ada.tenant_id)
        answers.push(comparable(await exchange(port, bytes)).replace(later, "$1: -"))
        await ports.setBudget(budget, null, ada.tenant_id)
      }
      expect(answers[0]).toBe(answers[1])
      return answers[0]!
    }
    const budget = `bud_${path}`
    const streamed = end === undefined ? [] : [request({ body: JSON.stringify({ ...body, stream: true }) })]
    const anthropic = path.startsWith("/v1/messages")
    for (const bytes of [request(), ...streamed]) {
      const answer = await limited(7, bytes)
      expect(statusOf(answer)).toBe(200)
      expect(answer).toMatch(/\r\nx-ratelimit-limit-requests: 7\r\nx-ratelimit-remaining-requests: 6\r\n/)
      expect(answer).toMatch(/\r\nx-ratelimit-limit-tokens: 5000000\r\nx-ratelimit-remaining-tokens: \d{7}\r\n/)
      expect(answer.includes("\r\nanthropic-ratelimit-requests-remaining: 6\r\n")).toBe(anthropic)
      const refused = await limited(0, bytes)
      expect(statusOf(refused)).toBe(429)
      expect(refused).toMatch(/\r\nx-ratelimit-limit-requests: 0\r\nx-ratelimit-remaining-requests: 0\r\n/)
      expect(refused).toMatch(/\r\nretry-after: -\r\n/)
      expect(refused.includes("\r\nanthropic-ratelimit-requests-limit: 0\r\n")).toBe(anthropic)
    }
    expect(await answered()).not.toMatch(/\r\n(x|anthropic)-ratelimit-/)
  })

  it("streams the same events, where it streams", async () => {
    if (end === undefined) return
    const answer = await answered({ body: JSON.stringify({ ...body, stream: true }) })
    expect(answer).toMatch(/\r\ncontent-type: text\/event-stream\r\n/)
    expect(answer).toMatch(end)
  })
})

// ---- handlers that break --------------------------------------------------------------------------------------------------

describe("a handler", () => {
  let edges: Record<keyof Ports, Edge>
  beforeAll(async () => {
    edges = { lane: await serve(), router: await serve({ no_lane: true }) }
  })
  afterAll(() => Promise.all([edges.lane.stop(), edges.router.stop()]))

  const get = (how: string, ...lines: ReadonlyArray<string>) =>
    head(`/way?how=${encodeURIComponent(how)}`, ...lines).replace("POST", "GET")
  const answered = (how: string) =>
    same({ lane: edges.lane.port, router: edges.router.port }, [get(how, "Connection: close")])

  it.each([
    ["dies", 500, "internal error"],
    ["throws", 500, "internal error"],
    ["dies of a refusal", 503, "too many large requests at once; try again shortly"],
    ["refuses", 503, "not now"],
    ["refuses and dies", 503, "too many large requests at once; try again shortly"],
    ["fails with a text", 500, "internal error"],
    ["overflows", 400, "the request is nested too deeply"],
    ["interrupts itself", 503, "the service is shutting down; try again shortly"],
    ["a text", 422, "no"],
    ["a vendor's JSON", 529, "too much"],
    ["empty", 429, "Too Many Requests"],
    ["digits", 200, "OK"],
    ["events", 200, "OK"],
    ["no such", 500, "internal error"]
  ])("that %s is answered %d", async (how, status, reason) => {
    const answer = await answered(how)
    expect(answer.split("\r\n")[0]).toBe(`HTTP/1.1 ${status} ${reason}`)
    expect(answer).not.toContain("nobody is told")
  })

  it("is not reached where the credential cannot be read: the process goes on", async () => {
    const bytes = get("digits", "Connection: close").replace("Bearer x", "Bearer unreadable")
    const answer = await same({ lane: edges.lane.port, router: edges.router.port }, [bytes])
    expect(answer).toMatch(/^HTTP\/1\.1 500 internal error\r\n/)
  })

  it("is told of to the metrics in the same way", async () => {
    events.length = 0
    for (const how of ["dies", "refuses", "digits"]) await answered(how)
    expect(events).toEqual([500, 500, 503, 503, 200, 200].map((status) => `GET /way ${status}`))
  })

  it.each(["lane", "router"] as const)("is interrupted when its client leaves, in the %s", async (by) => {
    events.length = 0
    const leaver = await line(edges[by].port)
    leaver.write(get("waits"))
    while (!events.includes("waits")) await later()
    leaver.socket.destroy()
    while (events.length < 3) await later()
    expect(events).toEqual(["waits", "interrupted", "GET /way 499"])
  })

  it.each(["lane", "router"] as const)("ends what cannot be interrupted, in the %s", async (by) => {
    events.length = 0
    const leaver = await line(edges[by].port)
    leaver.write(get("settles first"))
    while (!events.includes("waits")) await later()
    leaver.socket.destroy()
    while (events.length < 3) await later()
    expect(events).toEqual(["waits", "settled", "GET /way 499"])
  })

  it.each(["lane", "router"] as const)(
    "is interrupted though it waits behind another answer, in the %s",
    async (by) => {
      events.length = 0
      const leaver = await line(edges[by].port)
      leaver.write(get("waits") + get("waits"))
      while (events.length < 2) await later()
      leaver.socket.destroy()
      while (events.length < 6) await later()
      expect(events.filter((event) => event === "interrupted")).toHaveLength(2)
    }
  )

  it("goes on with the next request of its connection", async () => {
    for (const { port } of Object.values(edges)) {
      const connection = await line(port)
      connection.write(get("dies") + get("digits") + get("digits", "Connection: close"))
      expect(await connection.closed).toMatch(/ 500 [^]* 200 OK[^]* 200 OK/)
    }
  })
})

const later = () => new Promise((resolve) => setTimeout(resolve, 10))
