/** A reload takes a changed configuration over HTTP or by SIGHUP, ends no call, and takes nothing of a wrong one. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:http"
import type { ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest"
import * as Postgres from "../support/postgres.ts"
import { command, environmentOf, freePort, freshFolder, root, start } from "../support/Service.ts"
import type { Service } from "../support/Service.ts"

const folder = freshFolder()
const path = join(folder, "tollgate.json")
let service: Service
let operator = ""
let key = ""
let tenant = ""

/** The vendor's open streams. Each has had its first piece. */
const streams: Array<ServerResponse> = []
const piece = (content: string) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`
const usage = { prompt_tokens: 1000, completion_tokens: 1000 }

/** Answers of the image vendor that are held back. A job is complete once its answer is sent. */
const jobs: Array<() => void> = []
const job = (path: string, answer: (body: object) => void): void => {
  if (path.endsWith("/status")) return answer({ status: "COMPLETED" })
  if (path.includes("/requests/")) return answer({ images: [{ url: "https://example.com/cat.png" }] })
  jobs.push(() => answer({ request_id: "job-1" }))
}
const cats = { id: "cats", type: "image", upstream: "main", endpoint: "cats", usd_per_image: 0.05 }

const vendor = createServer((request, response) => {
  if (request.url!.startsWith("/v1/cats")) {
    return job(request.url!, (body) => {
      response.writeHead(200, { "content-type": "application/json" })
      response.end(JSON.stringify(body))
    })
  }
  let text = ""
  request.setEncoding("utf8").on("data", (more: string) => (text += more))
  request.on("end", () => {
    if ((JSON.parse(text) as { stream?: boolean }).stream === true) {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write(piece("Hel"))
      streams.push(response)
      return
    }
    response.writeHead(200, { "content-type": "application/json" })
    const message = { role: "assistant", content: "Hello" }
    response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }], usage }))
  })
})

const finishStream = (): void => {
  const stream = streams.shift()!
  stream.write(piece("lo"))
  stream.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage })}\n\n`)
  stream.end("data: [DONE]\n\n")
}

const model = (id: string, usdPerMillion: number) => ({
  id,
  context_length: 8000,
  max_output_tokens: 1000,
  price: { prompt_usd_per_million: usdPerMillion, completion_usd_per_million: usdPerMillion },
  upstreams: [{ upstream: "main" }]
})

