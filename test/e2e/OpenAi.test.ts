/** The official `openai` package, knowing nothing of us but an address and a key. */
import OpenAI, { BadRequestError, toFile } from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"

let service: Service
let ada: Person
let client: OpenAI

beforeAll(async () => {
  service = await start()
  ada = await service.signIn("ada@example.com")
  client = new OpenAI({ apiKey: await service.key(ada), baseURL: `${service.url}/v1`, maxRetries: 0 })
})

afterAll(() => service.discard())

describe("the openai package", () => {
  it("chats, and the charge can be read back to the nano-USD", async () => {
    const before = await service.balance(ada)
    const answer = await client.chat.completions.create({
      model: "sandbox-small",
      messages: [{ role: "user", content: "one two three" }]
    })
    expect(answer.object).toBe("chat.completion")
    expect(answer.choices[0]?.message.content).toBe("one two three")
    expect(answer.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 3, total_tokens: 6 })

    // 3 × 0.15 + 3 × 0.60 USD a million.
    const cost = 0.00000225
    const [record] = await service.usage(ada)
    expect(record).toMatchObject({
      usage_type: "inference",
      model: "sandbox-small",
      prompt_tokens: 3,
      completion_tokens: 3,
      total_tokens: 6,
      cost,
      success: true,
      account_id: ada.account_id,
      tenant_id: ada.tenant_id,
      billing_source_kind: "own"
    })
    const [entry] = await service.ledger(ada)
    expect(entry).toMatchObject({
      type: "debit",
      amount: cost,
      reference_id: record.id,
      balance: await service.balance(ada)
    })
    expect(entry).not.toHaveProperty("source")
    expect(Math.round((before - (await service.balance(ada))) * 1e9)).toBe(2250)
  })

  it("streams, and the charge is in the books when the stream ends", async () => {
    const stream = await client.chat.completions.create({
      model: "sandbox-large",
      messages: [{ role: "user", content: "alpha beta gamma delta" }],
      stream: true
    })
    let text = ""
    for await (const chunk of stream) {
      expect(chunk.choices).not.toEqual([])
      expect(chunk).not.toHaveProperty("usage")
      text += chunk.choices[0]?.delta.content ?? ""
    }
    expect(text).toBe("alpha beta gamma delta")
    const [record] = await service.usage(ada)
    expect(record).toMatchObject({ model: "sandbox-large", prompt_tokens: 4, completion_tokens: 4, cost: 0.000072 })
  })

  it("shows the usage chunk to who asks for it", async () => {
    const stream = await client.chat.completions.create({
      model: "sandbox-small",
      messages: [{ role: "user", content: "a b" }],
      stream: true,
      stream_options: { include_usage: true }
    })
    const chunks = []
    for await (const chunk of stream) chunks.push(chunk)
    for (const chunk of chunks.slice(0, -1)) expect(chunk.usage).toBeNull()
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 2, completion_tokens: 2 } })
  })

  it("completes text", async () => {
    const answer = await client.completions.create({ model: "sandbox-small", prompt: "say this" })
    expect(answer.object).toBe("text_completion")
    expect(answer.choices[0]?.text).toContain("say this")
  })

  it("is let through by the preflight that a browser makes before each of its calls", async () => {
    /** The rules of a browser on a page of another origin: every header that is not safelisted is asked for first. */
    const asBrowser: typeof fetch = async (input, init) => {
      const request = new Request(input, init)
      const safelisted = new Set(["accept", "accept-language", "content-language"])
      const asked: Array<string> = []
      request.headers.forEach((_, name) => void (safelisted.has(name) || asked.push(name)))
      const preflight = await fetch(request.url, {
        method: "OPTIONS",
        headers: {
          origin: "https://page.example",
          "access-control-request-method": request.method,
          "access-control-request-headers": asked.join(",")
        }
      })
      const allowed = (preflight.headers.get("access-control-allow-headers") ?? "").toLowerCase().split(/, */)
      const refused = asked.filter((name) => !allowed.includes(name))
      if (!preflight.ok || preflight.headers.get("access-control-allow-origin") !== "*" || refused.length > 0)
        throw new TypeError(`the preflight does not allow ${refused.join(", ")}`)
      return fetch(request)
    }
    const inBrowser = new OpenAI({
      apiKey: client.apiKey,
      baseURL: `${service.url}/v1`,
      maxRetries: 0,
      dangerouslyAllowBrowser: true,
      fetch: asBrowser
    })
    const answer = await inBrowser.chat.completions.create({
      model: "sandbox-small",
      messages: [{ role: "user", content: "from a page" }]
    })
    expect(answer.choices[0]?.message.content).toBe("from a page")
    const { data } = await inBrowser.models.list()
    expect(data.length).toBeGreaterThan(1)
  })

  it("lists the models", async () => {
    const models = await client.models.list()
    expect(models.data.map(({ id }) => id)).toEqual([
      "auto",
      "sandbox-small",
      "sandbox-large",
      "sandbox-fraction",
      "sandbox-failover",
      "sandbox-google",
      "sandbox-bedrock"
    ])
  })

  it("finds one model", async () => {
    const found = await client.models.retrieve("sandbox-large")
    expect(found).toMatchObject({ id: "sandbox-large", object: "model", owned_by: "sandbox" })
    expect(found.created).toBeGreaterThan(0)
    await expect(client.models.retrieve("nobody/nothing")).rejects.toMatchObject({ status: 404 })
  })

  /** The newest record, which costs what its explanation says. */
  const recorded = async () => {
    const [record] = await service.usage(ada)
    const why = (await service.call(`/v1/usage/${record.id}/explain`, { token: ada.token })).body
    expect(why).toMatchObject({ endpoint: record.endpoint, charged_usd: record.cost, computed_usd: record.cost })
    return record
  }

  it("speaks: audio whole, as it comes, and as events", async () => {
    const asked = { model: "vendor-4o-mini-tts", voice: "coral", input: "hello" } as const
    const whole = await client.audio.speech.create({ ...asked, instructions: "softly", speed: 1.5 })
    expect(whole.headers.get("content-type")).toBe("audio/mpeg")
    expect(whole.headers.get("x-charge-usd")).toBe("0.00015")
    expect((await whole.arrayBuffer()).byteLength).toBe(5 * 1_024)
    expect(await recorded()).toMatchObject({ endpoint: "audio/speech", usage_type: "tool", units: 5, cost: 0.00015 })
    const wav = await client.audio.speech.create({ ...asked, response_format: "wav" })
    let bytes = 0
    for await (const chunk of wav.body as unknown as AsyncIterable<Uint8Array>) bytes += chunk.length
    expect([wav.headers.get("content-type"), bytes]).toEqual(["audio/wav", 5 * 1_024])
    const events = await (await client.audio.speech.create({ ...asked, stream_format: "sse" })).text()
    const types = events.split("\n\n").flatMap((event) => /"type":"([\w.]+)"/.exec(event)?.[1] ?? [])
    expect(types).toEqual([...Array.from({ length: 5 }, () => "speech.audio.delta"), "speech.audio.done"])
  })

  it("transcribes: JSON, verbose JSON with times, text, subtitles, and events", async () => {
    const file = () => toFile(Buffer.alloc(48_000, "a"), "talk.wav")
    const { transcriptions } = client.audio
    const model = "whisper-1"
    const text = "3 seconds of talk.wav"
    const short = await transcriptions.create({ file: await file(), model, language: "en", temperature: 0.2 })
    expect(short).toEqual({ text, usage: { type: "duration", seconds: 3 } })
    expect(await recorded()).toMatchObject({ endpoint: "audio/transcriptions", units: 3, cost: 0.0003 })
    const verbose = await transcriptions.create({
      file: await file(),
      model,
      response_format: "verbose_json",
      timestamp_granularities: ["word", "segment"]
    })
    expect(verbose).toMatchObject({ text, duration: 3, language: "english" })
    expect(verbose.words?.map(({ word }) => word)).toEqual(["3", "seconds", "of", "talk.wav"])
    expect(verbose.segments?.map(({ end, text }) => [end, text])).toEqual([
      [2.25, " 3 seconds of"],
      [3, " talk.wav"]
    ])
    expect(await transcriptions.create({ file: await file(), model, response_format: "text" })).toBe(`${text}\n`)
    expect(await transcriptions.create({ file: await file(), model, response_format: "srt" })).toBe(
      "1\n00:00:00,000 --> 00:00:02,250\n3 seconds of\n\n2\n00:00:02,250 --> 00:00:03,000\ntalk.wav\n\n"
    )
    expect(await transcriptions.create({ file: await file(), model, response_format: "vtt" })).toBe(
      "WEBVTT\n\n00:00:00.000 --> 00:00:02.250\n3 seconds of\n\n00:00:02.250 --> 00:00:03.000\ntalk.wav\n\n"
    )
    const heard = []
    const streamed = await transcriptions.create({ file: await file(), model: "vendor-4o-transcribe", stream: true })
    for await (const event of streamed) heard.push(event)
    expect(heard).toEqual([
      { type: "transcript.text.delta", delta: text },
      { type: "transcript.text.done", text, usage: { type: "duration", seconds: 3 } }
    ])
  })

  it("translates, by a model that does", async () => {
    const file = await toFile(Buffer.alloc(16_000, "a"), "talk.wav")
    expect(await client.audio.translations.create({ file, model: "whisper-1" })).toMatchObject({
      text: "1 seconds of talk.wav"
    })
    expect(await recorded()).toMatchObject({ endpoint: "audio/translations", units: 1, cost: 0.0001 })
  })

  it("makes images, as addresses and as bytes, at the price of their size", async () => {
    const { created, data } = await client.images.generate({ prompt: "a hill", n: 2, model: "sandbox-image" })
    expect(created).toBeGreaterThan(1_000_000_000)
    expect(data?.map(({ url }) => url)).toEqual([expect.stringMatching(/^http:/), expect.stringMatching(/^http:/)])
    expect(await recorded()).toMatchObject({ endpoint: "images/generations", usage_type: "tool", units: 2, cost: 0.08 })
    const drawn = await client.images.generate({
      prompt: "a lake",
      size: "1536x1024",
      response_format: "b64_json",
      output_format: "png",
      quality: "auto",
      background: "auto",
      user: "somebody"
    })
    expect(Buffer.from(drawn.data![0]!.b64_json!, "base64").toString("latin1", 1, 4)).toBe("PNG")
    expect(await recorded()).toMatchObject({ units: 1, cost: 0.06 })
    const asked = (await service.control("/calls?service=images")).find(({ body }: { body: unknown }) => body)
    expect(asked.body).toEqual({
      prompt: "a lake",
      num_images: 1,
      image_size: { width: 1536, height: 1024 },
      output_format: "png"
    })
  })

  it("edits images, with a mask", async () => {
    const png = Buffer.from("89504e470d0a1a0a", "hex")
    const edited = await client.images.edit({
      prompt: "without the tree",
      image: [await toFile(png, "a.png"), await toFile(png, "b.png")],
      mask: await toFile(png, "mask.png"),
      response_format: "b64_json"
    })
    expect(edited.data).toEqual([{ b64_json: expect.stringMatching(/^iVBOR/) }])
    expect(await recorded()).toMatchObject({ endpoint: "images/edits", units: 1, cost: 0.04 })
    const asked = (await service.control("/calls?service=images")).find(({ body }: { body: unknown }) => body)
    const uri = `data:image/png;base64,${png.toString("base64")}`
    expect(asked).toMatchObject({
      path: "/images-queue/sandbox/flux/edit",
      body: { prompt: "without the tree", image_urls: [uri, uri], mask_url: uri }
    })
  })

  it("embeds: as numbers, and as the base64 that it asks for by itself", async () => {
    const input = ["the tide is in", "the tide is out", "a lighthouse"]
    const asked = await client.embeddings.create({ model: "sandbox-embedding", input, dimensions: 64 })
    const plain = await client.embeddings.create({
      model: "sandbox-embedding",
      input,
      dimensions: 64,
      encoding_format: "float"
    })
    const formats = (await service.control("/calls?service=embeddings&limit=2")).map(
      ({ body }: { body: { encoding_format?: string } }) => body.encoding_format
    )
    expect(formats).toEqual(["float", "base64"])
    expect(asked.data.map(({ embedding }) => [...embedding])).toEqual(plain.data.map(({ embedding }) => embedding))
    const [first, second, third] = plain.data.map(({ embedding }) => embedding) as [number[], number[], number[]]
    const nearness = (one: number[], other: number[]) => one.reduce((sum, value, i) => sum + value * other[i]!, 0)
    expect(nearness(first, second)).toBeGreaterThan(nearness(first, third))
    expect(asked.usage).toEqual({ prompt_tokens: 10, total_tokens: 10 })
    expect(await recorded()).toMatchObject({ endpoint: "embeddings", prompt_tokens: 10, cost: 2e-7 })
    const raw = await client.embeddings.create({
      model: "sandbox-embedding",
      input: [1, 2, 3],
      encoding_format: "base64"
    })
    expect(raw.data[0]?.embedding).toEqual(expect.any(String))
  })

  it("hears by which field and code each of these calls is refused", async () => {
    const refusal = (call: () => Promise<unknown>) =>
      call().then(
        () => expect.unreachable(),
        (error) => error
      )
    const input = "x"
    const file = await toFile(Buffer.alloc(9), "a.wav")
    for (const [call, param] of [
      [() => client.audio.speech.create({ model: "tts-1", voice: "coral", input, speed: 9 }), "speed"],
      [() => client.audio.transcriptions.create({ model: "none", file }), "model"],
      [() => client.images.generate({ prompt: "x", quality: "hd" }), "quality"],
      [() => client.images.edit({ prompt: "x", image: file }), "image"],
      [() => client.embeddings.create({ model: "sandbox-embedding", input: [] }), "input"]
    ] as const) {
      const error = await refusal(call)
      expect(error).toBeInstanceOf(BadRequestError)
      expect(error).toMatchObject({
        param,
        code: "invalid_request",
        type: "invalid_request_error",
        message: expect.stringMatching(`^400 ${param}: `)
      })
    }
    const stranger = new OpenAI({ apiKey: "svc-prod-none", baseURL: `${service.url}/v1`, maxRetries: 0 })
    expect(await refusal(() => stranger.embeddings.create({ model: "m", input }))).toMatchObject({
      status: 401,
      type: "authentication_error"
    })
  })

  it("hears of a wrong key", async () => {
    const stranger = new OpenAI({ apiKey: `svc-prod-${"0".repeat(64)}`, baseURL: `${service.url}/v1`, maxRetries: 0 })
    await expect(stranger.models.list()).rejects.toMatchObject({ status: 401 })
  })
})
