/** The process: its first minute, its restarts, its end, and what it says when it cannot start. */
import Sqlite from "better-sqlite3"
import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { isPostgres } from "../support/database.ts"
import { commandHere } from "../support/CommandLine.ts"
import { command, freePort, freshFolder, start } from "../support/Service.ts"
import type { Service } from "../support/Service.ts"

const running: Array<Service> = []

const begin = async (...args: Parameters<typeof start>): Promise<Service> => {
  const service = await start(...args)
  running.push(service)
  return service
}

afterEach(async () => {
  // A later service may use the folder of an earlier one, which has ended.
  for (const service of running.splice(0).toReversed()) await service.discard()
})

/** What the greeting says, once it has said all of it. */
const greeting = async (service: Service): Promise<string> => {
  while (!service.stdout.join("").includes("/v1/usage")) await new Promise((resolve) => setTimeout(resolve, 20))
  return service.stdout.join("")
}

/** Waits until the sandbox's model has been given so many calls. */
const heard = async (service: Service, calls: number): Promise<void> => {
  const count = async () => ((await service.control("/calls?service=chat")) as ReadonlyArray<unknown>).length
  await expect.poll(count, { timeout: 30_000 }).toBe(calls)
}

const chatBody = { model: "sandbox-small", messages: [{ role: "user", content: "slow and steady" }] }

describe("the first minute", () => {
  it("prints a curl line that works as pasted, and what it cost can be read back", async () => {
    const service = await begin()
    const text = await greeting(service)
    expect(text).toContain(service.url)
    const lines = text.split("\n").map((line) => line.trim())
    const [call, usage] = lines.filter((line) => line.startsWith("curl "))
    const answer = JSON.parse(execFileSync("sh", ["-c", `${call!} -s`], { encoding: "utf8" }))
    expect(answer.choices[0].message.content).toBe("Hello, Tollgate")
    const summary = JSON.parse(execFileSync("sh", ["-c", `${usage!} -s`], { encoding: "utf8" }))
    expect(summary).toMatchObject({
      total_requests: 1,
      successful_requests: 1,
      prompt_tokens: 2,
      total_cost: 0.0000015
    })

    const token = lines
      .find((line) => line.startsWith("user token"))!
      .split(/\s+/)
      .at(-1)!
    const tenant = lines.find((line) => line.startsWith("tenant"))!.split(/\s+/)[1]!
    const credits = await service.call(`/v1/tenants/${tenant}/billing/credits`, { token })
    expect(credits.body.result.balance).toBe(6 - 0.0000015)
  })

  it("starts again on the same data: people, keys and balances are there", async () => {
    const first = await begin()
    const ada = await first.signIn("ada@example.com")
    const key = await first.key(ada)
    await first.call("/v1/chat/completions", { token: key, json: chatBody })
    const balance = await first.balance(ada)
    const said = await greeting(first)
    expect(await first.end()).toBe(0)

    const second = await begin({ folder: first.folder })
    expect((await second.call("/v1/models", { token: key })).status).toBe(200)
    expect(await second.balance(ada)).toBe(balance)
    const apiKey = /API key +(\S+)/.exec(said)![1]!
    expect(await greeting(second)).toContain(apiKey)
  })
})

describe("a start while another process has the database locked", () => {
  it.skipIf(isPostgres)("says so, waits, and serves", async () => {
    const folder = freshFolder()
    const first = await begin({ folder })
    await first.end()
    const other = new Sqlite(join(folder, "tollgate.db"))
    other.exec("BEGIN IMMEDIATE")
    // Longer than the driver waits by itself.
    setTimeout(() => other.close(), 8_000)
    const again = await begin({ folder })
    expect(again.stdout.join("") + again.stderr.join("")).toContain("is locked by another process: waiting up to")
  })
})

