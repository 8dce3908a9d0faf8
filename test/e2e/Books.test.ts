/**
 * The books cannot be written for a while: another process holds the lock on the file, for less and for longer than an answer
 * waits, or the disk is full. Whatever is under way meanwhile is charged as it was measured, nobody new is let in, and once the books
 * can be written everything works again by itself.
 */
import Sqlite from "better-sqlite3"
import { statSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { isPostgres } from "../support/database.ts"
import { command, freshFolder, start } from "../support/Service.ts"
import type { Answer, Person, Service } from "../support/Service.ts"
import * as Tables from "../support/tables.ts"

const sleep = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

const until = async (what: string, so: () => Promise<boolean> | boolean) => {
  for (let i = 0; i < 300; i++) {
    if (await so()) return
    await sleep(100)
  }
  throw new Error(`it never came to pass that ${what}`)
}

/** What a call of so many words costs: each is repeated. */
const costOf = (words: number) => Math.round(words * (150 + 600)) / 1e9

interface Scene {
  readonly service: Service
  readonly ada: Person
  readonly bob: Person
  /** An API key of ada's. */
  readonly key: string
  readonly file: string
}

const begin = async (options: Parameters<typeof start>[0] = {}): Promise<Scene> => {
  const folder = freshFolder()
  await Tables.boundLocks(folder)
  const service = await start({ ...options, folder, env: { LOG_LEVEL: "none" } })
  const [ada, bob] = [await service.signIn("ada@example.com"), await service.signIn("bob@example.com")]
  await service.control("/credit", { tenant_id: ada.tenant_id, amount: 1_000, source: "purchase" })
  return { service, ada, bob, key: await service.key(ada), file: `${service.folder}/tollgate.db` }
}

const chat = ({ ada, service }: Scene, words: number, more: object = {}, key?: string): Promise<Answer> =>
  service.call("/v1/chat/completions", {
    token: ada.token,
    json: {
      model: "sandbox-small",
      messages: [{ role: "user", content: Array.from({ length: words }, () => "w").join(" ") }],
      ...more
    },
    ...(key !== undefined && { headers: { "idempotency-key": key } })
  })

/** The text of a stream, and whether its connection was cut. */
const stream = async ({ ada, service }: Scene, words: number): Promise<{ text: string; cut: boolean }> => {
  const response = await fetch(`${service.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${ada.token}` },
    body: JSON.stringify({
      model: "sandbox-small",
      stream: true,
      messages: [{ role: "user", content: Array.from({ length: words }, () => "w").join(" ") }]
    })
  })
  let text = ""
  try {
    for await (const chunk of response.body! as unknown as AsyncIterable<Uint8Array>)
      text += Buffer.from(chunk).toString("utf8")
    return { text, cut: false }
  } catch {
    return { text, cut: true }
  }
}

/** Makes the call meet the fault, and goes on when the vendor has it. */
const meeting = async <A>(
  { service }: Scene,
  fault: object,
  call: () => Promise<A>
): Promise<{ answer: Promise<A> }> => {
  const heard = async () => ((await service.control("/calls?service=chat&limit=1000")) as ReadonlyArray<unknown>).length
  const before = await heard()
  await service.control("/faults", { service: "chat", times: 1, ...fault })
  const answer = call()
  await until("the vendor has the call", async () => (await heard()) > before)
  return { answer }
}

const unavailable = ({ body, status }: Answer) => expect([status, body.code]).toEqual([503, "books_unavailable"])

const transfer = ({ ada, service }: Scene, to: string, key: string) =>
  service.call(`/v1/tenants/${ada.tenant_id}/billing/transfers`, {
    token: ada.token,
    headers: { "idempotency-key": key },
    json: { amount: 1, recipient_email: to, kind: "gift" }
  })

const accept = ({ bob, service }: Scene, id: string) =>
  service.call(`/v1/transfers/${id}/accept`, { token: bob.token, method: "POST" })

const video = ({ ada, service }: Scene, key: string) =>
  service.call("/v1/tools/media/generate", {
    token: ada.token,
    headers: { "idempotency-key": key },
    json: { model: "sandbox-video", prompt: key }
  })

