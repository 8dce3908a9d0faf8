/**
 * Several processes answer the requests of one deployment on SQLite (`serve --workers`). Whatever one of them learns holds for all, and whichever of
 * them is killed, every acknowledged call is in the books once.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer, request as requestOf } from "node:http"
import type { ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest"
import { isPostgres } from "../support/database.ts"
import { open } from "../support/load.ts"
import { command, environmentOf, freshFolder, root, start } from "../support/Service.ts"
import type { Service } from "../support/Service.ts"
import * as Tables from "../support/tables.ts"

const rounds = Number(process.env["CRASH_ROUNDS"] ?? 3)

/** The number of prompts that the vendor has received, by prompt. */
const asked = new Map<string, number>()
/** Streams whose end is held back. */
const streams: Array<ServerResponse> = []

const piece = (content: string) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`

/** A vendor that reports as many prompt tokens as the prompt has words. */
const vendor = createServer((request, response) => {
  let text = ""
  request.setEncoding("utf8").on("data", (more: string) => (text += more))
  request.on("end", () => {
    const { messages, stream } = JSON.parse(text) as {
      messages: ReadonlyArray<{ content: string }>
      stream?: boolean
    }
    const prompt = messages[0]!.content
    asked.set(prompt, (asked.get(prompt) ?? 0) + 1)
    if (stream === true) {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write(piece("Hel"))
      streams.push(response)
      return
    }
    const answer = () => {
      const usage = { prompt_tokens: prompt.split(" ").length, completion_tokens: 1 }
      const message = { role: "assistant", content: "Hello" }
      response.writeHead(200, { "content-type": "application/json" })
      response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }], usage }))
    }
    if (prompt.startsWith("slowly")) setTimeout(answer, 500)
    else answer()
  })
})

const finishStream = (): void => {
  const stream = streams.shift()!
  const usage = { prompt_tokens: 1, completion_tokens: 1 }
  stream.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage })}\n\n`)
  stream.end("data: [DONE]\n\n")
}

