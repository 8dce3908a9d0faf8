/** Tags and end users of calls over HTTP: where they come from, which win, what is refused, and how usage is found and summed by them. */
import Anthropic from "@anthropic-ai/sdk"
import { randomBytes } from "node:crypto"
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { start } from "../support/Service.ts"
import type { Answer, Call, Person, Service } from "../support/Service.ts"

let service: Service
let people = 0

beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

interface Key {
  readonly who: Person
  readonly id: string
  readonly key: string
}

const keyOf = async (who: Person, json: object = {}): Promise<Key> => {
  const path = `/v1/tenants/${who.tenant_id}/applications`
  const { body } = await service.call(path, { token: who.token, json: { name: "tagged", ...json } })
  return { who, id: body.result.id, key: body.result.api_key }
}

const person = () => service.signIn(`tagged${people++}@example.com`)
const made = async (json: object = {}): Promise<Key> => keyOf(await person(), json)

const hello = { model: "sandbox-small", messages: [{ role: "user", content: "hello there" }], max_tokens: 10 }
const chat = ({ key }: Key, body: object = {}, headers: Record<string, string> = {}) =>
  service.call("/v1/chat/completions", { token: key, json: { ...hello, ...body }, headers })
const message = ({ key }: Key, metadata: object, headers: Record<string, string> = {}) =>
  service.call("/v1/messages", { token: key, json: { ...hello, metadata }, headers })
const tagged = (key: Key, tags: string, body: object = {}) => chat(key, body, { "x-tags": tags })

const labelsOf = ({ end_user, tags }: { readonly end_user?: string; readonly tags?: object }) => ({ end_user, tags })
/** The labels of the newest record. */
const labels = async ({ who }: Key) => labelsOf((await service.usage(who))[0])

interface Total {
  readonly key: string | null
  readonly total: { readonly requests: number }
}

const usage = async ({ who }: Key, query: string) =>
  (await service.call(`/v1/tenants/${who.tenant_id}/usage${query}`, { token: who.token })).body.result

/** The last request that the vendor got. */
const sent = async (of: "chat" | "messages" | "responses") =>
  (await service.control(`/calls?service=${of}&limit=1`))[0].body

/** The field of a 400, and the number of calls of the key's tenant. */
const refusal = async (key: Key, answer: Promise<Pick<Answer, "status" | "body">>) => {
  const { body, status } = await answer
  expect([status, (await service.usage(key.who)).length], JSON.stringify(body)).toEqual([400, 0])
  return body.error.param ?? body.error.message ?? body.details?.field
}

describe("X-Tags", () => {
  it("stands on the record, with spaces left out and names in order", async () => {
    const key = await made()
    expect((await tagged(key, "run=42 ,project=atlas , eq=a=b,a.b-c_D=x y")).status).toBe(200)
    expect(await labels(key)).toEqual({
      tags: { "a.b-c_D": "x y", eq: "a=b", project: "atlas", run: "42" },
      end_user: undefined
    })
    const [record] = await service.usage(key.who)
    expect(Object.keys(record.tags)).toEqual(["a.b-c_D", "eq", "project", "run"])
    const { body } = await service.call(`/v1/usage/${record.id}/explain`, { token: key.key })
    expect(body.tags).toEqual(record.tags)
    for (const one of ["", "  "]) expect((await tagged(key, one)).status).toBe(200)
    expect(await labels(key)).toEqual({})
  })

  it("is refused if it has a ninth tag, a long value, two values for a name, or is malformed", async () => {
    const key = await made()
    const nine = Array.from({ length: 9 }, (_, i) => `t${i}=1`)
    const bad = [
      nine.join(","),
      `project=${"x".repeat(129)}`,
      `project=${"x".repeat(200)}`,
      `${"n".repeat(65)}=1`,
      "a=1,a=2",
      "project",
      "=1",
      "a=",
      "a=1,",
      "na me=1",
      "a=\u00e9"
    ]
    for (const tags of bad) expect(await refusal(key, tagged(key, tags)), tags).toContain("X-Tags")
    expect((await tagged(key, nine.slice(1).join(","))).status).toBe(200)
    expect((await tagged(key, `a=${"x".repeat(128)},a=${"x".repeat(128)}`)).status).toBe(200)
    const long = Array.from({ length: 8 }, (_, i) => `t${i}=${"x".repeat(128)}`)
    expect((await tagged(key, long.join(","))).status).toBe(400)
    // The longest labels, which no index may refuse.
    const noise = () => randomBytes(96).toString("base64")
    const most = Array.from({ length: 7 }, (_, i) => `t${i}=${noise()}`).join(",")
    const end_user = "\u{1f980}".repeat(128)
    expect((await tagged(key, most, { user: end_user })).status).toBe(200)
    expect((await labels(key)).end_user).toBe(end_user)
  })

  it("is read on every metered route", async () => {
    const key = await made()
    const { body } = await service.call("/openapi.json")
    const routes: Array<readonly [string, string]> = []
    for (const [path, methods] of Object.entries<Record<string, { parameters?: ReadonlyArray<{ name: string }> }>>(
      body.paths
    ))
      for (const [method, { parameters = [] }] of Object.entries(methods))
        if (parameters.some(({ name }) => name === "X-Tags")) routes.push([method.toUpperCase(), path])
    expect(routes.length).toBeGreaterThan(18)
    for (const [method, path] of routes) {
      const call: Call = {
        method,
        token: key.key,
        headers: { "x-tags": "none" },
        ...(method !== "GET" && { json: {} })
      }
      const answer = await service.call(method === "GET" ? `${path}?query=tides` : path, call)
      expect([path, answer.status, JSON.stringify(answer.body).includes("X-Tags")]).toEqual([path, 400, true])
    }
    const headers = { "x-tags": "project=atlas" }
    await service.call("/v1/search?query=tides", { token: key.key, headers })
    await service.call("/v1/embeddings", {
      token: key.key,
      headers,
      json: { model: "sandbox-embedding", input: "tides", user: "ada" }
    })
    const records = await service.usage(key.who)
    expect(records.map(({ endpoint, ...record }) => [endpoint, labelsOf(record)])).toEqual([
      ["embeddings", { tags: { project: "atlas" }, end_user: "ada" }],
      ["search", { tags: { project: "atlas" } }]
    ])
  })
})