describe("the end", () => {
  it("lets what is under way finish, takes nothing new, and exits 0", async () => {
    const service = await begin()
    const ada = await service.signIn("ada@example.com")
    const key = await service.key(ada)
    await service.control("/faults", { service: "chat", delay_ms: 1_000, times: 1 })
    await service.control("/faults", { service: "chat", chunk_delay_ms: 200, times: 1 })
    const whole = service.call("/v1/chat/completions", { token: key, json: chatBody })
    await heard(service, 1)
    const streamed = service.call("/v1/chat/completions", { token: key, json: { ...chatBody, stream: true } })
    await heard(service, 2)
    const ended = service.end()
    const answers = () =>
      service.call("/healthz").then(
        () => true,
        () => false
      )
    await expect.poll(answers).toBe(false)
    expect((await whole).status).toBe(200)
    expect((await streamed).body).toContain("data: [DONE]")
    expect(await ended).toBe(0)

    const verified = await command(["verify"], { DATA_DIR: service.folder })
    expect(verified.code).toBe(0)
    const again = await begin({ folder: service.folder })
    expect(await again.usage(ada)).toHaveLength(2)
  })
})

describe("the end, while a client has left", () => {
  it.each<[string, string, Record<string, string>]>([
    ["in the fast lane", "/v1/chat/completions", {}],
    ["behind the router", "/v1/chat/completions/", {}],
    ["with an Idempotency-Key", "/v1/chat/completions", { "idempotency-key": "left-at-the-end-0123" }]
  ])("still reads what the upstream answers, and charges it: %s", async (_, path, headers) => {
    const service = await begin()
    const ada = await service.signIn("ada@example.com")
    const key = await service.key(ada)
    await service.control("/faults", { service: "chat", delay_ms: 1_500, times: 1 })
    const gone = new AbortController()
    const call = fetch(`${service.url}${path}`, {
      method: "POST",
      signal: gone.signal,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
      body: JSON.stringify(chatBody)
    }).catch(() => "left")
    await heard(service, 1)
    gone.abort()
    expect(await call).toBe("left")
    expect(await service.end()).toBe(0)
    const again = await begin({ folder: service.folder })
    // A start that takes long refuses requests after ten seconds.
    await expect.poll(async () => (await again.call("/v1/me", { token: ada.token })).status).toBe(200)
    expect(await again.usage(ada)).toMatchObject([{ success: true, prompt_tokens: 3, cost: 0.00000225 }])
    if (headers["idempotency-key"] === undefined) return
    const replay = await again.call(path, { token: key, headers, json: chatBody })
    expect([replay.status, replay.headers.get("idempotency-replayed")]).toEqual([200, "true"])
  })
})

describe("a start that cannot be", () => {
  const refused = async (
    env: Record<string, string>,
    args: ReadonlyArray<string> = [],
    execute = commandHere
  ): Promise<string> => {
    const { code, stderr } = await execute(["serve", ...args], { DATA_DIR: freshFolder(), PORT: "0", ...env })
    expect(code).toBe(1)
    expect(stderr).not.toMatch(/ at .*\.[jt]s/)
    return stderr
  }

  it.each([
    ["a port that is none", { PORT: "eighty" }, "PORT"],
    ["a port out of range", { PORT: "70000" }, "PORT"],
    ["a log level that is none", { LOG_LEVEL: "loud" }, "LOG_LEVEL"],
    ["a database that is not served", { DATABASE_URL: "mysql://localhost/x" }, "DATABASE_URL"],
    ["a prefix that would break keys apart", { KEY_PREFIX: "a-b" }, "KEY_PREFIX"],
    ["a secret that is too short", { TOLLGATE_SECRET: "short" }, "TOLLGATE_SECRET"],
    ["a sandbox for the world", { HOST: "0.0.0.0" }, "HOST"]
  ])("names the entry: %s", async (_, env, entry) => {
    expect(await refused(env)).toContain(entry)
  })

  it("names a port that is taken", async () => {
    const service = await begin()
    expect(await refused({ PORT: String(service.port) }, [], command)).toContain(`PORT: ${service.port}`)
  })

  it("names what is wrong in the configuration file, all of it at once", async () => {
    const file = join(freshFolder(), "tollgate.json")
    expect(await refused({}, ["--config", file])).toContain("could not be read")
    writeFileSync(
      file,
      JSON.stringify({
        auto: "nobody",
        unknown: 1,
        models: [{ id: "m", context_length: 0, price: {}, upstreams: [{ upstream: "nowhere" }] }]
      })
    )
    const said = await refused({}, ["--config", file])
    for (const entry of ["unknown", "models.0.context_length", "models.0.max_output_tokens"])
      expect(said).toContain(entry)
    const model = {
      id: "m",
      context_length: 1,
      max_output_tokens: 1,
      price: { prompt_usd_per_million: "1", completion_usd_per_million: "1" },
      upstreams: [{ upstream: "nowhere" }]
    }
    writeFileSync(file, JSON.stringify({ auto: "nobody", models: [model] }))
    const linked = await refused({}, ["--config", file])
    expect(linked).toContain("models.0.upstreams.0.upstream: there is no upstream nowhere")
    expect(linked).toContain("auto: there is no model nobody")
    const upstreams = { nowhere: { base_url: "http://127.0.0.1:9/v1", api_key_env: "NO_SUCH_KEY" } }
    writeFileSync(file, JSON.stringify({ upstreams, models: [model] }))
    expect(await refused({}, ["--config", file])).toContain("NO_SUCH_KEY")
  })

  // A server's database is served by as many nodes as there are.
  it.skipIf(isPostgres)("refuses a second process on the same file", async () => {
    const service = await begin()
    expect(await refused({ DATA_DIR: service.folder }, [], command)).toContain("another process is serving")
  })
})