const write = (path: string, usdPerMillion: number, others: object = {}): void => {
  const base_url = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}/v1`
  const model = {
    id: "small",
    context_length: 8000,
    max_output_tokens: 10,
    price: { prompt_usd_per_million: usdPerMillion, completion_usd_per_million: 0 },
    upstreams: [{ upstream: "main" }]
  }
  writeFileSync(path, JSON.stringify({ upstreams: { main: { base_url } }, models: [model], ...others }))
}

interface Deployed {
  readonly service: Service
  readonly path: string
  readonly operator: string
  readonly key: string
  readonly tenant: string
}

const running: Array<Service> = []

const serve = async (folder: string, path: string, workers: number): Promise<Service> => {
  const args = ["--config", path, "--workers", String(workers)]
  const service = await start({ folder, args, env: { LOG_LEVEL: "info" } })
  running.push(service)
  return service
}

const begin = async (workers = 2, others: object = {}): Promise<Deployed> => {
  const folder = freshFolder()
  const path = join(folder, "tollgate.json")
  write(path, 1, others)
  const service = await serve(folder, path, workers)
  const env = { DATA_DIR: folder }
  const printed = async (...args: ReadonlyArray<string>) => JSON.parse((await command(args, env)).stdout)
  const scopes = "read,people,tenants,keys,grants,operate"
  const operator = (await printed("operator", "keys", "create", "--scopes", scopes, "--json")).management_key
  const tenant = (await printed("people", "create", "--email", "ada@example.com", "--json")).tenant_id
  await command(["grant", "--tenant", tenant, "--amount", "10"], env)
  const key = (await printed("key", "create", "--tenant", tenant, "--name", "test", "--json")).api_key
  return { service, path, operator, key, tenant }
}

interface Reply {
  readonly status: number
  readonly text: string
}

/** Sends a request over a connection of its own. The owner gives each connection to the next worker. */
const fresh = (
  { url }: Service,
  path: string,
  { headers = {}, json, token }: { headers?: Record<string, string>; json?: object; token?: string } = {}
): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const request = requestOf(
      url + path,
      {
        agent: false,
        method: json === undefined ? "GET" : "POST",
        headers: {
          ...(json !== undefined && { "content-type": "application/json" }),
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...headers
        }
      },
      (response) => {
        let text = ""
        response.setEncoding("utf8").on("data", (more: string) => (text += more))
        response.once("end", () => resolve({ status: response.statusCode!, text }))
        response.once("error", reject)
      }
    )
    request.once("error", reject)
    request.end(json === undefined ? undefined : JSON.stringify(json))
  })

const chat = ({ key, service }: Deployed, content: string, extra: object = {}, headers: Record<string, string> = {}) =>
  fresh(service, "/v1/chat/completions", {
    token: key,
    json: { model: "small", messages: [{ role: "user", content }], ...extra },
    headers
  })

/** The pids of the workers. */
const workersOf = ({ process: { pid } }: Service): ReadonlyArray<number> =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(/\s+/).filter(Boolean).map(Number)

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const textOf = ({ stderr, stdout }: Service): string => [...stdout, ...stderr].join("")

/** Calls from sixteen callers until `isOver`. Each prompt has a length of its own, which identifies its record. */
class Calls {
  private sent = 0
  readonly acknowledged = new Set<number>()
  readonly refusals = new Map<number, number>()
  cutOff = 0

  async run(at: Deployed, isOver: () => boolean): Promise<void> {
    const again = async () => {
      while (!isOver()) {
        const words = ++this.sent
        const reply = await chat(at, Array.from({ length: words }, () => "w").join(" ")).catch(() => undefined)
        if (reply === undefined) this.cutOff++
        else if (reply.status === 200) this.acknowledged.add(words)
        else this.refusals.set(reply.status, (this.refusals.get(reply.status) ?? 0) + 1)
        if (reply?.status !== 200) await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
    await Promise.all(Array.from({ length: 16 }, again))
  }

  /** Every acknowledged call has one record, no call has two, and nothing is reserved. */
  async compare(folder: string): Promise<void> {
    const ask = <A>(text: string) => Tables.ask<A>(folder, text)
    await expect.poll(() => open(ask), { timeout: 90_000, interval: 250 }).toEqual({ calls: 0, amount: 0 })
    const records = await ask<{ words: number; times: number }>(
      "SELECT prompt_tokens AS words, count(*) AS times FROM tollgate_usage_records WHERE success = 1 GROUP BY 1"
    )
    expect(records.filter(({ times }) => times !== 1)).toEqual([])
    const there = new Set(records.map(({ words }) => words))
    expect([...this.acknowledged].filter((words) => !there.has(words))).toEqual([])
  }
}

const verify = async (folder: string): Promise<void> => {
  const verified = await command(["verify"], { DATA_DIR: folder })
  expect(verified.stdout + verified.stderr).toContain("every invariant of the books holds")
  expect(verified.code).toBe(0)
}

beforeAll(async () => {
  vendor.listen(0, "127.0.0.1")
  await once(vendor, "listening")
})

afterEach(async () => {
  while (streams.length > 0) finishStream()
  for (const service of running.splice(0).toReversed()) await service.discard()
})

afterAll(() => {
  vendor.close()
  vendor.closeAllConnections()
})

describe.skipIf(isPostgres)("several workers", () => {
  it("answer together, and what one of them changes holds at once for the others", async () => {
    const others = { rate_limits: { client_token: 5 } }
    const at = await begin(2, others)
    const { key, operator, path, service } = at
    expect(workersOf(service)).toHaveLength(2)
    for (let i = 0; i < 8; i++) expect((await chat(at, "Hi there")).status).toBe(200)

    // Every scrape shows all processes. Each worker has counted half of the calls.
    const { text } = await fresh(service, "/metrics")
    for (const name of ["worker 1", "worker 2"])
      expect(text).toContain(
        `tollgate_requests_total{route="POST /v1/chat/completions",status="200",process="${name}"} 4`
      )
    expect(text).toContain('tollgate_loop_troubled{loop="log",process="owner"} 0')
    expect(text.match(/# TYPE tollgate_requests_total /g)).toHaveLength(1)
    expect(text).toMatch(/^tollgate_open_calls 0$/m)
    expect((await fresh(service, "/readyz")).status).toBe(200)

    // The limit of an address counts at one place.
    // Limits count per clock minute.
    while (Date.now() % 60_000 > 55_000) await new Promise((resolve) => setTimeout(resolve, 500))
    const json = { service_client_id: "unknown" }
    const statuses: Array<number> = []
    for (let i = 0; i < 8; i++) statuses.push((await fresh(service, "/v1/web/client-token", { json })).status)
    expect(statuses.slice(0, 5)).not.toContain(429)
    expect(statuses.slice(5)).toEqual([429, 429, 429])

    // One reload, of all processes.
    write(path, 2, others)
    const reloaded = await fresh(service, "/v1/operator/reload", { token: operator, json: {} })
    expect([reloaded.status, JSON.parse(reloaded.text).result.changed.includes("models")]).toEqual([200, true])
    for (let i = 0; i < 4; i++) expect((await chat(at, "Hi you there")).status).toBe(200)
    const costs = await Tables.ask<{ cost: string; times: number }>(
      service.folder,
      "SELECT cost, count(*) AS times FROM tollgate_usage_records GROUP BY 1 ORDER BY 1"
    )
    expect(costs.map((row) => [Number(row.cost), row.times])).toEqual([
      [2_000, 8],
      [6_000, 4]
    ])
    writeFileSync(path, "{")
    const refused = await fresh(service, "/v1/operator/reload", { token: operator, json: {} })
    expect([refused.status, refused.text.includes("is not JSON")]).toEqual([422, true])
    service.process.kill("SIGHUP")
    await vi.waitFor(() => expect(textOf(service).match(/was not reloaded/g)).toHaveLength(2), { timeout: 60_000 })
    write(path, 3, others)
    service.process.kill("SIGHUP")
    await expect
      .poll(() => textOf(service).match(/the configuration was reloaded: models/g)?.length, { timeout: 60_000 })
      .toBe(6)

    // A request with an Idempotency-Key runs once, on any worker.
    const once_ = { "idempotency-key": "one-key-for-all-workers" }
    const twice = await Promise.all([chat(at, "slowly now", {}, once_), chat(at, "slowly now", {}, once_)])
    expect(twice.map(({ status }) => status).toSorted()).toEqual([200, 409])
    expect((await chat(at, "slowly now", {}, once_)).status).toBe(200)
    expect((await chat(at, "slowly now", {}, once_)).status).toBe(200)
    expect(asked.get("slowly now")).toBe(1)

    // A key that is deleted at one worker is refused by all, from the next request on.
    const keys = await fresh(service, "/v1/operator/keys", { token: operator })
    expect(keys.status).toBe(200)
    const [{ id }] = JSON.parse(keys.text).result.records as [{ id: string }]
    const deleted = await service.call(`/v1/operator/keys/${id}`, { token: operator, method: "DELETE" })
    expect(deleted.status).toBeLessThan(300)
    const after: Array<number> = []
    for (let i = 0; i < 6; i++) after.push((await chat({ ...at, key }, "Hi")).status)
    expect(after).toEqual([401, 401, 401, 401, 401, 401])
    expect(await service.end()).toBe(0)
    await verify(service.folder)
  })

  it("let open streams end at a stop, and exit with 0", async () => {
    const at = await begin()
    const both = [chat(at, "one", { stream: true }), chat(at, "two", { stream: true })]
    await vi.waitFor(() => expect(streams).toHaveLength(2), { timeout: 10_000 })
    const pids = workersOf(at.service)
    const ended = at.service.end()
    let late = 0
    const refuses = async () => {
      const reply = await chat(at, "late").catch(() => undefined)
      if (reply?.status === 200) late++
      return reply === undefined
    }
    await expect.poll(refuses, { timeout: 60_000 }).toBe(true)
    finishStream()
    finishStream()
    for (const reply of await Promise.all(both)) expect(reply.text).toContain("[DONE]")
    expect(await ended).toBe(0)
    expect(pids.filter(isAlive)).toEqual([])
    expect(textOf(at.service)).not.toContain("is replaced")
    const ask = <A>(text: string) => Tables.ask<A>(at.service.folder, text)
    expect(await open(ask)).toEqual({ calls: 0, amount: 0 })
    expect(await ask("SELECT count(*) AS records FROM tollgate_usage_records WHERE success = 1")).toEqual([
      { records: 2 + late }
    ])
    await verify(at.service.folder)
  })

  it("a worker that is killed takes only its own open calls with it, and another replaces it", async () => {
    const at = await begin()
    const calls = new Calls()
    let isOver = false
    const load = calls.run(at, () => isOver)
    for (let round = 0; round < rounds; round++) {
      await new Promise((resolve) => setTimeout(resolve, 300 + Math.random() * 700))
      const before = workersOf(at.service)
      const killed = before[round % before.length]!
      process.kill(killed, "SIGKILL")
      await expect
        .poll(() => workersOf(at.service).filter((pid) => pid !== killed).length, { timeout: 30_000 })
        .toBe(before.length)
    }
    // The new worker answers too.
    const acknowledged = calls.acknowledged.size
    await expect.poll(() => calls.acknowledged.size, { timeout: 30_000 }).toBeGreaterThan(acknowledged + 50)
    isOver = true
    await load
    expect([...calls.refusals]).toEqual([])
    expect(textOf(at.service)).toContain("ended by SIGKILL and is replaced")
    await calls.compare(at.service.folder)
    expect(await at.service.end()).toBe(0)
    await verify(at.service.folder)
  })

  it("a worker that hangs is ended and replaced, with the loss of nothing that was acknowledged", async () => {
    const at = await begin()
    const calls = new Calls()
    const callFor = async (milliseconds: number) => {
      let isOver = false
      setTimeout(() => (isOver = true), milliseconds)
      await calls.run(at, () => isOver)
    }
    const load = callFor(1_500)
    await new Promise((resolve) => setTimeout(resolve, 500))
    const before = workersOf(at.service)
    const hanging = before[0]!
    process.kill(hanging, "SIGSTOP")
    await expect.poll(() => workersOf(at.service).includes(hanging), { timeout: 60_000, interval: 200 }).toBe(false)
    await load
    await expect.poll(() => workersOf(at.service).length, { timeout: 30_000 }).toBe(before.length)
    const acknowledged = calls.acknowledged.size
    await callFor(1_000)
    expect(calls.acknowledged.size).toBeGreaterThan(acknowledged + 50)
    expect([...calls.refusals]).toEqual([])
    expect(textOf(at.service)).toMatch(/does not respond and is ended[^]*ended by SIGKILL and is replaced/)
    // The reservations of the calls that it took with it are released.
    await calls.compare(at.service.folder)
    expect(await at.service.end()).toBe(0)
    await verify(at.service.folder)
  }, 180_000)

  it("an owner that is killed takes its workers with it, and the next start finds every acknowledged call", async () => {
    const begun = await begin()
    const { folder } = begun.service
    let { service } = begun
    const calls = new Calls()
    for (let round = 0; round < rounds; round++) {
      let isKilled = false
      const load = calls.run({ ...begun, service }, () => isKilled)
      await new Promise((resolve) => setTimeout(resolve, 500 + Math.random() * 700))
      const pids = workersOf(service)
      expect(pids).toHaveLength(2)
      const ended = service.end("SIGKILL")
      isKilled = true
      expect(await ended).toBe("SIGKILL")
      await expect.poll(() => pids.filter(isAlive), { timeout: 10_000 }).toEqual([])
      await load
      service = await serve(folder, begun.path, 2)
      await calls.compare(folder)
    }
    expect(calls.acknowledged.size).toBeGreaterThan(0)
    expect(await service.end()).toBe(0)
    await verify(folder)
  })
})

describe("--workers", () => {
  const path = join(freshFolder(), "tollgate.json")
  const run = async (args: ReadonlyArray<string>, own: Record<string, string> = {}) => {
    const env = await environmentOf({ DATA_DIR: freshFolder(), PORT: "0", ...own })
    const child = spawn(process.execPath, ["dist/main.js", "serve", ...args], { cwd: root, env })
    let text = ""
    child.stderr.setEncoding("utf8").on("data", (more: string) => (text += more))
    const [code] = (await once(child, "close")) as [number]
    return { code, text }
  }

  afterAll(() => rmSync(join(path, ".."), { recursive: true, force: true }))

  it.for(["0", "1.5", "200", "two", "65"])("refuses %s", async (workers) => {
    write(path, 1)
    const { code, text } = await run(["--config", path, "--workers", workers])
    expect(text).toContain(`--workers ${workers}: must be a whole number from 1 to 64`)
    expect(code).toBe(1)
  })

  it("refuses a sandbox and PostgreSQL", async () => {
    write(path, 1)
    expect((await run(["--workers", "2"], { DATABASE_URL: "" })).text).toContain("--workers needs --config FILE")
    const onPostgres = await run(["--config", path, "--workers", "2"], { DATABASE_URL: "postgres://me@127.0.0.1/x" })
    expect(onPostgres.text).toContain("--workers is for SQLite")
    expect(onPostgres.code).toBe(1)
  })

  it.skipIf(isPostgres)("says that the port is taken, and ends", async () => {
    write(path, 1)
    const taken = createServer()
    taken.listen(0, "127.0.0.1")
    await once(taken, "listening")
    const { port } = taken.address() as AddressInfo
    const { code, text } = await run(["--config", path, "--workers", "2"], { HOST: "127.0.0.1", PORT: String(port) })
    taken.close()
    expect(text).toContain("is in use by another process")
    expect(text.match(/tollgate:/g)).toHaveLength(1)
    expect(code).toBe(1)
  })
})
