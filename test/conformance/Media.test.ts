/** Images and media from outside: quotes, jobs, charges, cancels, restarts, and everything that a vendor may do wrong. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { tokensFor } from "../support/OAuth.ts"
import { start } from "../support/Service.ts"
import type { Answer, Person, Service } from "../support/Service.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

let people = 0
const person = () => service.signIn(`maker${++people}@example.com`)
const left = (cost: number) => Number((6 - cost).toFixed(9))
const fault = (name: string, more: object) => service.control("/faults", { service: name, times: 1, ...more })
const hours = 3_600_000

const video = (more: object = {}) => ({ model: "sandbox-video", prompt: "a fish", ...more })
const submit = (who: Person, json: unknown = video()) =>
  service.call("/v1/tools/media/generate", { token: who.token, json })
const ask = (who: Person, what: "status" | "result", id: string, on = service): Promise<Answer> =>
  on.call(`/v1/tools/media/${what}?request_id=${id}`, { token: who.token })
const cancel = (who: Person, request_id: string) =>
  service.call("/v1/tools/media/cancel", { token: who.token, json: { request_id } })
const move = (request_id: string, more: object) => service.control("/media", { request_id, ...more })

/** What the vendor was asked to make; the service looks after the jobs of other tests meanwhile. */
const submissions = async (name: "media" | "images") =>
  (await service.control(`/calls?service=${name}`)).filter(({ path }: { path: string }) => !path.includes("/requests/"))

const submitted = async (who: Person, json: unknown = video()) => {
  const { body, status } = await submit(who, json)
  expect([status, body.code]).toEqual([200, undefined])
  return body
}

interface Listed {
  readonly request_id: string
}