describe("a deployment with a configuration file", () => {
  it("serves, has no sandbox, and grants by command beside the running service", async () => {
    // The sandbox of one service is the outside world of another.
    const world = await begin()
    const { issuer } = await world.sandbox()
    const origin = new URL(issuer).origin
    const file = join(freshFolder(), "tollgate.json")
    const configuration = {
      service_name: "Acme",
      clients: [{ client_id: "console", name: "Console" }],
      identity: { google: { issuer, audiences: ["sandbox-google"] } },
      registration: { open: true },
      upstreams: { main: { base_url: `${origin}/chat-a/v1`, api_key_env: "MAIN_KEY" } },
      models: [
        {
          id: "echo",
          context_length: 1_000,
          max_output_tokens: 100,
          price: { prompt_usd_per_million: "1", completion_usd_per_million: 2 },
          upstreams: [{ upstream: "main", model: "echo-1" }]
        }
      ]
    }
    writeFileSync(file, JSON.stringify(configuration))
    const port = await freePort()
    const service = await begin({ port, args: ["--config", file], env: { MAIN_KEY: "sk-main", KEY_PREFIX: "acme" } })
    expect((await service.call("/v1/sandbox")).status).toBe(404)
    const missing = await service.call("/v1/auth/google", { json: {} })
    expect(missing.body.error).toBe("Acme client ID is required")

    const { id_token } = (await service.call(`${issuer}/token`, { json: { email: "ada@example.com" } })).body
    const signedIn = await service.call("/v1/auth/google", { json: { id_token, client_id: "console" } })
    const token = signedIn.body.result.token_response.access_token
    const { account } = (await service.call("/v1/me", { token })).body.result
    const path = `/v1/tenants/${account.tenant_id}`
    const made = await service.call(`${path}/applications`, { token, json: { name: "k" } })
    const key = made.body.result.api_key
    expect(key).toMatch(/^acme-prod-/)

    const chat = { token: key, json: { model: "echo", messages: [{ role: "user", content: "one two" }] } }
    expect((await service.call("/v1/chat/completions", chat)).status).toBe(402)
    const granted = await command(["grant", "--tenant", account.tenant_id, "--amount", "0.5"], {
      DATA_DIR: service.folder
    })
    expect(granted.stdout).toContain(`granted 0.5 credits to ${account.tenant_id}; its balance is 0.5`)
    const answer = await service.call("/v1/chat/completions", chat)
    expect(answer.status).toBe(200)
    expect(answer.headers.get("x-charge-usd")).toBe("0.000006")
    const [debit, credit] = (await service.call(`${path}/billing/ledger`, { token })).body.result.records
    expect(debit).toMatchObject({ type: "debit", amount: 0.000006, balance: 0.499994 })
    expect(credit).toMatchObject({ type: "credit", source: "admin", amount: 0.5, balance: 0.5 })
    const account_ = await service.call(`${path}/billing`, { token })
    expect(account_.body.result).toMatchObject({ credits: 0.499994, giftable_credits: 0, has_been_funded: false })

    const nobody = await command(["grant", "--tenant", "ten_nobody", "--amount", "1"], { DATA_DIR: service.folder })
    expect([nobody.code, nobody.stderr]).toEqual([
      1,
      expect.stringMatching(/^tollgate: --tenant ten_nobody: there is no such tenant .*\n$/)
    ])
    expect((await command(["migrate"], { DATA_DIR: service.folder })).stdout).toContain("is up to date")
  })
})
