/**
 * Idempotency-Keys of calls that a killed process left, at every point where it may die: whoever sends the same request with the
 * same key after the restart is answered by the call that there was, and no vendor is asked a second time.
 */
import { existsSync, readFileSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { command, start } from "../support/Service.ts"
import type { Answer, Person, Service } from "../support/Service.ts"
import * as Tables from "../support/tables.ts"

let service: Service
let who: Person
beforeAll(async () => {
  service = await start()
  who = await service.signIn("keys@example.com")
  await service.control("/credit", { tenant_id: who.tenant_id, amount: 1_000, source: "purchase" })
})
afterAll(() => service.discard())

const restart = async () => {
  await service.end("SIGKILL")
  await Tables.lapse(service.folder)
  service = await start({ folder: service.folder })
}

/** Changes the books of a service that is stopped to what a process would have left that was killed earlier. */
const killedWith = async (change: string) => {
  await service.end("SIGKILL")
  await Tables.lapse(service.folder)
  await Tables.ask(service.folder, change)
  service = await start({ folder: service.folder })
}

const send = (path: string, key: string, json: object, on = service): Promise<Answer> =>
  on.call(path, { token: who.token, json, headers: { "idempotency-key": key } })
const video = (key: string, more: object = {}) =>
  send("/v1/tools/media/generate", key, { model: "sandbox-video", prompt: key, ...more })
const image = (key: string, more: object = {}) => send("/v1/images/generate", key, { prompt: key, ...more })
const chat = (key: string) =>
  send("/v1/chat/completions", key, { model: "sandbox-small", messages: [{ role: "user", content: key }] })
const status = async (id: string) =>
  (await service.call(`/v1/tools/media/status?request_id=${id}`, { token: who.token })).body

/** How many jobs a vendor was ever given for this prompt. */
const given = (vendor: "media" | "images", prompt: string): number => {
  const file = `${service.folder}/sandbox-${vendor}.json`
  if (!existsSync(file)) return 0
  const jobs = JSON.parse(readFileSync(file, "utf8")) as ReadonlyArray<{ input: { prompt: string } }>
  return jobs.filter(({ input }) => input.prompt === prompt).length
}

const heard = async (name: string): Promise<number> => (await service.control(`/calls?service=${name}`)).length

const until = async (so: () => Promise<boolean> | boolean) => {
  for (let i = 0; i < 400 && !(await so()); i++) await new Promise((resolve) => setTimeout(resolve, 10))
  expect(await so()).toBe(true)
}

/** A request that the kill cuts off. */
const cutOff = (request: Promise<Answer>) => request.catch(() => undefined)

const unanswered = "status = NULL, headers = NULL, body = NULL, answered_at = NULL"

describe("a process that was killed", () => {
  it("while the vendor took a job: the job has failed, for nothing, and is not submitted again", async () => {
    await service.control("/faults", { service: "media", delay_ms: 20_000, times: 1 })
    const cut = cutOff(video("taken-by-the-vendor-1"))
    await until(() => given("media", "taken-by-the-vendor-1") === 1)
    await restart()
    await cut
    const { body, status: code } = await video("taken-by-the-vendor-1")
    expect([code, body]).toMatchObject([200, { request_id: expect.any(String), cost_usd: 0.25, units: 5 }])
    expect(await status(body.request_id)).toMatchObject({
      status: "COMPLETED",
      settled: true,
      cost_usd: 0,
      error_type: "media_failed"
    })
    const again = await video("taken-by-the-vendor-1")
    expect([again.body, again.headers.get("idempotency-replayed")]).toEqual([body, "true"])
    expect((await video("taken-by-the-vendor-1", { duration: 1 })).body.code).toBe("idempotency_key_reused")
    expect(given("media", "taken-by-the-vendor-1")).toBe(1)
  })

  it("before its answer was kept, while the job runs: the answer is the job's, which is charged once", async () => {
    const { body } = await video("running-job-0123456")
    await service.control("/media", { request_id: body.request_id, status: "IN_PROGRESS" })
    await killedWith(`UPDATE tollgate_idempotency_keys SET ${unanswered}`)
    const answers = await Promise.all(Array.from({ length: 5 }, () => video("running-job-0123456")))
    // Those that come while one is asked for it are in flight.
    expect(answers.map((answer) => answer.status).filter((code) => code !== 409)).toContain(200)
    const again = await video("running-job-0123456")
    expect(again.body).toEqual({ ...body, status: "IN_PROGRESS" })
    await service.control("/media", { request_id: body.request_id, status: "COMPLETED" })
    await until(async () => (await status(body.request_id)).settled)
    expect((await video("running-job-0123456")).body).toEqual(again.body)
    expect(given("media", "running-job-0123456")).toBe(1)
    expect((await service.usage(who)).filter(({ cost }) => cost === 0.25)).toHaveLength(1)
  })

  it("before its answer was kept, after the job was settled", async () => {
    const { body } = await video("settled-job-0123456")
    await service.control("/media", { request_id: body.request_id, status: "COMPLETED" })
    expect((await status(body.request_id)).settled).toBe(true)
    await killedWith(`UPDATE tollgate_idempotency_keys SET ${unanswered}`)
    expect((await video("settled-job-0123456")).body).toEqual({ ...body, status: "COMPLETED" })
    expect(given("media", "settled-job-0123456")).toBe(1)
  })

  it("while images were waited for: they are waited for again", async () => {
    const cut = cutOff(image("waited-image-012345"))
    await until(async () =>
      (await service.control("/calls?service=images")).some(({ path }: { path: string }) => path.endsWith("/status"))
    )
    await restart()
    await cut
    const answer = await image("waited-image-012345")
    expect([answer.status, answer.body, answer.headers.get("x-charge-usd")]).toMatchObject([
      200,
      { status: "COMPLETED", images: [{ width: 1024 }] },
      "0.04"
    ])
    expect((await image("waited-image-012345")).body).toEqual(answer.body)
    expect(given("images", "waited-image-012345")).toBe(1)
    expect((await service.usage(who)).filter(({ cost }) => cost === 0.04)).toHaveLength(1)
  })

  it("while a model answered: its answer is lost, and it is not asked again", async () => {
    await service.control("/faults", { service: "chat", delay_ms: 20_000, times: 1 })
    const cut = cutOff(chat("interrupted-chat-01"))
    await until(async () => (await heard("chat")) === 1)
    await restart()
    await cut
    for (let i = 0; i < 2; i++) {
      const { body, status: code } = await chat("interrupted-chat-01")
      expect([code, body.code]).toEqual([409, "idempotency_answer_lost"])
      expect(body.details).toEqual({ usage_id: (await service.usage(who))[0]!.id })
    }
    expect(await heard("chat")).toBe(0)
    expect((await service.usage(who))[0]).toMatchObject({
      endpoint: "chat/completions",
      error_type: "interrupted",
      cost: 0
    })
  })

  it("before its call was admitted: the key is as good as new, for another request too", async () => {
    await killedWith(
      `INSERT INTO tollgate_idempotency_keys (tenant_id, account_id, holder, key, request_hash, run, created_at)
        VALUES ('${who.tenant_id}', '${who.account_id}', 'any', 'never-admitted-0123', 'x', 'req_x', 1)`
    )
    expect((await chat("never-admitted-0123")).status).toBe(200)
  })
})

describe("a key that is old", () => {
  it("is forgotten, unless its call is open", async () => {
    const { body } = await video("old-open-job-012345")
    await service.control("/media", { request_id: body.request_id, status: "IN_PROGRESS" })
    expect((await chat("old-chat-0123456789")).status).toBe(200)
    await killedWith("UPDATE tollgate_idempotency_keys SET created_at = 1")
    const keys = async () =>
      (await Tables.ask<{ key: string }>(service.folder, "SELECT key FROM tollgate_idempotency_keys")).map(
        ({ key }) => key
      )
    await until(async () => (await keys()).length === 1)
    expect(await keys()).toEqual(["old-open-job-012345"])
    expect((await video("old-open-job-012345")).body).toEqual(body)
    await service.control("/media", { request_id: body.request_id, status: "COMPLETED" })
    // A look of the service's own would meet the next test's fault.
    await until(async () => (await status(body.request_id)).settled)
  })
})

it("books that cannot be written for a while leave no key in flight, and no call is made twice", async () => {
  const unavailable = ({ body, status: code }: Answer) => expect([code, body.code]).toEqual([503, "books_unavailable"])
  await service.control("/faults", { service: "media", delay_ms: 4_000, times: 1 })
  const [job, called] = [video("locked-video-012345"), () => chat("locked-chat-0123456")]
  await until(() => given("media", "locked-video-012345") === 1)
  await service.control("/faults", { service: "chat", delay_ms: 4_000, times: 1 })
  const before = await heard("chat")
  const answer = called()
  await until(async () => (await heard("chat")) === before + 1)
  const release = await Tables.hold(service.folder)
  unavailable(await chat("locked-refused-0123"))
  // Both were taken by their providers, and both wait for the books for as long as an answer does.
  unavailable(await job)
  unavailable(await answer)
  // They are still to be written: neither is done again, though the first has gone.
  unavailable(await chat("locked-refused-0123"))
  await release()

  await until(async () => (await chat("locked-refused-0123")).status === 200)
  await until(async () => (await video("locked-video-012345")).status === 200)
  const { body } = await video("locked-video-012345")
  expect(body).toMatchObject({ request_id: expect.any(String), units: 5 })
  // The answer that came too late for who asked first is there for who asks again.
  await until(async () => (await called()).status === 200)
  const kept = await called()
  expect(kept.headers.get("idempotency-replayed")).toBe("true")
  expect(kept.body.choices[0].message.content).toBe("locked-chat-0123456")
  expect(given("media", "locked-video-012345")).toBe(1)
  // The refused one, and the one that came late.
  expect(await heard("chat")).toBe(before + 2)
  const charged = (await service.usage(who)).filter(({ cost, endpoint }) => endpoint.startsWith("chat/") && cost > 0)
  expect(charged.length).toBeGreaterThanOrEqual(2)
  await service.control("/media", { request_id: body.request_id, status: "COMPLETED" })
  await until(async () => (await status(body.request_id)).settled)
})

it("killed at any moment, each key has one job at most, and no more than one charge", async () => {
  const names: Array<string> = []
  const ask = (key: string) => (key.startsWith("any-image") ? image(key) : video(key))
  for (const after of [5, 60, 400]) {
    const round = Array.from({ length: 8 }, (_, i) => `any-${i % 2 === 0 ? "image" : "video"}-${after}-012345-${i}`)
    names.push(...round)
    const cut = round.map((key) => cutOff(ask(key)))
    await new Promise((resolve) => setTimeout(resolve, after))
    await restart()
    await Promise.all(cut)
  }
  const settled = async (key: string): Promise<void> => {
    let answer = await ask(key)
    for (let i = 0; i < 200 && answer.status === 409; i++) {
      expect([key, answer.body.code]).toEqual([key, "idempotency_in_flight"])
      await new Promise((resolve) => setTimeout(resolve, 50))
      answer = await ask(key)
    }
    expect([key, answer.status, typeof answer.body.request_id]).toEqual([key, 200, "string"])
    if (key.startsWith("any-video")) await until(async () => (await status(answer.body.request_id)).settled)
  }
  await Promise.all(names.map(settled))
  for (const key of names) {
    const jobs = given(key.startsWith("any-image") ? "images" : "media", key)
    // None where the process ended before the vendor was asked.
    expect([key, jobs === 0 || jobs === 1]).toEqual([key, true])
  }
  const calls = (await service.usage(who)).length
  await Promise.all(names.map(settled))
  expect(await service.usage(who)).toHaveLength(calls)
  await service.end()
  const verified = await command(["verify"], { DATA_DIR: service.folder })
  expect(verified.stdout + verified.stderr).toContain("every invariant of the books holds")
})
