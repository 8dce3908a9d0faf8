/** `tollgate quickstart`: two commands from an empty folder to a paid call. */
import { spawn } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import type { Server } from "node:http"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Either } from "effect"
import { decodeFile } from "../../src/app/Config.ts"
import * as Draft from "../../src/app/quickstart/Draft.ts"
import { inEnvironment, vendors } from "../../src/app/quickstart/Vendors.ts"
import { startLocalServer } from "../support/LocalServer.ts"
import { command, environmentOf, freePort, freshFolder, root } from "../support/Service.ts"

let local: Server
const folder = freshFolder()
const config = join(folder, "tollgate.json")
let address = ""
let env: Record<string, string> = {}
const running: Array<ChildProcess> = []

beforeAll(async () => {
  const started = await startLocalServer()
  local = started.server
  address = started.address
  const keys = Object.fromEntries(vendors.map(({ variable }) => [variable, ""]))
  env = { ...keys, DATA_DIR: folder, PORT: String(await freePort()), LOG_LEVEL: "warning" }
})

afterAll(() => {
  for (const child of running) child.kill("SIGKILL")
  local.close()
  rmSync(folder, { recursive: true, force: true })
})

interface Printed {
  readonly base_url: string
  readonly tenant_id: string
  readonly api_key: string | null
  readonly config: string
}

/** Runs `quickstart --json` until `use` is done, and then stops it. */
const quickly = async (use: (printed: Printed) => Promise<void>, ...args: ReadonlyArray<string>) => {
  const child = spawn(process.execPath, ["dist/main.js", "quickstart", "--json", "--config", config, ...args], {
    cwd: root,
    env: await environmentOf(env),
    stdio: ["ignore", "pipe", "pipe"]
  })
  running.push(child)
  let [stdout, stderr] = ["", ""]
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text))
  await new Promise<void>((resolve, reject) => {
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text
      if (stdout.includes("\n")) resolve()
    })
    child.once("close", (code) => reject(new Error(`ended with ${code}: ${stderr}`)))
  })
  expect(stdout.trimEnd().split("\n")).toHaveLength(1)
  await use(JSON.parse(stdout) as Printed)
  const closed = once(child, "close")
  child.kill("SIGTERM")
  expect(await closed).toEqual([0, null])
}

const balanceOf = async (tenant_id: string): Promise<unknown> => {
  const { stdout } = await command(["tenants", "--json"], env)
  const { tenants } = JSON.parse(stdout) as { readonly tenants: ReadonlyArray<{ id: string; balance: string }> }
  return tenants.find(({ id }) => id === tenant_id)?.balance
}

const ask = (base_url: string, path: string, key: string, body?: object) =>
  fetch(`${base_url}${path}`, {
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) })
  })

const hello = { model: "llama:3b", messages: [{ role: "user", content: "Hello" }] }