const write = (models: ReadonlyArray<object>, others: object = {}): void => {
  const base_url = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}/v1`
  writeFileSync(path, JSON.stringify({ upstreams: { main: { base_url } }, models, ...others }))
}

const reload = () => service.call("/v1/operator/reload", { method: "POST", token: operator })
const chat = (id: string, extra: object = {}) =>
  service.call("/v1/chat/completions", {
    token: key,
    json: { model: id, messages: [{ role: "user", content: "Hi" }], ...extra }
  })
const costs = async (): Promise<ReadonlyArray<number>> =>
  (await service.call(`/v1/operator/tenants/${tenant}/usage`, { token: operator })).body.result.records.map(
    ({ cost }: { cost: number }) => cost
  )

beforeAll(async () => {
  vendor.listen(0, "127.0.0.1")
  await once(vendor, "listening")
  write([model("small", 1)])
  service = await start({ folder, args: ["--config", path], env: { LOG_LEVEL: "info" } })
  const env = { DATA_DIR: folder }
  const printed = async (...args: ReadonlyArray<string>) => JSON.parse((await command(args, env)).stdout)
  const scopes = "read,people,tenants,keys,grants,operate"
  operator = (await printed("operator", "keys", "create", "--scopes", scopes, "--json")).management_key
  const person = await printed("people", "create", "--email", "ada@example.com", "--json")
  tenant = person.tenant_id
  await command(["grant", "--tenant", tenant, "--amount", "10"], env)
  key = (await printed("key", "create", "--tenant", tenant, "--name", "test", "--json")).api_key
}, 60_000)

afterAll(async () => {
  vendor.close()
  vendor.closeAllConnections()
  await service.discard()
})

beforeEach(async () => {
  while (streams.length > 0) finishStream()
  write([model("small", 1)])
  await reload()
})

describe("POST /v1/operator/reload", () => {
  it("takes models and prices for the calls that follow; a stream that is open ends whole, at the price it was admitted with", async () => {
    const asked = fetch(`${service.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "small", stream: true, messages: [{ role: "user", content: "Hi" }] })
    })
    await vi.waitFor(() => expect(streams).toHaveLength(1), 20_000)
    const stream = await asked

    write([model("small", 3), model("large", 10)])
    expect((await reload()).body.result).toEqual({ changed: ["models"] })
    expect((await chat("large")).status).toBe(200)
    expect((await chat("small")).status).toBe(200)

    finishStream()
    const text = await stream.text()
    expect(text).toContain("lo")
    expect(text).toContain("[DONE]")
    await vi.waitFor(
      async () => expect((await costs()).toSorted((a, b) => a - b)).toEqual([0.002, 0.006, 0.02]),
      20_000
    )
  })

  it("charges a job that the old services handed to the vendor, though no client asks for it", async () => {
    write([model("small", 1)], { media: [cats] })
    await reload()
    const json = { model: "cats", prompt: "a cat" }
    const asked = service.call("/v1/tools/media/generate", { token: key, json })
    await vi.waitFor(() => expect(jobs).toHaveLength(1), 20_000)
    write([model("small", 2)], { media: [cats] })
    expect((await reload()).body.result).toEqual({ changed: ["models"] })
    jobs.shift()!()
    expect((await asked).status).toBe(200)
    // The first poll of the service itself comes after some seconds.
    await vi.waitFor(async () => expect(await costs()).toContain(0.05), { timeout: 30_000, interval: 250 })
  }, 60_000)

  it("changes nothing where nothing has changed", async () => {
    expect((await reload()).body.result).toEqual({ changed: [] })
  })

  it("takes nothing of a wrong configuration, and says what is wrong", async () => {
    write([model("other", 1), { ...model("broken", 1), context_length: "many" }])
    const refused = await reload()
    expect(refused.status).toBe(422)
    expect(refused.body.code).toBe("configuration_refused")
    expect(refused.body.error).toContain("models.1.context_length")
    expect((await chat("small")).status).toBe(200)
    expect((await chat("other")).status).toBe(400)

    write([model("other", 1)], {
      mail: { from: "a@example.com", smtp: { host: "127.0.0.1", password_env: "NOT_SET" } }
    })
    expect((await reload()).status).toBe(422)
    expect((await chat("small")).status).toBe(200)
    write([model("other", 1)], { scim: { token_env: "pasted-secret" } })
    const pasted = await reload()
    expect(pasted.body.error).toContain("scim.token_env: must be the name of an environment variable that is set")
    expect(JSON.stringify(pasted.body) + service.stderr.join("") + service.stdout.join("")).not.toContain("pasted")
    writeFileSync(path, "{")
    expect((await reload()).body.error).toContain("is not JSON")
    expect((await chat("small")).status).toBe(200)
  })

  it("refuses an entry that only a restart changes", async () => {
    write([model("small", 1)], { answers: { unread_seconds: 60 } })
    const refused = await reload()
    expect(refused.status).toBe(422)
    expect(refused.body.error).toBe("answers: restart the service to apply them")
  })

  it("changes the address that commands on this machine find", async () => {
    const address = () => readFileSync(join(folder, "address"), "utf8")
    expect(address()).toBe(`${service.url}\n`)
    write([model("small", 1)], { public_url: "https://ai.example.com" })
    expect((await reload()).body.result).toEqual({ changed: ["public_url"] })
    expect(address()).toBe("https://ai.example.com\n")
    write([model("small", 1)])
    await reload()
    expect(address()).toBe(`${service.url}\n`)
  })

  it("ends live events, so that their clients connect to the new services", async () => {
    const events = await fetch(`${service.url}/v1/operator/events`, {
      headers: { authorization: `Bearer ${operator}` }
    })
    write([model("small", 2)])
    await reload()
    expect(await events.text()).toContain('event: end\ndata: {"reason":"shutdown"}')
  })

  it("stands in the audit log, refused or done", async () => {
    write([model("small", 4)])
    await reload()
    writeFileSync(path, "[]")
    await reload()
    const { records } = (await service.call("/v1/operator/audit?limit=2", { token: operator })).body.result
    expect(records).toMatchObject([
      { action: "configuration.reload", result: "refused" },
      { action: "configuration.reload", result: "done", details: { changed: "models" } }
    ])
  })
})

describe("SIGHUP", () => {
  it("does not end a service that is starting", async () => {
    write([model("small", 1)])
    const [own, port] = [freshFolder(), await freePort()]
    const starting = spawn(process.execPath, ["dist/main.js", "serve", "--config", path], {
      cwd: root,
      env: await environmentOf({ DATA_DIR: own, PORT: String(port) }),
      stdio: "ignore"
    })
    const ended = once(starting, "exit")
    const statusOf = (route: string) =>
      fetch(`http://127.0.0.1:${port}${route}`).then(
        ({ status }) => status,
        () => starting.signalCode
      )
    // The port is open before the service is built.
    await expect.poll(() => statusOf("/healthz"), { timeout: 30_000, interval: 5 }).toBe(200)
    starting.kill("SIGHUP")
    await expect.poll(() => statusOf("/readyz"), { timeout: 30_000 }).toBe(200)
    starting.kill("SIGTERM")
    expect(await ended).toEqual([0, null])
    if (Postgres.isWanted()) await Postgres.drop(own)
    rmSync(own, { recursive: true, force: true })
  }, 60_000)

  it("reloads, and logs what has changed or what is wrong", async () => {
    write([model("after-signal", 1)])
    service.process.kill("SIGHUP")
    await vi.waitFor(async () => expect((await chat("after-signal")).status).toBe(200), { timeout: 10_000 })
    writeFileSync(path, "{")
    service.process.kill("SIGHUP")
    const log = () => [...service.stdout, ...service.stderr].join("")
    await vi.waitFor(() => expect(log()).toContain("the configuration was not reloaded"), { timeout: 10_000 })
    expect(log()).toContain("the configuration was reloaded: models")
    expect((await chat("after-signal")).status).toBe(200)
  })
})

describe("the end of the service", () => {
  it("is in order after reloads", async () => {
    expect(await service.end("SIGTERM")).toBe(0)
  })
})