describe("a body", () => {
  it("of OpenAI names tags and an end user, and is passed on unchanged", async () => {
    const key = await made()
    const client = new OpenAI({ apiKey: key.key, baseURL: `${service.url}/v1`, maxRetries: 0 })
    const metadata = { project: "atlas", "not a name": "x", empty: "" }
    await client.chat.completions.create({ ...hello, metadata, user: "u-1" } as never)
    expect(await sent("chat")).toMatchObject({ metadata, user: "u-1" })
    expect(await labels(key)).toEqual({ tags: { project: "atlas" }, end_user: "u-1" })
    await client.responses.create({
      model: "sandbox-small",
      input: "hi",
      metadata: { project: "b" },
      user: "u-2",
      safety_identifier: "s-2"
    })
    expect(await labels(key)).toEqual({ tags: { project: "b" }, end_user: "s-2" })
    await client.chat.completions.create({ ...hello, stream: true, metadata: { project: "c" } } as never)
    await expect.poll(() => labels(key)).toEqual({ tags: { project: "c" } })
  })

  it("of Anthropic names an end user", async () => {
    const key = await made()
    const client = new Anthropic({ apiKey: key.key, authToken: null, baseURL: service.url, maxRetries: 0 })
    await client.messages.create({ ...hello, metadata: { user_id: "u-1" } } as never)
    expect(await labels(key)).toEqual({ end_user: "u-1" })
  })

  it("of images, speech and transcriptions names an end user, in JSON and in forms", async () => {
    const key = await made()
    const form = (file: File, field: string, texts: Record<string, string>) => {
      const form = new FormData()
      for (const [name, text] of Object.entries(texts)) form.append(name, text)
      form.append(field, file)
      return form
    }
    const audio = () => new File([new Uint8Array(16_000)], "talk.wav", { type: "audio/wav" })
    const png = new File([Buffer.from("\x89PNG\r\n\x1a\n", "latin1")], "hill.png", { type: "image/png" })
    const speech = { model: "tts-1", voice: "alloy", input: "hello" }
    const requests: ReadonlyArray<readonly [path: string, body: object | FormData, end_user: string]> = [
      ["/v1/images/generations", { prompt: "a hill", user: "u-1" }, "u-1"],
      ["/v1/images/generate", { prompt: "a hill", user: "u-2", safety_identifier: "s-2" }, "s-2"],
      ["/v1/images/edits", form(png, "image", { prompt: "at night", user: "u-3" }), "u-3"],
      ["/v1/audio/speech", { ...speech, safety_identifier: "s-4" }, "s-4"],
      ["/v1/speech", { ...speech, user: "u-5" }, "u-5"],
      ["/v1/audio/transcriptions", form(audio(), "file", { model: "whisper-1", user: "u-6" }), "u-6"],
      ["/v1/transcriptions", form(audio(), "file", { user: "u-7", safety_identifier: "s-7" }), "s-7"],
      ["/v1/audio/speech", { ...speech, user: "" }, ""]
    ]
    for (const [path, body, end_user] of requests) {
      const isForm = body instanceof FormData
      const answer = await fetch(`${service.url}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${key.key}`, ...(!isForm && { "content-type": "application/json" }) },
        body: isForm ? body : JSON.stringify(body)
      })
      expect([path, answer.status, (await answer.bytes()).length > 0]).toEqual([path, 200, true])
      expect([path, (await labels(key)).end_user ?? ""]).toEqual([path, end_user])
    }
  })

  it("of LiteLLM lists tags", async () => {
    const key = await made()
    const tags = ["jobID:7", "project=atlas", "prod", "nightly"]
    expect((await chat(key, { metadata: { tags, nested: { a: 1 } } })).status).toBe(200)
    expect(await labels(key)).toEqual({ tags: { jobID: "7", nightly: "true", prod: "true", project: "atlas" } })
  })

  it("is refused by field", async () => {
    const key = await made()
    const nine = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`t${i}`, "1"]))
    const bad: ReadonlyArray<readonly [object, string]> = [
      [{ metadata: nine }, "metadata.t8"],
      [{ metadata: { project: "x".repeat(200) } }, "metadata.project"],
      [{ metadata: { project: "a\nb" } }, "metadata.project"],
      [{ metadata: { tags: ["a=1", "a=2"] } }, "metadata.tags[1]"],
      [{ metadata: { tags: ["a", "b", "c", "no name"] } }, "metadata.tags[3]"],
      [{ metadata: { tags: [1] } }, "metadata.tags[0]"]
    ]
    for (const [body, field] of bad) expect(await refusal(key, chat(key, body)), field).toContain(field)
    const users = [{ user: "a\u0000b" }, { safety_identifier: "u".repeat(129) }]
    for (const send of [
      () => message(key, { user_id: "u".repeat(129) }),
      ...users.map((user) => () => chat(key, user))
    ]) {
      expect((await send()).status).toBe(200)
      expect((await labels(key)).end_user).toMatch(/^sha256:[0-9a-f]{64}$/)
    }
    expect((await chat(key, { user: "", metadata: null })).status).toBe(200)
    expect((await chat(key, { user: "\u00fc".repeat(128) })).status).toBe(200)
  })

  it("yields to the header, and the header to the key", async () => {
    const key = await made({ tags: { team: "one" } })
    await tagged(key, "project=atlas,team=two", { metadata: { project: "other", team: "three", more: "1" } })
    expect(await labels(key)).toEqual({ tags: { more: "1", project: "atlas", team: "one" } })
    const eight = Array.from({ length: 8 }, (_, i) => `t${i}=1`).join(",")
    expect((await tagged(key, eight)).status).toBe(400)
    expect((await tagged(key, `${eight.slice(5)},team=x`)).status).toBe(200)
  })
})