const refusal = ({ body, status }: Answer) => [status, body.code]
const eventually = async <A>(look: () => Promise<A | undefined>): Promise<A> => {
  for (let i = 0; i < 200; i++) {
    const found = await look()
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error("it did not come to that")
}

describe("the models", () => {
  it("are listed to everybody, with the price of their defaults", async () => {
    const { body, status } = await service.call("/v1/tools/media/models")
    expect(status).toBe(200)
    const shown = body.models.map((one: Record<string, unknown>) => [
      one.id,
      one.type,
      one.unit,
      one.unit_price_usd,
      one.default
    ])
    expect(shown).toEqual([
      ["sandbox-video", "video", "second", 0.05, false],
      ["sandbox-video-open", "video", "second", 0.02, false],
      ["sandbox-image-to-video", "video", "second", 0.05, false],
      ["sandbox-image", "image", "image", 0.04, true]
    ])
    expect(body.models[0].pricing_note).toContain("720p 0.1 (with audio 0.15)")
  })
})

describe("a quote", () => {
  it.each([
    [{}, 5, 0.25],
    [{ duration: 10 }, 10, 0.5],
    [{ duration: 1, resolution: "720p" }, 1, 0.1],
    [{ duration: 2, audio: true }, 2, 0.15],
    [{ duration: 2, resolution: "720p", audio: true, seed: 7 }, 2, 0.3],
    [{ model: "sandbox-video-open", duration: 60 }, 60, 1.2],
    [{ model: "sandbox-video-open" }, 5, 0.1],
    [{ model: "sandbox-image-to-video", start_image_url: "https://example.com/a.png" }, 5, 0.25]
  ])("for %j is %d seconds, %d USD", async (more, units, cost_usd) => {
    const who = await person()
    const job = await submitted(who, video(more))
    expect(job).toEqual({
      request_id: expect.any(String),
      model: (more as { model?: string }).model ?? "sandbox-video",
      provider: "sandbox-media",
      status: "IN_QUEUE",
      queue_position: 0,
      cost_usd,
      units,
      unit: "second"
    })
    // Set aside, not charged.
    expect(await service.balance(who)).toBe(6)
    expect(await service.usage(who)).toEqual([])
  })

  it("for images is by the image, of the default model where none is named", async () => {
    const who = await person()
    const job = await submitted(who, { prompt: "a fish", num_images: 3, image_size: "landscape_4_3", strength: 0.5 })
    expect(job).toMatchObject({ model: "sandbox-image", cost_usd: 0.12, units: 3, unit: "image" })
    await move(job.request_id, { status: "COMPLETED" })
    const { body } = await ask(who, "result", job.request_id)
    expect(body.output.images).toHaveLength(3)
    expect(body.output.images[0]).toEqual({
      url: expect.stringContaining("http"),
      width: 1024,
      height: 768,
      content_type: "image/png"
    })
  })

  it.each([
    [{ model: "nothing" }, "model"],
    [{ model: 7 }, "model"],
    [{ prompt: undefined }, "prompt"],
    [{ prompt: " " }, "prompt"],
    [{ duration: 11 }, "duration"],
    [{ duration: 0 }, "duration"],
    [{ duration: 2.5 }, "duration"],
    [{ duration: "5" }, "duration"],
    [{ model: "sandbox-video-open", duration: 61 }, "duration"],
    [{ resolution: "1080p" }, "resolution"],
    [{ model: "sandbox-video-open", resolution: "480p" }, "resolution"],
    [{ audio: "loud" }, "audio"],
    [{ model: "sandbox-video-open", audio: true }, "audio"],
    [{ prompt: 7 }, "prompt"],
    [{ model: "sandbox-image-to-video", prompt: 7, start_image_url: "https://example.com/a.png" }, "prompt"],
    [{ seed: 1.5 }, "seed"],
    [{ seed: "7" }, "seed"],
    [{ start_image_url: "https://example.com/a.png" }, "start_image_url"],
    [{ model: "sandbox-image-to-video" }, "start_image_url"],
    [{ model: "sandbox-image-to-video", start_image_url: "file:///etc/passwd" }, "start_image_url"],
    [{ model: "sandbox-image", num_images: 5 }, "num_images"],
    [{ model: "sandbox-image", image_size: "round" }, "image_size"],
    [{ model: "sandbox-image", strength: 2 }, "strength"]
  ])("is refused for %j: nothing run, nothing charged", async (more, field) => {
    const who = await person()
    await service.control("/calls", undefined, "DELETE")
    const answer = await submit(who, video(more))
    expect([...refusal(answer), answer.body.details.field]).toEqual([400, "media_rejected", field])
    expect(await submissions("media")).toEqual([])
    expect(await service.usage(who)).toEqual([])
  })

  it.each([
    [video({ seed: -1 }), { prompt: "a fish", seed: -1 }],
    [{ model: "sandbox-image-to-video", start_image_url: "https://example.com/a.png" }, { prompt: undefined }],
    [{ model: "sandbox-image-to-video", prompt: "", start_image_url: "https://example.com/a.png" }, { prompt: "" }],
    [
      { model: "sandbox-image-to-video", prompt: " on ", start_image_url: "DATA:image/PNG;base64,AAAA" },
      { prompt: " on " }
    ],
    [video({ prompt: "x".repeat(100_000) }), { prompt: "x".repeat(100_000) }],
    [{ prompt: "a fish", seed: -7 }, { seed: -7 }]
  ])("takes what no specification and no model forbids, and passes it on (%#)", async (json, sent) => {
    const who = await person()
    await service.control("/calls", undefined, "DELETE")
    await submitted(who, json)
    const [call] = await submissions("media")
    for (const [name, value] of Object.entries(sent)) expect([name, call.body[name]]).toEqual([name, value])
  })

  it("is refused for a body of more than 1 MiB, or that is no JSON", async () => {
    const who = await person()
    expect(refusal(await submit(who, video({ prompt: "x".repeat(1024 * 1024) })))).toEqual([413, "payload_too_large"])
    const nonsense = await service.call("/v1/tools/media/generate", { token: who.token, raw: "{", method: "POST" })
    expect(refusal(nonsense)).toEqual([400, "invalid_request"])
  })

  it("is set aside: jobs together never cost more than there is", async () => {
    const who = await person()
    const dear = video({ model: "sandbox-video-open", duration: 60 })
    const answers = await Promise.all(Array.from({ length: 8 }, () => submit(who, dear)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(5)
    expect(answers.filter(({ status }) => status === 402)).toHaveLength(3)
  })
})

describe("a job", () => {
  it.each(["media", "images"] as const)(
    "of %s is there for what made it, and for the person in its tenant",
    async (route) => {
      const who = await person()
      const team = await service.call("/v1/tenants", { token: who.token, json: { name: "team" } })
      const elsewhere = await service.call("/v1/auth/token", {
        json: {
          client_id: (await service.sandbox()).client_id,
          grant_type: "refresh_token",
          refresh_token: who.refresh_token,
          tenant_id: team.body.result.id
        }
      })
      const callers = {
        one: await service.key(who),
        two: await service.key(who),
        app: (await tokensFor(service, who, "calls")).body.access_token as string,
        desktop: (await tokensFor(service, who, "calls", { client_id: "sandbox-desktop" })).body.access_token as string,
        person: (await service.signIn(who.email)).token,
        elsewhere: elsewhere.body.result.access_token as string
      }
      const images = route === "images"
      const made = async (token: string) => {
        const json = images ? { prompt: "a fish", sync_mode: false } : video()
        const path = images ? "/v1/images/generate" : "/v1/tools/media/generate"
        const answer = await service.call(path, { token, json })
        expect(answer.status).toBe(200)
        return answer.body.request_id as string
      }
      const jobs = { one: await made(callers.one), app: await made(callers.app), person: await made(callers.person) }
      const reaches: Record<keyof typeof callers, ReadonlyArray<keyof typeof jobs>> = {
        one: ["one"],
        two: [],
        app: ["app"],
        desktop: [],
        person: ["one", "app", "person"],
        elsewhere: []
      }
      for (const [name, token] of Object.entries(callers))
        for (const [maker, id] of Object.entries(jobs)) {
          const reached = (reaches[name as keyof typeof callers] as ReadonlyArray<string>).includes(maker)
          const query = `?request_id=${id}`
          const asked = images
            ? [await service.call(`/v1/images/status${query}`, { token })]
            : [
                await service.call(`/v1/tools/media/status${query}`, { token }),
                await service.call(`/v1/tools/media/result${query}`, { token }),
                await service.call(`/v1/tools/media/content${query}`, { token }),
                ...(reached ? [] : [await service.call("/v1/tools/media/cancel", { token, json: { request_id: id } })])
              ]
          for (const answer of asked) {
            const lost = answer.status === 404
            expect([name, maker, lost]).toEqual([name, maker, !reached])
            if (lost && !images) expect(answer.body.code).toBe("media_not_found")
          }
          if (images) continue
          const { records } = (await service.call("/v1/tools/media/jobs", { token })).body
          const listed = records.map(({ request_id }: Listed) => request_id)
          expect([name, maker, listed.includes(id)]).toEqual([name, maker, reached])
        }
      const cancelled = await service.control(`/calls?service=${route}`)
      expect(cancelled.filter(({ path }: { path: string }) => path.endsWith("/cancel"))).toEqual([])
    }
  )

  it("runs, completes by itself, and is charged its quote once", async () => {
    const who = await person()
    const { request_id } = await submitted(who)
    await move(request_id, { status: "IN_PROGRESS" })
    const running = (await ask(who, "status", request_id)).body
    expect(running).toEqual({
      request_id,
      model: "sandbox-video",
      status: "IN_PROGRESS",
      metrics: { inference_time: 0 },
      settled: false,
      cost_usd: 0.25,
      units: 5,
      unit: "second"
    })
    expect(refusal(await ask(who, "result", request_id))).toEqual([409, "media_not_completed"])
    // A longer video than was asked for changes nothing.
    await move(request_id, { status: "COMPLETED", duration: 500 })
    const statuses = await Promise.all(Array.from({ length: 10 }, () => ask(who, "status", request_id)))
    for (const { body } of statuses) expect(body).toMatchObject({ status: "COMPLETED", settled: true, cost_usd: 0.25 })
    const { body } = await ask(who, "result", request_id)
    expect(body).toMatchObject({
      request_id,
      status: "COMPLETED",
      output: {
        actual_prompt: null,
        duration: 500,
        seed: expect.any(Number),
        video: { content_type: "video/mp4", url: expect.stringContaining("http"), fps: 24, width: 854, height: 480 }
      }
    })
    expect(await service.balance(who)).toBe(left(0.25))
    const records = await service.usage(who)
    expect(records).toHaveLength(1)
    expect(records[0]).toMatchObject({
      endpoint: "media/generate",
      usage_type: "tool",
      model: "sandbox-video",
      units: 5,
      cost: 0.25,
      success: true
    })
    const told = await service.call(`/v1/usage/${records[0].id}/explain`, { token: who.token })
    expect(told.body).toMatchObject({
      computed_usd: 0.25,
      reserved_usd: 0.25,
      price: { lines: [{ quantity: 5, unit: "second", unit_price_usd: "0.05" }] }
    })
  })

  it("that nobody comes back for is settled by the service itself", async () => {
    const who = await person()
    await submitted(who)
    const [record] = await eventually(async () => {
      const records = await service.usage(who)
      return records.length > 0 ? records : undefined
    })
    expect(record).toMatchObject({ cost: 0.25, success: true })
    expect(await service.balance(who)).toBe(left(0.25))
  })

  it("that fails costs nothing", async () => {
    const who = await person()
    const { request_id } = await submitted(who)
    await move(request_id, { status: "FAILED" })
    const { body } = await ask(who, "status", request_id)
    expect(body).toMatchObject({
      status: "COMPLETED",
      settled: true,
      cost_usd: 0,
      error: "the sandbox was configured to fail",
      error_type: "media_failed"
    })
    const result = await ask(who, "result", request_id)
    expect([result.status, result.body]).toMatchObject([200, { output: {}, error_type: "media_failed" }])
    expect(await service.balance(who)).toBe(6)
    expect(await service.usage(who)).toMatchObject([{ success: false, cost: 0, error_type: "media_failed" }])
  })

  it("is listed to its account, the newest first, with how it stood", async () => {
    const [who, other] = [await person(), await person()]
    const [first, second] = [await submitted(who), await submitted(who, { model: "sandbox-image", prompt: "a hill" })]
    await submitted(other)
    await move(first.request_id, { status: "COMPLETED" })
    await ask(who, "status", first.request_id)
    const list = (query = "") => service.call(`/v1/tools/media/jobs${query}`, { token: who.token })
    const { body, status } = await list()
    expect([status, body.total_records]).toEqual([200, 2])
    expect(body.records).toMatchObject([
      { request_id: second.request_id, type: "image", settled: false, provider: second.provider },
      { request_id: first.request_id, type: "video", settled: true, status: "COMPLETED", cost_usd: 0.25 }
    ])
    expect(body.records[0].created_at).toMatch(/^\d{4}-.*Z$/)
    expect(body.records[1]).not.toHaveProperty("output")
    const page = (await list("?page=2&per_page=1")).body
    expect([page.total_pages, page.records.map(({ request_id }: Listed) => request_id)]).toEqual([
      2,
      [first.request_id]
    ])
    expect((await service.call("/v1/tools/media/jobs")).status).toBe(401)
  })

  it("of another account is unknown", async () => {
    const [who, other] = [await person(), await person()]
    const { request_id } = await submitted(who)
    for (const id of [request_id, "med_none"]) {
      expect(refusal(await ask(other, "status", id))).toEqual([404, "media_not_found"])
      expect(refusal(await ask(other, "result", id))).toEqual([404, "media_not_found"])
      expect(refusal(await cancel(other, id))).toEqual([404, "media_not_found"])
    }
    expect((await service.call("/v1/tools/media/status", { token: who.token })).status).toBe(400)
  })

  it("happens once for an Idempotency-Key", async () => {
    const who = await person()
    const keyed = () =>
      service.call("/v1/tools/media/generate", {
        token: who.token,
        json: video(),
        headers: { "idempotency-key": "media-0123456789" }
      })
    const [first, again] = [await keyed(), await keyed()]
    expect(again.body).toEqual(first.body)
  })
})

describe("a cancel", () => {
  it("ends what still waits, for nothing, and may be said twice", async () => {
    const who = await person()
    const { request_id } = await submitted(who)
    for (let i = 0; i < 2; i++) {
      const { body, status } = await cancel(who, request_id)
      expect([status, body]).toMatchObject([200, { request_id, status: "CANCELLED", settled: true, cost_usd: 0 }])
    }
    expect(await service.balance(who)).toBe(6)
    expect(refusal(await ask(who, "result", request_id))).toEqual([409, "media_not_completed"])
    expect(await service.usage(who)).toMatchObject([{ success: false, cost: 0, error_type: "cancelled" }])
  })

  it("that comes too late for what runs is charged when it completes all the same", async () => {
    const who = await person()
    const { request_id } = await submitted(who)
    await move(request_id, { status: "IN_PROGRESS" })
    expect((await cancel(who, request_id)).body).toMatchObject({ status: "CANCELLED", settled: false, cost_usd: 0.25 })
    // What is set aside stays so.
    const dear = video({ model: "sandbox-video-open", duration: 60 })
    const answers = await Promise.all(Array.from({ length: 5 }, () => submit(who, dear)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(4)
    await move(request_id, { status: "COMPLETED" })
    expect((await ask(who, "result", request_id)).body).toMatchObject({ status: "COMPLETED" })
    expect((await ask(who, "status", request_id)).body).toMatchObject({ settled: true, cost_usd: 0.25 })
  })

  it("of what is completed is refused", async () => {
    const who = await person()
    const { request_id } = await submitted(who)
    await move(request_id, { status: "COMPLETED" })
    expect(refusal(await cancel(who, request_id))).toEqual([409, "media_already_completed"])
    await ask(who, "status", request_id)
    expect(refusal(await cancel(who, request_id))).toEqual([409, "media_already_completed"])
    expect(await service.balance(who)).toBe(left(0.25))
  })
})

describe("a vendor", () => {
  // Of its own: the service looks after the jobs of the others, and would meet the faults that are meant for these.
  let shared: Service
  beforeAll(async () => {
    shared = service
    service = await start()
  })
  afterAll(async () => {
    await service.discard()
    service = shared
  })

  it.each([
    [
      "rejects",
      { status: 422, body: { detail: [{ loc: ["body", "prompt"], msg: "not that" }] } },
      400,
      "media_rejected"
    ],
    ["is busy", { status: 429, headers: { "retry-after": "4" } }, 429, "media_rate_limited"],
    ["fails", { status: 500 }, 503, "media_unavailable"],
    ["wants another key", { status: 401 }, 503, "media_unavailable"],
    ["hangs up", { drop: true }, 503, "media_unavailable"],
    ["says nonsense", { status: 200, body: "<html>" }, 503, "media_unavailable"]
  ])("that %s at submit costs nothing", async (_, more, status, code) => {
    const who = await person()
    await fault("media", more)
    const answer = await submit(who)
    expect(refusal(answer)).toEqual([status, code])
    if (status === 429) expect(answer.headers.get("retry-after")).toBe("4")
    if (status === 400) expect(answer.body.details).toEqual({ field: "prompt", rule: "not that" })
    expect(await service.balance(who)).toBe(6)
    expect(await service.usage(who)).toMatchObject([{ success: false, cost: 0, error_type: code }])
  })

  it("that is silent while it is asked is asked again", async () => {
    const who = await person()
    const { request_id } = await submitted(who)
    await move(request_id, { status: "COMPLETED" })
    await fault("media", { status: 500, times: 1 })
    const first = (await ask(who, "status", request_id)).body
    expect(first.settled).toBe(false)
    const settled = await eventually(async () => {
      const { body } = await ask(who, "status", request_id)
      return body.settled ? body : undefined
    })
    expect(settled).toMatchObject({ cost_usd: 0.25 })
  })

  it("whose result never makes sense is not paid", async () => {
    const who = await person()
    const { request_id } = await submitted(who)
    await move(request_id, { status: "COMPLETED" })
    // Whatever is asked: for the status it means nothing, for the result it is no video.
    await service.control("/faults", { service: "media", body: { status: "COMPLETED", video: {} }, times: 40 })
    const settled = await eventually(async () => {
      const { body } = await ask(who, "status", request_id)
      return body.settled ? body : undefined
    })
    await service.control("/faults", undefined, "DELETE")
    expect(settled).toMatchObject({ cost_usd: 0, error_type: "media_failed" })
    expect(await service.balance(who)).toBe(6)
  })

  it("that takes longer than a day has failed", async () => {
    const who = await person()
    const { request_id } = await submitted(who)
    await move(request_id, { status: "IN_PROGRESS" })
    await service.control("/clock", { advance_ms: 25 * hours })
    const fresh = await service.signIn(who.email)
    expect((await ask(fresh, "status", request_id)).body).toMatchObject({
      status: "COMPLETED",
      settled: true,
      cost_usd: 0,
      error_type: "media_failed"
    })
  })
})

describe("a restart", () => {
  it("forgets no job: what it had set aside stays so, and it is charged once", async () => {
    const first = await start()
    const who = await first.signIn("restarted@example.com")
    const { body } = await first.call("/v1/tools/media/generate", { token: who.token, json: video() })
    await first.control("/media", { request_id: body.request_id, status: "IN_PROGRESS" })
    await first.end("SIGKILL")
    const second = await start({ folder: first.folder })
    try {
      expect((await ask(who, "status", body.request_id, second)).body).toMatchObject({
        status: "IN_PROGRESS",
        settled: false
      })
      expect(await second.balance(who)).toBe(6)
      await second.control("/media", { request_id: body.request_id, status: "COMPLETED" })
      const [record] = await eventually(async () => {
        const records = await second.usage(who)
        return records.length > 0 ? records : undefined
      })
      expect(record).toMatchObject({ cost: 0.25, success: true })
      expect(await second.usage(who)).toHaveLength(1)
    } finally {
      await second.discard()
    }
  })
})

describe("images by the direct route", () => {
  const generate = (who: Person, json: object, path = "/v1/images/generate") =>
    service.call(path, { token: who.token, json })

  it("are waited for, at 0.04 each", async () => {
    const who = await person()
    for (const path of ["/v1/images/generate", "/v1/tools/images/generate"]) {
      const { body, headers, status } = await generate(
        who,
        { prompt: "a fish", num_images: 2, image_size: "square" },
        path
      )
      expect(status).toBe(200)
      expect(body).toEqual({
        request_id: expect.any(String),
        status: "COMPLETED",
        provider: "sandbox",
        images: [0, 1].map(() => ({ url: expect.stringContaining("http"), width: 512, height: 512 }))
      })
      expect(headers.get("x-charge-usd")).toBe("0.08")
    }
    expect(await service.balance(who)).toBe(left(0.16))
    expect((await service.usage(who))[0]).toMatchObject({
      endpoint: "images/generate",
      units: 2,
      cost: 0.08,
      usage_type: "tool"
    })
  })

  it("are polled for where the caller would rather", async () => {
    const who = await person()
    const { body } = await generate(who, {
      prompt: "a fish",
      sync_mode: false,
      source_url: "data:image/png;base64,AAAA",
      strength: 0.9
    })
    expect(body).toEqual({ request_id: expect.any(String), status: "PROCESSING", provider: "sandbox" })
    const path = `/v1/images/status?request_id=${body.request_id}&provider=sandbox`
    const done = await eventually(async () => {
      const answer = await service.call(path, { token: who.token })
      return answer.body.status === "COMPLETED" ? answer.body : undefined
    })
    expect(done.images).toHaveLength(1)
    expect(await service.balance(who)).toBe(left(0.04))
    const other = await person()
    const stranger = await service.call(path, { token: other.token })
    expect(stranger.status).toBe(404)
    expect((await service.call("/v1/images/status", { token: who.token })).status).toBe(400)
    // The media route does not know them, nor the other way about.
    expect((await ask(who, "status", body.request_id)).status).toBe(404)
  })

  it("that fail say so, and cost nothing", async () => {
    const who = await person()
    const { body } = await generate(who, { prompt: "a fish", sync_mode: false })
    await move(body.request_id, { status: "FAILED" })
    const failed = await service.call(`/v1/images/status?request_id=${body.request_id}`, { token: who.token })
    expect(failed.body).toMatchObject({ status: "FAILED", error: expect.any(String) })
    expect(await service.balance(who)).toBe(6)
  })

  it.each([
    [{ prompt: "" }, "prompt"],
    [{}, "prompt"],
    [{ num_images: 0 }, "num_images"],
    [{ num_images: 1.5 }, "num_images"],
    [{ image_size: "round" }, "image_size"],
    [{ source_url: "ftp://x" }, "source_url"],
    [{ strength: 1.1 }, "strength"],
    [{ num_images: 11 }, "num_images"],
    [{ guidance_scale: "high" }, "guidance_scale"],
    [{ num_inference_steps: 1.5 }, "num_inference_steps"],
    [{ seed: 1.5 }, "seed"],
    [{ provider: "nobody" }, "provider"],
    [{ sync_mode: "yes" }, "sync_mode"]
  ])("refuse %j", async (more, field) => {
    const who = await person()
    const json = Object.keys(more).length === 0 ? {} : { prompt: "a fish", ...more }
    const answer = await generate(who, json)
    expect([answer.status, answer.body.code, answer.body.details.field]).toEqual([400, "invalid_request", field])
    expect(await service.usage(who)).toEqual([])
  })

  it("take what no specification forbids, and pass it on", async () => {
    const who = await person()
    const asked = { seed: -1, guidance_scale: -0.5, num_inference_steps: 0, prompt: "x".repeat(20_000) }
    await service.control("/calls", undefined, "DELETE")
    expect((await generate(who, { ...asked, sync_mode: false })).status).toBe(200)
    const [call] = await submissions("images")
    expect(call.body).toMatchObject(asked)
  })

  it.each([
    [{ status: 422, body: { detail: "not that" } }, 400, "upstream_rejected"],
    [{ status: 429 }, 429, "upstream_rate_limited"],
    [{ status: 500 }, 500, "upstream_error"],
    [{ drop: true }, 500, "upstream_error"],
    [{ status: 200, body: "<html>" }, 500, "upstream_error"]
  ])("answer the vendor's %j without a charge", async (more, status, code) => {
    const who = await person()
    await fault("images", more)
    expect(refusal(await generate(who, { prompt: "a fish" }))).toEqual([status, code])
    expect(await service.balance(who)).toBe(6)
    expect(await service.usage(who)).toMatchObject([{ success: false, cost: 0, error_type: code }])
  })

  it("have providers", async () => {
    const { token } = await person()
    expect((await service.call("/v1/images/providers", { token })).body).toEqual({ providers: ["sandbox"] })
    expect((await service.call("/v1/tools/images/providers", { token })).body.providers[0].id).toBe("sandbox")
  })
})