const note = ({ key, service }: Scene, subject: string) =>
  service.call("/v1/email/self/send", { token: key, json: { subject, body: "to myself" } })

const letters = async ({ service }: Scene, so: (letter: { to: string; subject: string }) => boolean) =>
  ((await service.control("/mail")) as ReadonlyArray<{ to: string; subject: string }>).filter(so).length

const count = async ({ service }: Scene, text: string) => (await Tables.ask(service.folder, text)).length

const ready = async ({ service }: Scene) => (await service.call("/readyz")).status === 200

/** What must be once the books can be written again, however it was meanwhile. */
const whole = async (scene: Scene, charged: ReadonlyArray<number>, job: string) => {
  const { ada, service } = scene
  await until("the service is ready", () => ready(scene))
  await until(
    "nothing is reserved",
    async () => (await count(scene, "SELECT 1 FROM tollgate_ledger_reservations")) === 0
  )
  const records = (await service.usage(ada)).filter(({ endpoint }) => endpoint === "chat/completions")
  for (const words of charged) {
    expect(
      records
        .filter(({ prompt_tokens }) => prompt_tokens === words)
        .map(({ cost, success, total_tokens, usage_source }) => ({ cost, success, total_tokens, usage_source }))
    ).toEqual([{ cost: costOf(words), success: true, total_tokens: 2 * words, usage_source: undefined }])
  }
  const look = () => service.call(`/v1/tools/media/status?request_id=${job}`, { token: ada.token })
  await until("the job is settled", async () => (await look()).body.settled === true)
  const status = await look()
  expect(status.body).toMatchObject({ status: "COMPLETED", settled: true, cost_usd: 0.25 })
  expect((await service.usage(ada)).filter(({ cost }) => cost === 0.25)).toHaveLength(1)

  // Every loop turns: letters leave, a transfer ends at its time.
  expect((await note(scene, "after")).status).toBe(200)
  await until("a letter leaves", async () => (await letters(scene, ({ subject }) => subject === "after")) === 1)
  const due = (await transfer(scene, "due@example.com", "transfer-that-is-due")).body.result
  await until("the invitation leaves", async () => (await letters(scene, ({ to }) => to === "due@example.com")) === 1)
  await service.control("/clock", { advance_ms: 31 * 86_400_000 })
  await until(
    "the transfer ends at its time",
    async () =>
      (await count(scene, `SELECT 1 FROM tollgate_transfers WHERE id = '${due.id}' AND status = 'expired'`)) === 1
  )
  const { body: metrics } = await service.call("/metrics")
  const loops = [...(metrics as string).matchAll(/^tollgate_loop_troubled\{loop="([^"]+)"\} (\d)$/gm)]
  expect(loops.map(([, loop]) => loop)).toEqual(
    expect.arrayContaining(["outbox", "transfers", "media jobs", "autoreload", "idempotency keys", "signing keys"])
  )
  expect(loops.filter(([, , troubled]) => troubled !== "0")).toEqual([])
  expect(metrics).toContain("\ntollgate_unsettled_calls 0\n")
  expect(await ready(scene)).toBe(true)

  const verified = await command(["verify"], { DATA_DIR: service.folder })
  expect(verified.stdout + verified.stderr).toContain("every invariant of the books holds")
}

describe.concurrent("another process that holds the lock", () => {
  it.each([
    { hold: 9_000, inTime: true },
    { hold: 16_000, inTime: false }
  ])(
    "for $hold ms: what is under way is charged as it was measured, and all goes on after it",
    async ({ hold, inTime }) => {
      const scene = await begin()
      const { ada, bob, service } = scene
      // Each call is known by the number of its words. Early ones end well before an answer would wait no longer; late ones wait for
      // less than that; the last end when the lock is gone.
      const [early, late, last] = [3_000, hold - 5_000, hold + 2_000]
      const pending = (await transfer(scene, bob.email, "transfer-before-the-lock")).body.result.id as string
      const job = (await video(scene, "video-before-the-lock")).body.request_id as string
      await service.control("/media", { request_id: job, status: "IN_PROGRESS" })
      const begun = performance.now()
      const streams = [
        await meeting(scene, { chunk_delay_ms: early / 5 }, () => stream(scene, 5)),
        await meeting(scene, { chunk_delay_ms: late / 7 }, () => stream(scene, 7)),
        await meeting(scene, { chunk_delay_ms: last / 8 }, () => stream(scene, 8))
      ]
      const answers = [
        await meeting(scene, { delay_ms: early }, () => chat(scene, 11)),
        await meeting(scene, { delay_ms: early }, () => chat(scene, 12, {}, "whole-answer-early")),
        await meeting(scene, { delay_ms: late }, () => chat(scene, 13)),
        await meeting(scene, { delay_ms: last }, () => chat(scene, 14))
      ]
      await service.control("/faults", { service: "mail", delay_ms: 2_000, times: 1 })
      await transfer(scene, "stranger@example.com", "transfer-with-a-letter")

      const release = await Tables.hold(service.folder)
      // On a busy machine the lock comes late, and who waits how long is another matter. What is charged is not.
      const prompt = performance.now() - begun < 1_500
      const released = sleep(hold).then(release)

      // Nobody new is let in, whatever they want; who only looks is answered.
      const heard = async () =>
        ((await service.control("/calls?service=chat&limit=1000")) as ReadonlyArray<unknown>).length
      const before = await heard()
      unavailable(await chat(scene, 21, {}, "refused-in-the-lock"))
      unavailable(await transfer(scene, bob.email, "transfer-in-the-lock"))
      unavailable(await accept(scene, pending))
      unavailable(await video(scene, "video-in-the-lock-012"))
      unavailable(await note(scene, "in the lock"))
      expect(await heard()).toBe(before)
      expect(await service.balance(ada)).toBeGreaterThan(900)
      expect((await service.call("/readyz")).body).toMatchObject({
        code: "not_ready",
        details: { database: "the database is not writable" }
      })
      await service.control("/media", { request_id: job, status: "COMPLETED" })

      await released
      const [early1, late1, last1] = await Promise.all(streams.map(({ answer }) => answer))
      const [early2, keyed, late2, last2] = await Promise.all(answers.map(({ answer }) => answer))
      if (prompt) {
        expect([early1!.cut, early1!.text.includes("[DONE]")]).toEqual(inTime ? [false, true] : [true, false])
        for (const done of [late1!, last1!]) expect([done.cut, done.text.includes("[DONE]")]).toEqual([false, true])
        for (const answer of [early2!, keyed!]) {
          if (inTime) {
            expect([answer.status, answer.headers.get("x-charge-usd")]).toMatchObject([200, expect.any(String)])
          } else unavailable(answer)
        }
        for (const answer of [late2!, last2!]) expect(answer.status).toBe(200)
      }

      await until("the service is ready", () => ready(scene))
      // Keys: the one that was refused is as good as new, the one that was answered too late has its answer.
      expect((await chat(scene, 21, {}, "refused-in-the-lock")).headers.get("idempotency-replayed")).toBeNull()
      await until("the answer is kept", async () => {
        const again = await chat(scene, 12, {}, "whole-answer-early")
        return again.status === 200 && again.headers.get("idempotency-replayed") === "true"
      })
      expect((await transfer(scene, bob.email, "transfer-in-the-lock")).status).toBe(201)
      expect((await accept(scene, pending)).body.result.status).toBe("accepted")
      await until(
        "the letter is accounted for",
        async () =>
          (await count(scene, "SELECT 1 FROM tollgate_mail_outbox WHERE status IN ('waiting', 'sending')")) === 0
      )
      expect(await letters(scene, ({ to }) => to === "stranger@example.com")).toBe(1)
      await until("the job is settled", async () => {
        const { body } = await service.call(`/v1/tools/media/status?request_id=${job}`, { token: ada.token })
        return body.settled
      })
      await whole(scene, [5, 7, 8, 11, 12, 13, 14, 21], job)
      await service.discard()
    },
    100_000
  )
})

// A server's disk is its own, and cannot be bounded for one database.
describe.skipIf(isPostgres).concurrent("a disk that is full", () => {
  it("refuses new calls, keeps what is under way, and needs no restart when there is room", async () => {
    // Room for the start and some calls: the log of the database may not grow beyond it.
    const room = 2_000 * 1024
    const scene = await begin({ file_bytes_max: room })
    const { service } = scene
    const used = () => statSync(`${scene.file}-wal`).size
    let calls = 0
    /** Calls until the log has so many bytes, or one of them is not answered. */
    const fill = async (bytes: number): Promise<Answer | undefined> => {
      while (used() < bytes) {
        const made = await Promise.all(Array.from({ length: 10 }, () => chat(scene, 100 + ++calls)))
        const refused = made.find(({ status }) => status !== 200)
        if (refused !== undefined) return refused
        expect(calls).toBeLessThan(5_000)
      }
      return undefined
    }
    expect(await fill(room - 400 * 1024)).toBeUndefined()
    const job = (await video(scene, "video-before-the-end-")).body.request_id as string
    await service.control("/media", { request_id: job, status: "IN_PROGRESS" })
    const streams = [
      await meeting(scene, { chunk_delay_ms: 1_200 }, () => stream(scene, 5)),
      await meeting(scene, { chunk_delay_ms: 1_000 }, () => stream(scene, 7))
    ]
    const answers = [
      await meeting(scene, { delay_ms: 6_000 }, () => chat(scene, 11)),
      await meeting(scene, { delay_ms: 6_000 }, () => chat(scene, 12, {}, "whole-answer-12-keyed"))
    ]
    const began = performance.now()
    unavailable((await fill(Number.POSITIVE_INFINITY))!)
    const keyed = Array.from({ length: 10 }, (_, i) => `refused-on-full-disk-${i}`)
    for (const key of keyed) unavailable(await chat(scene, 31, {}, key))
    // As long as there is room for a page, its own small write goes on.
    await until("the service is not ready", async () => !(await ready(scene)))
    expect(await service.balance(scene.ada)).toBeGreaterThan(900)
    await service.control("/media", { request_id: job, status: "COMPLETED" })
    await until("all that was under way waits for the books", async () => {
      const { body } = await service.call("/metrics")
      return Number(/^tollgate_unsettled_calls (\d+)$/m.exec(body as string)![1]) >= 4
    })
    expect(used()).toBeLessThanOrEqual(room)

    // What the log holds is folded back by somebody else: then there is room again.
    const other = new Sqlite(scene.file)
    await until("there is room", () => {
      const [{ busy }] = other.pragma("wal_checkpoint(TRUNCATE)") as [{ busy: number }]
      return busy === 0
    })
    other.close()
    // Who waited for longer than ten seconds was told that the books are away; on a busy machine it may come to that.
    const inTime = performance.now() - began < 9_000
    const ends = await Promise.all(streams.map(({ answer }) => answer))
    const told = await Promise.all(answers.map(({ answer }) => answer))
    if (inTime) {
      expect(ends.map(({ text }) => text.includes("[DONE]"))).toEqual([true, true])
      expect(told.map(({ status }) => status)).toEqual([200, 200])
    } else for (const answer of told) if (answer.status !== 200) unavailable(answer)
    // A key that was refused is given back as soon as that can be written.
    for (const [i, key] of keyed.entries()) {
      await until("the key works", async () => (await chat(scene, i === 0 ? 31 : 32 + i, {}, key)).status === 200)
    }
    await until("the answer is kept", async () => {
      const again = await chat(scene, 12, {}, "whole-answer-12-keyed")
      return again.status === 200 && again.headers.get("idempotency-replayed") === "true"
    })
    await until("the job is settled", async () => {
      const { body } = await service.call(`/v1/tools/media/status?request_id=${job}`, { token: scene.ada.token })
      return body.settled
    })
    await whole(scene, [5, 7, 11, 12, 31], job)
    await service.discard()
  })
})