describe("tollgate quickstart", () => {
  it("leads from an empty folder to a paid call, and keeps what it has made", async () => {
    let first: Printed | undefined
    await quickly(
      async (printed) => {
        first = printed
        const { api_key, base_url, tenant_id } = printed
        expect(printed.config).toBe(config)
        const answer = await ask(base_url, "/v1/chat/completions", api_key!, hello)
        expect([answer.status, answer.headers.get("x-charge-usd")]).toEqual([200, "0.0000032"])
        expect(await balanceOf(tenant_id)).toBe("19.9999968")
      },
      "--upstream",
      address
    )
    expect(statSync(config).mode & 0o077).toBe(0)
    const written = readFileSync(config, "utf8")
    expect(written.split("\n").length).toBeLessThan(25)
    await quickly(async ({ api_key, tenant_id }) => {
      expect([tenant_id, api_key]).toEqual([first!.tenant_id, null])
      const made = await command(
        ["key", "create", "--tenant", tenant_id, "--name", "second", "--limit", "0.000001"],
        env
      )
      expect(made).toMatchObject({ code: 0 })
      const refused = await ask(first!.base_url, "/v1/chat/completions", made.stdout.trim(), hello)
      expect([refused.status, await refused.json()]).toMatchObject([402, { code: "insufficient_credits" }])
      expect(await balanceOf(tenant_id)).toBe("19.9999968")
    })
    expect(readFileSync(config, "utf8")).toBe(written)
  })

  it("says what to do where there is no vendor, or the server does not answer", async () => {
    const run = (...args: ReadonlyArray<string>) =>
      command(["quickstart", "--yes", "--config", join(folder, "none.json"), ...args], env)
    expect(await run()).toMatchObject({ code: 1, stderr: expect.stringContaining("OPENAI_API_KEY") })
    const silent = `http://127.0.0.1:${await freePort()}`
    expect(await run("--upstream", silent)).toMatchObject({
      code: 1,
      stderr: `tollgate: --upstream ${silent}: the server cannot be reached (ECONNREFUSED)\n`
    })
    const secret = silent.replace("//", "//user:pass-word@")
    expect(await run("--upstream", secret)).toMatchObject({
      code: 1,
      stderr: expect.not.stringContaining("pass-word")
    })
    expect(await run("--upstream", "nonsense")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("must be an address such as http://127.0.0.1:11434/v1")
    })
    expect(await run("--upstream", address, "--credit", "-1")).toMatchObject({ code: 1 })
    writeFileSync(join(folder, "none.json"), "{}")
    expect(await run()).toMatchObject({ code: 1, stderr: expect.stringContaining("models") })
  })

  const isTerminal = existsSync("/usr/bin/script")

  it.runIf(isTerminal)(
    "asks a terminal for a vendor and its key, and for an address",
    async () => {
      const path = join(folder, "asked.json")
      const child = spawn(
        "script",
        ["-qec", `${process.execPath} dist/main.js quickstart --config ${path}`, "/dev/null"],
        {
          cwd: root,
          env: await environmentOf({
            ...env,
            PORT: String(await freePort()),
            DATA_DIR: join(folder, "asked"),
            TERM: "xterm"
          }),
          stdio: ["pipe", "pipe", "ignore"]
        }
      )
      running.push(child)
      const closed = once(child, "close")
      let shown = ""
      child.stdout.setEncoding("utf8").on("data", (text: string) => (shown += text))
      const answered = async (question: string, answer: string) => {
        await expect.poll(() => shown, { timeout: 30_000 }).toContain(question)
        child.stdin.write(answer)
      }
      await answered("Where are your models?", "\u001b[B\r")
      await answered("Your API key for openai", "sk-typed\r")
      await answered("email address", "ada@example.com\r")
      await answered("operator#code=", "\u0003")
      await closed
      expect(shown).not.toContain("sk-typed")
      expect(JSON.parse(readFileSync(path, "utf8")).upstreams.openai).toMatchObject({ api_key: "sk-typed" })
      expect(statSync(path).mode & 0o077).toBe(0)
    },
    60_000
  )

  it("knows vendors by their variables, and models of theirs that the catalogue has", () => {
    expect(inEnvironment({ OPENAI_API_KEY: "sk-1", GROQ_API_KEY: " " }).map(({ name }) => name)).toEqual(["openai"])
    const file = decodeFile(JSON.parse(Draft.textOf({ vendors, local: undefined })), "the draft")
    const models = Either.getOrThrowWith(file, ({ message }) => new Error(message)).models
    expect(models.map(({ id }) => id)).toEqual(
      vendors.flatMap(({ models, name }) => models.map((model) => `${name}/${model}`))
    )
  })
})

describe("tollgate check", () => {
  const upstreams = { good: { base_url: "" }, keyed: { base_url: "", api_key: "wrong" }, gone: { base_url: "" } }

  it("names what a configuration means, and what cannot be reached", async () => {
    const gone = `http://127.0.0.1:${await freePort()}`
    const file = join(folder, "checked.json")
    const bases = { good: `${address}/v1`, keyed: `${address}/v1`, gone }
    const entries = Object.entries(upstreams).map(([name, entry]) => [
      name,
      { ...entry, base_url: bases[name as keyof typeof bases] }
    ])
    const price = { prompt_usd_per_million: "1", completion_usd_per_million: "2" }
    const sized = { context_length: 1000, max_output_tokens: 100, price }
    const models = [{ id: "small", ...sized, upstreams: [{ upstream: "good", model: "llama:3b" }] }]
    writeFileSync(file, JSON.stringify({ upstreams: Object.fromEntries(entries), models }))
    const { code, stderr, stdout } = await command(["check", "--config", file, "--json"], env)
    expect([code, stderr]).toEqual([1, "tollgate: upstreams.keyed, upstreams.gone: see above\n"])
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      models: "small",
      payments: "off: only the operator grants credit",
      probes: [
        { entry: "upstreams.good", address: `${address}/v1/models` },
        { entry: "upstreams.keyed", fault: "rejects the key (401): set api_key_env" },
        { entry: "upstreams.gone", fault: "cannot be reached (ECONNREFUSED)" }
      ]
    })
  })

  it("passes what quickstart writes", async () => {
    const { code, stdout } = await command(["check", "--config", config], env)
    expect([code, stdout]).toEqual([0, expect.stringContaining("upstreams.local")])
  })
})
