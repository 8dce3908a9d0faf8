/** OpenAI's own paths for audio and images, from outside: each field, limits, prices, keys, hostile forms, clients that leave. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { start } from "../support/Service.ts"
import type { Answer, Person, Service } from "../support/Service.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

let people = 0
const person = () => service.signIn(`openai${++people}@example.com`)
const broke = async () => {
  const who = await person()
  await service.control(`/tenants/${who.tenant_id}`, { billing_status: "suspended" })
  return who
}
const fault = (name: string, more: object) => service.control("/faults", { service: name, times: 1, ...more })

/** What a refusal says, in the shape that OpenAI's clients parse. */
const said = ({ body: { error }, status }: Answer) => {
  expect(error).toMatchObject({ message: expect.any(String), type: expect.any(String) })
  expect(error.param).toBe(error.details?.field || null)
  return [status, error.code, error.details?.field]
}

type Fields = Readonly<Record<string, string | Blob | ReadonlyArray<string | Blob>>>

const posted = (who: Person, path: string, fields: Fields, headers: Record<string, string> = {}): Promise<Answer> => {
  const form = new FormData()
  for (const [name, values] of Object.entries(fields)) {
    for (const value of [values].flat()) form.append(name, value as string)
  }
  return answerOf(fetch(service.url + path, { method: "POST", body: form, headers: { ...bearer(who), ...headers } }))
}
const sent = (who: Person, path: string, json: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
  answerOf(
    fetch(service.url + path, {
      method: "POST",
      body: typeof json === "string" ? json : JSON.stringify(json),
      headers: { ...bearer(who), "content-type": "application/json", ...headers }
    })
  )

const bearer = ({ token }: Person) => ({ authorization: `Bearer ${token}` })

const answerOf = async (response: Promise<Response>): Promise<Answer> => {
  const { headers, status, ...rest } = await response
  void rest
  const text = await (await response).text()
  const isJson = headers.get("content-type")?.includes("json") ?? false
  return { status, headers, body: isJson ? JSON.parse(text) : text }
}

/** The record and its explanation say what was charged, and the balance has it. */
const charged = async (who: Person, endpoint: string, cost: number) => {
  const [record] = await service.usage(who)
  expect(record).toMatchObject({ endpoint, cost, success: true, usage_type: "tool" })
  const why = (await service.call(`/v1/usage/${record.id}/explain`, { token: who.token })).body
  expect(why).toMatchObject({ endpoint, charged_usd: cost, computed_usd: cost })
  expect(await service.balance(who)).toBe(Number((6 - cost).toFixed(9)))
}

/** Nothing was charged or recorded, and nobody was asked. */
const untouched = async (who: Person) => {
  expect(await service.usage(who)).toEqual([])
  expect(await service.balance(who)).toBe(6)
}

const wave = (seconds = 1) => new File([new Uint8Array(seconds * 16_000)], "talk.wav", { type: "audio/wav" })
const png = (name = "a.png") => new File([Buffer.from("89504e470d0a1a0a", "hex")], name, { type: "image/png" })

const speech = { model: "tts-1", voice: "alloy", input: "hello" }
const image = { prompt: "a hill" }

const routes: ReadonlyArray<
  readonly [
    path: string,
    fault: string,
    good: (who: Person, more?: object, headers?: Record<string, string>) => Promise<Answer>,
    cost: number
  ]
> = [
  [
    "audio/speech",
    "speech",
    (who, more, headers) => sent(who, "/v1/audio/speech", { ...speech, ...more }, headers),
    0.000075
  ],
  [
    "audio/transcriptions",
    "transcription",
    (who, more, headers) =>
      posted(who, "/v1/audio/transcriptions", { file: wave(), model: "whisper-1", ...more }, headers),
    0.0001
  ],
  [
    "audio/translations",
    "transcription",
    (who, more, headers) =>
      posted(who, "/v1/audio/translations", { file: wave(), model: "whisper-1", ...more }, headers),
    0.0001
  ],
  [
    "images/generations",
    "images",
    (who, more, headers) => sent(who, "/v1/images/generations", { ...image, ...more }, headers),
    0.04
  ],
  [
    "images/edits",
    "images",
    (who, more, headers) => posted(who, "/v1/images/edits", { image: png(), ...image, ...more }, headers),
    0.04
  ]
]

describe.each(routes)("/v1/%s", (endpoint, upstream, good, cost) => {
  it("is charged as its record and its explanation say", async () => {
    const who = await person()
    const { headers, status } = await good(who)
    expect([status, headers.get("x-charge-usd")]).toEqual([200, String(cost)])
    await charged(who, endpoint, cost)
  })

  it("is done once for an Idempotency-Key, though a form's boundary is another each time", async () => {
    const who = await person()
    const key = { "idempotency-key": `once-${endpoint.replace("/", "-")}-0123456789` }
    const [first, again, other] = [
      await good(who, {}, key),
      await good(who, {}, key),
      await good(
        who,
        endpoint.startsWith("images")
          ? { prompt: "a lake" }
          : endpoint === "audio/speech"
            ? { input: "bye" }
            : { prompt: "x" },
        key
      )
    ]
    expect([first.status, again.status, said(other)]).toEqual([200, 200, [409, "idempotency_key_reused", undefined]])
    expect([again.body, again.headers.get("idempotency-replayed")]).toEqual([first.body, "true"])
    await charged(who, endpoint, cost)
    expect(await service.usage(who)).toHaveLength(1)
  })

  it("is refused without credit or credential, and reaches nobody", async () => {
    const before = (await service.control(`/calls?service=${upstream}`)).length
    const who = await broke()
    expect(said(await good(who)).slice(0, 2)).toEqual([402, "insufficient_credits"])
    expect((await good({ ...who, token: "" })).status).toBe(401)
    expect((await service.control(`/calls?service=${upstream}`)).length).toBe(before)
    expect(await service.usage(who)).toEqual([])
  })

  it("costs nothing where its upstream fails", async () => {
    for (const [status, code, of] of [
      [500, "upstream_error", 500],
      [422, "upstream_rejected", 400],
      [429, "upstream_rate_limited", 429]
    ] as const) {
      const who = await person()
      await fault(upstream, { status, headers: { "retry-after": "3" }, body: { error: { message: "sk-secret no" } } })
      const answer = await good(who)
      expect(said(answer).slice(0, 2)).toEqual([of, code])
      expect(JSON.stringify(answer.body)).not.toContain("sk-secret")
      expect((await service.usage(who))[0]).toMatchObject({ endpoint, cost: 0, success: false, error_type: code })
      expect(await service.balance(who)).toBe(6)
    }
  })
})

describe("a field that would change the answer or the bill is refused by its name", () => {
  it.each([
    [{ input: "" }, "input"],
    [{ input: "x".repeat(4097) }, "input"],
    [{ model: "" }, "model"],
    [{ model: "tts-9" }, "model"],
    [{ voice: "" }, "voice"],
    [{ voice: { id: "voice_1" } }, "voice"],
    [{ response_format: "ogg" }, "response_format"],
    [{ speed: 5 }, "speed"],
    [{ instructions: "x".repeat(4097) }, "instructions"],
    [{ stream_format: "ndjson" }, "stream_format"],
    // This model makes no events.
    [{ stream_format: "sse" }, "stream_format"],
    [{ provider: "vendor" }, "provider"],
    [{ voices: 2 }, "voices"]
  ])("of speech: %j", async (more, field) => {
    const who = await person()
    expect(said(await sent(who, "/v1/audio/speech", { ...speech, ...more }))).toEqual([400, "invalid_request", field])
    await untouched(who)
  })

  it.each([
    [{ model: "" }, "model"],
    [{ model: "whisper-9" }, "model"],
    [{ language: "english" }, "language"],
    [{ temperature: "3" }, "temperature"],
    [{ response_format: "diarized_json" }, "response_format"],
    [{ model: "vendor-4o-transcribe", response_format: "srt" }, "response_format"],
    [{ model: "vendor-4o-transcribe", response_format: "verbose_json" }, "response_format"],
    [{ "timestamp_granularities[]": "letter", response_format: "verbose_json" }, "timestamp_granularities[]"],
    [{ "timestamp_granularities[]": "word" }, "timestamp_granularities"],
    [{ stream: "true", response_format: "srt" }, "stream"],
    [{ stream: "perhaps" }, "stream"],
    [{ "include[]": "logprobs" }, "include[]"],
    [{ chunking_strategy: "auto" }, "chunking_strategy"],
    [{ provider: "vendor" }, "provider"],
    [{ model: ["whisper-1", "whisper-1"] }, "model"],
    [{ prompt: new Blob(["x"]) }, "prompt"]
  ])("of a transcription: %j", async (more, field) => {
    const who = await person()
    const fields = { file: wave(), model: "whisper-1", ...more } as Fields
    const [status, code, named] = said(await posted(who, "/v1/audio/transcriptions", fields))
    expect([status, code, String(named).replace(/\.\d+$/, "")]).toEqual([400, "invalid_request", field])
    await untouched(who)
  })

  it.each([
    [{ model: "vendor-4o-transcribe" }, "model"],
    [{ language: "de" }, "language"],
    [{ stream: "true" }, "stream"]
  ])("of a translation: %j", async (more, field) => {
    const who = await person()
    const fields = { file: wave(), model: "whisper-1", ...more }
    expect(said(await posted(who, "/v1/audio/translations", fields))).toEqual([400, "invalid_request", field])
    await untouched(who)
  })

  it.each([
    [{ prompt: " " }, "prompt"],
    [{ model: "dall-e-3" }, "model"],
    [{ n: 0 }, "n"],
    [{ n: 11 }, "n"],
    [{ n: 1.5 }, "n"],
    [{ size: "256x256" }, "size"],
    [{ size: "square_hd" }, "size"],
    [{ size: "constructor" }, "size"],
    [{ quality: "hd" }, "quality"],
    [{ background: "transparent" }, "background"],
    [{ moderation: "low" }, "moderation"],
    [{ style: "vivid" }, "style"],
    [{ response_format: "png" }, "response_format"],
    [{ output_format: "webp" }, "output_format"],
    [{ output_format: "gif" }, "output_format"],
    [{ output_compression: 50 }, "output_compression"],
    [{ partial_images: 1 }, "partial_images"],
    [{ stream: true }, "stream"],
    [{ num_images: 2 }, "num_images"]
  ])("of images: %j", async (more, field) => {
    const who = await person()
    expect(said(await sent(who, "/v1/images/generations", { ...image, ...more }))).toEqual([
      400,
      "invalid_request",
      field
    ])
    await untouched(who)
  })

  it.each([
    [{ n: "many" }, "n"],
    [{ input_fidelity: "high" }, "input_fidelity"],
    [{ stream: "true" }, "stream"],
    [{ image: "a.png" }, "image"],
    [{ image: [] }, "image"],
    [{ image: new Blob(["GIF89a"]) }, "image"],
    [{ image: Array.from({ length: 5 }, () => png()) }, "image"],
    [{ mask: [png(), png()] }, "mask"],
    [{ mask: new Blob(["<svg>"]) }, "mask"],
    [{ picture: png() }, "picture"],
    [{ strength: "0.5" }, "strength"]
  ])("of an edit: %j", async (more, field) => {
    const who = await person()
    expect(said(await posted(who, "/v1/images/edits", { image: png(), ...image, ...more } as Fields))).toEqual([
      400,
      "invalid_request",
      field
    ])
    await untouched(who)
  })

  it("what clients send beside, and changes nothing, is taken", async () => {
    const who = await person()
    const nulls = { model: null, n: null, size: null, quality: null, style: null, user: null, stream: null }
    const plain = { quality: "standard", background: "auto", stream: false, partial_images: 0, output_compression: 100 }
    expect((await sent(who, "/v1/images/generations", { ...image, ...nulls })).status).toBe(200)
    expect((await sent(who, "/v1/images/generations", { ...image, ...plain, user: "somebody" })).status).toBe(200)
    const form = { image: png(), ...image, stream: "false", input_fidelity: "low", quality: "auto" }
    expect((await posted(who, "/v1/images/edits", form)).status).toBe(200)
    expect(await service.balance(who)).toBe(5.88)
  })
})

describe("hostile forms", () => {
  const forms = ["/v1/audio/transcriptions", "/v1/audio/translations", "/v1/images/edits"]
  const raw = async (who: Person, path: string, body: string | Buffer, type = "multipart/form-data; boundary=x") =>
    service.call(path, { token: who.token, raw: body, headers: { "content-type": type } })
  const part = (name: string, value: string, more = "") =>
    `--x\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`

  it.each(forms)("to %s are refused", async (path) => {
    const who = await person()
    const file = part(path.endsWith("edits") ? "image" : "file", "\x89PNG\r\n\x1a\n", '; filename="a"')
    for (const [body, type] of [
      ["{}", "application/json"],
      ["", undefined],
      ["--x--\r\n", undefined],
      [file, undefined],
      [`${file}--y--\r\n`, undefined],
      [`${part("model", "m", '; filename="m"')}${file}--x--\r\n`, undefined],
      [`${part("a", "b").repeat(200)}${file}--x--\r\n`, undefined],
      [`${part("prompt", "x".repeat(1024 * 1024))}${file}--x--\r\n`, undefined],
      [`${part("__proto__", "{}")}${file}--x--\r\n`, undefined],
      [file.replace('filename="a"', "filename*=UTF-8''%E6%97%A") + "--x--\r\n", undefined],
      [file, "multipart/form-data"],
      [file, 'multipart/form-data; boundary=""']
    ] as const) {
      const { body: refusal, status } = await raw(who, path, Buffer.from(body, "latin1"), type)
      expect([body.slice(0, 80), status, refusal.error.code]).toEqual([body.slice(0, 80), 400, "invalid_request"])
    }
    await untouched(who)
  })

  it("longer than may be are refused with 413", async () => {
    const who = await person()
    const long = Buffer.alloc(21 * 1024 * 1024, "a")
    const edit = await posted(who, "/v1/images/edits", { image: new Blob([long]), ...image })
    expect(said(edit).slice(0, 2)).toEqual([413, "payload_too_large"])
    const heard = { file: new Blob([long, long]), model: "whisper-1" }
    expect(said(await posted(who, "/v1/audio/translations", heard)).slice(0, 2)).toEqual([413, "payload_too_large"])
    expect(said(await sent(who, "/v1/images/generations", { prompt: "x".repeat(1024 * 1024) })).slice(0, 2)).toEqual([
      413,
      "payload_too_large"
    ])
    await untouched(who)
  })
})

describe("a client that leaves", () => {
  it("pays for what was made for it", async () => {
    const who = await person()
    await fault("speech", { chunk_delay_ms: 20 })
    const leaving = new AbortController()
    const body = JSON.stringify({ ...speech, input: "x".repeat(20) })
    const headers = { ...bearer(who), "content-type": "application/json" }
    const spoken = await fetch(`${service.url}/v1/audio/speech`, {
      method: "POST",
      body,
      headers,
      signal: leaving.signal
    })
    await spoken.body!.getReader().read()
    leaving.abort()
    await expect.poll(() => service.usage(who), { timeout: 20_000 }).toMatchObject([{ success: true, cost: 0.0003 }])

    await fault("transcription", { delay_ms: 600_000 })
    await service.control("/calls", undefined, "DELETE")
    const hanging = new AbortController()
    const form = new FormData()
    form.set("file", wave())
    form.set("model", "whisper-1")
    const heard = fetch(`${service.url}/v1/audio/transcriptions`, {
      method: "POST",
      body: form,
      headers: bearer(who),
      signal: hanging.signal
    })
    const received = async () => (await service.control("/calls?service=transcription")).length
    await expect.poll(received, { timeout: 60_000 }).toBe(1)
    hanging.abort()
    await expect(heard).rejects.toThrow()
    await service.control("/faults", undefined, "DELETE")
    await expect
      .poll(async () => (await service.usage(who))[0])
      .toMatchObject({ endpoint: "audio/transcriptions", cost: 0.0001, units: 1 })

    await service.control("/calls", undefined, "DELETE")
    const left = new AbortController()
    const made = fetch(`${service.url}/v1/images/generations`, {
      method: "POST",
      body: JSON.stringify(image),
      headers,
      signal: left.signal
    })
    await expect
      .poll(async () => JSON.stringify(await service.control("/calls?service=images")))
      .toMatch(/requests\/[\w-]+\/status/)
    left.abort()
    await expect(made).rejects.toThrow()
    await expect
      .poll(async () => (await service.usage(who))[0], { timeout: 20_000 })
      .toMatchObject({ endpoint: "images/generations", cost: 0.04, success: true })
  })
})

describe("images", () => {
  it("that the vendor fails to make cost nothing", async () => {
    const who = await person()
    await fault("images", { status: 200, body: { request_id: "nobody", status: "IN_QUEUE" } })
    await fault("images", { status: 200, body: { status: "COMPLETED", error: "not such a prompt" } })
    const answer = await sent(who, "/v1/images/generations", image)
    expect(said(answer)).toEqual([500, "upstream_error", undefined])
    expect(answer.body.error.message).toBe("not such a prompt")
    expect((await service.usage(who))[0]).toMatchObject({ cost: 0, success: false })
    expect(await service.balance(who)).toBe(6)
  })

  it("whose address gives nothing are charged, said to be there, and not asked for once more", async () => {
    const who = await person()
    await fault("images", { status: 200, body: { request_id: "nobody", status: "IN_QUEUE" } })
    await fault("images", { status: 200, body: { status: "COMPLETED" } })
    await fault("images", { status: 200, body: { images: [{ url: "http://127.0.0.1:1/gone.png" }] } })
    const answer = await sent(who, "/v1/images/generations", { ...image, response_format: "b64_json" })
    expect(said(answer).slice(0, 2)).toEqual([502, "images_not_fetched"])
    expect(answer.headers.get("x-should-retry")).toBe("false")
    await charged(who, "images/generations", 0.04)
    const { request_id } = answer.body.error.details
    const found = await service.call(`/v1/images/status?request_id=${request_id}`, { token: who.token })
    expect(found.body.images).toEqual([{ url: "http://127.0.0.1:1/gone.png" }])
  })

  it("are fetched from the vendor and from public addresses, from nobody else in the own network", async () => {
    const asked: Array<string | undefined> = []
    const inside = createServer((request, response) => {
      asked.push(request.url)
      response.end("secret")
    })
    await new Promise<void>((resolve) => inside.listen(0, "127.0.0.1", resolve))
    const { port } = inside.address() as AddressInfo
    const who = await person()
    for (const host of ["127.0.0.1", "localhost"]) {
      await fault("images", { status: 200, body: { request_id: "nobody", status: "IN_QUEUE" } })
      await fault("images", { status: 200, body: { status: "COMPLETED" } })
      await fault("images", { status: 200, body: { images: [{ url: `http://${host}:${port}/credentials` }] } })
      const answer = await sent(who, "/v1/images/generations", { ...image, response_format: "b64_json" })
      expect(said(answer).slice(0, 2)).toEqual([502, "images_not_fetched"])
    }
    expect(asked).toEqual([])
    inside.close()
  })

  it("are charged as far as they came, be they data URIs or addresses", async () => {
    const who = await person()
    const one = { url: "data:image/png;base64,AAAA" }
    for (const [came, units, cost] of [
      [[one, one], 2, 0.08],
      [[one, { url: "https://example.com/a.png" }, one], 3, 0.12],
      [[one, one, one, one, one], 4, 0.16]
    ] as const) {
      await fault("images", { status: 200, body: { request_id: "nobody", status: "IN_QUEUE" } })
      await fault("images", { status: 200, body: { status: "COMPLETED" } })
      await fault("images", { status: 200, body: { images: came } })
      const answer = await sent(who, "/v1/images/generations", { ...image, n: 4 })
      expect([answer.body.data.length, answer.headers.get("x-charge-usd")]).toEqual([came.length, String(cost)])
      expect((await service.usage(who))[0]).toMatchObject({ success: true, cost, units })
    }
  })

  it("that failed cost nothing, whichever way the vendor says so", async () => {
    const who = await person()
    const before = await service.balance(who)
    for (const [standing, result] of [
      [{ status: "FAILED", error: "out of memory" }, undefined],
      [{ status: "COMPLETED", error: "not safe" }, undefined],
      [{ status: "COMPLETED" }, { status: 422, body: { detail: "not safe" } }]
    ] as const) {
      await fault("images", { status: 200, body: { request_id: "nobody", status: "IN_QUEUE" } })
      await fault("images", { status: 200, body: standing })
      if (result !== undefined) await fault("images", result)
      const answer = await sent(who, "/v1/images/generations", image)
      expect(answer.status).toBeGreaterThanOrEqual(400)
      expect((await service.usage(who))[0]).toMatchObject({ success: false, cost: 0 })
    }
    expect(await service.balance(who)).toBe(before)
  })

  it("in a vendor's data URIs need not be fetched", async () => {
    const who = await person()
    await fault("images", { status: 200, body: { request_id: "nobody", status: "IN_QUEUE" } })
    await fault("images", { status: 200, body: { status: "COMPLETED" } })
    await fault("images", { status: 200, body: { images: [{ url: "data:image/png;base64,AAAA" }] } })
    const answer = await sent(who, "/v1/images/generations", { ...image, response_format: "b64_json" })
    expect(answer.body.data).toEqual([{ b64_json: "AAAA" }])
  })
})