describe("tags of a key", () => {
  it("are set, changed and removed, and stand on its next call", async () => {
    const key = await made({ tags: { team: "one" } })
    const path = `/v1/tenants/${key.who.tenant_id}/applications/${key.id}`
    const change = async (tags: unknown) =>
      service.call(path, { method: "PATCH", token: key.who.token, json: { tags } })
    expect((await service.call(path, { token: key.who.token })).body.result.tags).toEqual({ team: "one" })
    await chat(key)
    expect(await labels(key)).toEqual({ tags: { team: "one" } })
    expect((await change({ team: "two", b: "2" })).body.result.tags).toEqual({ b: "2", team: "two" })
    await chat(key)
    expect(await labels(key)).toEqual({ tags: { b: "2", team: "two" } })
    for (const bad of [{ "a b": "1" }, { a: "" }, { a: "x".repeat(200) }, { a: 1 }, ["a"]])
      expect((await change(bad)).status, JSON.stringify(bad)).toBe(400)
    expect("tags" in (await change(null)).body.result).toBe(false)
    await chat(key)
    expect(await labels(key)).toEqual({})
  })
})

describe("usage by labels", () => {
  it("is filtered, summed and told apart", async () => {
    const key = await made()
    await tagged(key, "project=atlas", { user: "ada" })
    await tagged(key, "project=atlas,team=x", { user: "bob" })
    await tagged(key, "project=atlas2")
    await tagged(key, "subproject=atlas")
    await chat(key)
    const found = async (query: string) => (await usage(key, `?${query}`)).total_records
    expect(
      await Promise.all(["tag=project", "tag=project=atlas", "tag=project=atla", "tag=team=x"].map(found))
    ).toEqual([3, 2, 0, 1])
    expect(
      await Promise.all(["end_user=ada", "end_user=", "run=", "run=run_1", "tag=project&end_user=bob"].map(found))
    ).toEqual([1, 3, 5, 0, 1])
    const first = await usage(key, "?tag=project=atlas&per_page=1")
    const second = await usage(key, `?per_page=1&cursor=${first.next_cursor}`)
    expect([...first.records, ...second.records].map(({ end_user }) => end_user)).toEqual(["bob", "ada"])
    const today = new Date().toISOString().slice(0, 10)
    const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)
    const window = `start_time=${yesterday}T00:00:00Z&end_time=${today}`
    const series = async (query: string) => {
      const { by, series } = await usage(key, `/series?${window}&${query}`)
      return [by, Object.fromEntries(series.map(({ key, total }: Total) => [key, total.requests]))]
    }
    expect(await series("group_by=tag:project")).toEqual(["tag:project", { atlas: 2, atlas2: 1, "": 2 }])
    expect(await series("by=end_user")).toEqual(["end_user", { ada: 1, bob: 1, "": 3 }])
    expect(await series("by=run&tag=project")).toEqual(["run", { "": 3 }])
    expect(await series("by=model&tag=project=atlas")).toEqual(["model", { "sandbox-small": 2 }])
    const { status } = await service.call(`/v1/tenants/${key.who.tenant_id}/usage/series?${window}&by=tag:a b`, {
      token: key.who.token
    })
    expect(status).toBe(400)
    const points = async (query: string) =>
      (await usage(key, `/rollup?rollup=annual&${query}`)).data_points.reduce(
        (sum: number, point: { total_requests: number }) => sum + point.total_requests,
        0
      )
    expect(await Promise.all(["tag=project", "end_user=ada", "tag=project&provider=none", ""].map(points))).toEqual([
      3, 1, 0, 5
    ])
  })
})

