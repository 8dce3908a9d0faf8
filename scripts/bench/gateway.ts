// Our service as people run it: its own process on a fresh folder, a user signed in for real, credit granted, an API key made.
// After the load its books must show exactly what was served.
import { execFile } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { credit, freePort, model, nodeOptions, root, sleep, start, stop } from "./common.ts"
import type { Cores, Target } from "./common.ts"

/** Where the outside world is. */
export interface World {
  readonly port: number
  readonly issuer: string
}

const configuration = ({ issuer, port }: World): object => ({
  service_name: "Tollgate",
  identity: { google: { issuer, audiences: ["bench"] } },
  clients: [{ client_id: "bench", name: "Bench" }],
  upstreams: {
    bench: { base_url: `http://127.0.0.1:${port}/v1`, api_key_env: "BENCH_UPSTREAM_KEY" },
    tools: { base_url: `http://127.0.0.1:${port}`, api_key_env: "BENCH_UPSTREAM_KEY" }
  },
  decisions: { upstream: "tools", model: "jev-1.13.0" },
  tools: { search: [{ id: "bench", vendor: "tavily", upstream: "tools", usd_per_query: "0.005" }] },
  models: [
    {
      id: model,
      name: "Bench model",
      context_length: 128_000,
      max_output_tokens: 4096,
      price: { prompt_usd_per_million: "0.15", completion_usd_per_million: "0.60" },
      upstreams: [{ upstream: "bench", model }]
    }
  ]
})

/** How the service is started: the file asked for, else as built, else from its source; `undefined` while there is neither. */
const command = (asked: string | undefined): ReadonlyArray<string> | undefined => {
  if (asked !== undefined) return asked.endsWith(".ts") ? ["--import", "tsx", asked] : [asked]
  const built = join(root, "dist", "main.js")
  const source = join(root, "src", "main.ts")
  if (existsSync(built)) return [built]
  return existsSync(source) ? ["--import", "tsx", source] : undefined
}

export interface Gateway extends Target {
  readonly from: string
  /** Reads the books back: throws unless the balance fell by exactly `due` nano-USD for the `calls`, and the invariants hold. */
  readonly check: (calls: number, due: number) => Promise<string>
  readonly stop: () => Promise<void>
}

interface Answer {
  readonly result?: {
    readonly token_response?: { readonly access_token: string }
    readonly account?: { readonly tenant_id: string }
    readonly api_key?: string
    readonly balance?: number
  }
}

const nano = (usd: number): number => Math.round(usd * 1e9)

export const startGateway = async (
  cores: Cores,
  world: World,
  directory: string,
  asked: string | undefined
): Promise<Gateway | undefined> => {
  const main = command(asked)
  if (main === undefined) return undefined
  await mkdir(directory, { recursive: true })
  const file = join(directory, "config.json")
  await writeFile(file, JSON.stringify(configuration(world), null, 2))
  const port = await freePort()
  const env = {
    NODE_ENV: "production",
    HOST: "127.0.0.1",
    PORT: String(port),
    DATA_DIR: join(directory, "data"),
    LOG_LEVEL: "error",
    BENCH_UPSTREAM_KEY: "upstream-key",
    // This, and the room for what is young, as `npm start` sets it.
    MALLOC_ARENA_MAX: "2"
  }
  const child = start(cores.served, [...nodeOptions, ...main, "serve", "--config", file], {
    env,
    ipc: false
  })
  const said = tail(child)
  try {
    const gateway = await prepare(child, main, port, env, world)
    return { ...gateway, from: main.at(-1)!, stop: () => stop(child) }
  } catch (error) {
    await stop(child)
    throw new Error(`the gateway did not come up: ${String(error)}\n${said()}`, { cause: error })
  }
}

/** The end of what a process says. */
export const tail = (child: ChildProcess): (() => string) => {
  let text = ""
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (data) => (text = (text + data).slice(-4000)))
  return () => text
}

const prepare = async (
  child: ChildProcess,
  main: ReadonlyArray<string>,
  port: number,
  env: NodeJS.ProcessEnv,
  world: World
) => {
  const base = `http://127.0.0.1:${port}`
  const ready = async () => (await fetch(`${base}/readyz`).catch(() => undefined))?.ok === true
  for (const deadline = Date.now() + 30_000; !(await ready()); await sleep(100)) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`)
    if (Date.now() > deadline) throw new Error("/readyz did not answer 200 within 30 s")
  }

  const call = async (method: string, path: string, token?: string, body?: object): Promise<Answer> => {
    const response = await fetch(path.startsWith("http") ? path : base + path, {
      method,
      headers: { "content-type": "application/json", ...(token !== undefined && { authorization: `Bearer ${token}` }) },
      ...(body !== undefined && { body: JSON.stringify(body) })
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text.slice(0, 500)}`)
    return JSON.parse(text) as Answer
  }
  const operate = (...args: ReadonlyArray<string>) =>
    promisify(execFile)(process.execPath, [...main, ...args], { cwd: root, env: { ...process.env, ...env } })
  const sought = <A>(value: A | undefined, name: string): A => {
    if (value === undefined) throw new Error(`no ${name} in the answer`)
    return value
  }

  const { id_token } = (await call("POST", `${world.issuer}/token`, undefined, { email: "bench@example.com" })) as {
    readonly id_token?: string
  }
  const signedIn = await call("POST", "/v1/auth/google", undefined, { id_token, client_id: "bench" })
  const token = sought(signedIn.result?.token_response?.access_token, "access token")
  const tenant = sought((await call("GET", "/v1/me", token)).result?.account?.tenant_id, "tenant")
  await operate("grant", "--tenant", tenant, "--amount", String(credit))
  const application = { name: "bench", description: "drives the benchmark" }
  const key = sought(
    (await call("POST", `/v1/tenants/${tenant}/applications`, token, application)).result?.api_key,
    "key"
  )
  const balance = async () =>
    nano(sought((await call("GET", `/v1/tenants/${tenant}/billing/credits`, token)).result?.balance, "balance"))
  const before = await balance()
  if (before < nano(credit)) throw new Error(`the grant did not arrive: the balance is ${before} nano-USD`)

  return {
    name: "gateway",
    port,
    headers: { authorization: `Bearer ${key}` },
    pid: child.pid!,
    check: async (calls: number, due: number) => {
      let fell = before - (await balance())
      // What is settled behind the answer gets a moment.
      for (let i = 0; i < 20 && fell !== due; i++) {
        await sleep(100)
        fell = before - (await balance())
      }
      if (fell !== due)
        throw new Error(`WRONG CHARGE: ${calls} calls cost ${due} nano-USD, the balance fell by ${fell}`)
      const { stdout } = await operate("verify")
      return `${calls} calls charged exactly; verify: ${stdout.trim().split("\n").at(-1) ?? ""}`
    }
  }
}