describe("attribution tags", () => {
  const code = { "x-claude-code-session-id": "s-1", "x-claude-code-agent-id": "a-1" }

  it("are recorded only if the tenant wants them", async () => {
    const who = await person()
    const path = `/v1/tenants/${who.tenant_id}`
    const off = await keyOf(who)
    await chat(off, {}, code)
    expect(await labels(off)).toEqual({})
    expect((await service.call(path, { token: who.token })).body.result).toEqual({ attribution_tags: false })
    const change = { method: "PATCH", token: who.token, json: { attribution_tags: true } }
    expect((await service.call(path, change)).body.result).toEqual({ attribution_tags: true })
    const key = await keyOf(who)
    await chat(key, {}, code)
    expect(await labels(key)).toEqual({ tags: { agent: "a-1", session: "s-1" } })
    await chat(key, {}, { "session-id": "s-2", originator: "codex_cli_rs" })
    expect(await labels(key)).toEqual({ tags: { agent: "codex_cli_rs", session: "s-2" } })
    await chat(key, {}, { ...code, "x-tags": "session=mine" })
    expect(await labels(key)).toEqual({ tags: { agent: "a-1", session: "mine" } })
    // No room: the headers are not refused.
    const eight = Array.from({ length: 8 }, (_, i) => `t${i}=1`).join(",")
    expect((await chat(key, {}, { ...code, "x-tags": eight })).status).toBe(200)
    expect((await service.call(path, { ...change, json: { attribution_tags: "yes" } })).status).toBe(400)
    const other = await person()
    expect((await service.call(path, { ...change, token: other.token })).status).toBe(403)
  })

  it("come from the text that Claude Code writes as its user too", async () => {
    const who = await person()
    const [device, account, session] = ["d".repeat(64), "0a1b2c3d-0000-4000-8000-000000000001", "57a121ec-f78c"]
    const old = { user_id: `user_${device}_account_${account}_session_${session}` }
    const user_id = JSON.stringify({ device_id: device, account_uuid: "", session_id: session })
    const off = await keyOf(who)
    await message(off, old)
    expect(await labels(off)).toEqual({ end_user: account })
    await service.call(`/v1/tenants/${who.tenant_id}`, {
      method: "PATCH",
      token: who.token,
      json: { attribution_tags: true }
    })
    const key = await keyOf(who)
    expect((await message(key, { user_id })).status).toBe(200)
    expect(await labels(key)).toEqual({ tags: { session }, end_user: device })
    expect((await sent("chat")).user ?? (await sent("messages")).metadata.user_id).toBe(user_id)
  })
})
