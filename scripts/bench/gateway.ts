// Runs our service as in production, in a separate process with an empty folder. Users actually sign in, receive their sign-up credit and create an
// API key. After the load, the database must show exactly the calls that were served.
import { execFile } from "node:child_process"
import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { credit, modelOf, models } from "./calls.ts"
import type { Target } from "./frame.ts"
import { freePort, nodeOptions, root, sleep, start, stop, tail } from "./processes.ts"
import type { Cores } from "./processes.ts"

/** The simulated vendors' port and the issuer's URL. */
export interface Outside {
  readonly port: number
  readonly issuer: string
}

export const configuration = ({ issuer, port }: Outside): object => ({
  service_name: "Tollgate",
  identity: { google: { issuer, audiences: ["bench"] } },
  registration: { open: true },
  clients: [{ client_id: "bench", name: "Bench" }],
  upstreams: {
    bench: { base_url: `http://127.0.0.1:${port}/v1`, api_key_env: "BENCH_UPSTREAM_KEY" },
    messages: {
      base_url: `http://127.0.0.1:${port}/v1`,
      api_key_env: "BENCH_UPSTREAM_KEY",
      speaks: ["messages"]
    },
    responses: {
      base_url: `http://127.0.0.1:${port}/v1`,
      api_key_env: "BENCH_UPSTREAM_KEY",
      speaks: ["responses"]
    },
    tools: { base_url: `http://127.0.0.1:${port}`, api_key_env: "BENCH_UPSTREAM_KEY" }
  },
  decisions: { upstream: "tools", model: "jev-1.13.0" },
  tools: { search: [{ id: "bench", vendor: "tavily", upstream: "tools", usd_per_query: "0.005" }] },
  models: [
    ...models.map((model) => ({ model, upstream: "bench" })),
    { model: modelOf.messages, upstream: "messages" },
    { model: modelOf.responses, upstream: "responses" }
  ].map(({ model, upstream }) => ({
    id: model,
    name: model,
    context_length: 1_000_000,
    max_output_tokens: 4096,
    price: { prompt_usd_per_million: "0.15", completion_usd_per_million: "0.60" },
    upstreams: [{ upstream, model }]
  })),
  prices: { default_new_credits: credit, default_registration_credits: 0 },
  // All users sign in from the same address.
  rate_limits: { sign_in: 1_000_000 }
})

export interface Caller {
  readonly account: string
  readonly tenant: string
  readonly application: string
  readonly key: string
}

export interface Gateway extends Target {
  readonly port: number
  /** Signs up more users and adds their keys to `keys`. */
  readonly addCallers: (count: number) => Promise<void>
  readonly callers: ReadonlyArray<Caller>
  /** Returns a fresh access token for a caller, by index. */
  readonly tokenOf: (caller: number) => Promise<string>
  /** Creates another key in a caller's home tenant. */
  readonly addKey: (caller: number) => Promise<Pick<Caller, "tenant" | "application" | "key">>
  /** Switches a caller's home tenant to a team plan. */
  readonly becomeTeam: (caller: number) => Promise<void>
  /** Adds a budget to a caller's home tenant for each period. No call exceeds these budgets. */
  readonly addBudgets: (caller: number, periods: ReadonlyArray<string>) => Promise<void>
  /** Returns each caller's total charges according to the balance, in nano-USD. */
  readonly taken: () => Promise<ReadonlyArray<number>>
  /** Runs an operator command while the service is running, and returns its output. */
  readonly operate: (...args: ReadonlyArray<string>) => Promise<string>
  readonly stop: () => Promise<void>
}

export interface GatewayOptions {
  readonly name: string
  /** The path of the built service's `main.js`. */
  readonly main: string
  readonly cores: Cores
  readonly outside: Outside
  readonly directory: string
  /** The PostgreSQL database to use, instead of a SQLite file in `directory`. */
  readonly database?: string
  readonly flags?: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
  readonly configure?: (configuration: Readonly<Record<string, unknown>>) => object
  /** The number of workers, in addition to the owner process. By default, a single process does everything. */
  readonly workers?: number
}

const concurrency = 8

export const startGateway = async (options: GatewayOptions): Promise<Gateway> => {
  const { configure = (one) => one, cores, database, directory, flags = [], main, name, outside, workers } = options
  await mkdir(directory, { recursive: true })
  const file = join(directory, "config.json")
  // Disable verification, because it would start a minute after the service and slow down only some rounds.
  await writeFile(file, JSON.stringify({ ...configure({ ...configuration(outside) }), verify: false }, null, 2))
  const port = await freePort()
  const env = {
    NODE_ENV: "production",
    HOST: "127.0.0.1",
    PORT: String(port),
    DATA_DIR: join(directory, "data"),
    LOG_LEVEL: "error",
    BENCH_UPSTREAM_KEY: "upstream-key",
    // As in `npm start`.
    MALLOC_ARENA_MAX: "2",
    ...options.env,
    // All nodes on a database share one secret.
    ...(database !== undefined && { DATABASE_URL: database, TOLLGATE_SECRET: "the secret of the benchmark's nodes" })
  }
  const together = workers === undefined ? [] : ["--workers", String(workers)]
  const command = [main, "serve", "--config", file, ...together]
  const child = start(cores.served, [...nodeOptions, ...flags, ...command], { env, ipc: false })
  const said = tail(child)
  const base = `http://127.0.0.1:${port}`
  const ready = async () => (await fetch(`${base}/readyz`).catch(() => undefined))?.ok === true
  for (const deadline = Date.now() + 30_000; !(await ready()); await sleep(100)) {
    if (child.exitCode === null && Date.now() < deadline) continue
    await stop(child)
    throw new Error(`the service did not start: ${said()}`)
  }

  const callers: Array<Caller> = []
  const keys: Array<string> = []
  const tokenOf = (caller: number) => signIn(base, outside, `bench${caller}@example.com`)
  const balanceOf = async (caller: number): Promise<number> => {
    const path = `/v1/tenants/${callers[caller]!.tenant}/billing/credits`
    const { result } = await call<{ readonly balance: number }>("GET", base + path, await tokenOf(caller))
    return Math.round(result.balance * 1e9)
  }
  return {
    name,
    port,
    headers: {},
    keys,
    callers,
    pid: child.pid!,
    addCallers: async (count) => {
      const from = callers.length
      await inTurns(count, async (i) => {
        callers[from + i] = await makeKey(base, await tokenOf(from + i))
      })
      keys.push(...callers.slice(from).map(({ key }) => key))
    },
    tokenOf,
    addKey: async (caller) => {
      const { application, key, tenant } = await makeKey(base, await tokenOf(caller))
      return { application, key, tenant }
    },
    becomeTeam: async (caller) => {
      const path = `/v1/tenants/${callers[caller]!.tenant}/plan`
      await call("PUT", base + path, await tokenOf(caller), { plan: "team", seats: 5 })
    },
    addBudgets: async (caller, periods) => {
      const token = await tokenOf(caller)
      const limit = { usd: 90_000, tokens: 1_000_000_000, requests: 1_000_000_000, concurrent: 1_000_000 }
      for (const period of periods)
        await call("POST", `${base}/v1/tenants/${callers[caller]!.tenant}/budgets`, token, {
          name: period,
          limit,
          period
        })
    },
    taken: () => inTurns(callers.length, async (i) => credit * 1e9 - (await balanceOf(i))),
    operate: (...args) => operate(main, env, ...args),
    stop: () => stop(child)
  }
}

/** Runs an operator command and returns its standard output. Throws if the command fails. */
export const operate = async (
  main: string,
  env: Readonly<Record<string, string>>,
  ...args: ReadonlyArray<string>
): Promise<string> => {
  const run = promisify(execFile)(process.execPath, [main, ...args], { cwd: root, env: { ...process.env, ...env } })
  return (
    await run.catch((error: { stdout?: string }) => {
      throw new Error(`tollgate ${args.join(" ")} failed: ${error.stdout}`)
    })
  ).stdout
}

const inTurns = async <A>(count: number, of: (i: number) => Promise<A>): Promise<ReadonlyArray<A>> => {
  const results: Array<A> = []
  let next = 0
  const turn = async (): Promise<void> => {
    while (next < count) {
      const i = next++
      results[i] = await of(i)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, turn))
  return results
}

/** Sends a request and returns the parsed response. Throws unless the status is 2xx. */
export const call = async <A>(
  method: string,
  url: string,
  token?: string,
  body?: object
): Promise<{ readonly result: A; readonly id_token?: string }> => {
  const response = await fetch(url, {
    method,
    headers: { "content-type": "application/json", ...(token !== undefined && { authorization: `Bearer ${token}` }) },
    ...(body !== undefined && { body: JSON.stringify(body) })
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${url} returned ${response.status}: ${text.slice(0, 500)}`)
  return JSON.parse(text) as { readonly result: A }
}

/** Signs a user in through the issuer and returns an access token. The first sign-in creates the account. */
export const signIn = async (base: string, { issuer }: Outside, email: string): Promise<string> => {
  const { id_token } = await call("POST", `${issuer}/token`, undefined, { email })
  const { result } = await call<{ readonly token_response: { readonly access_token: string } }>(
    "POST",
    `${base}/v1/auth/google`,
    undefined,
    { id_token, client_id: "bench" }
  )
  return result.token_response.access_token
}

export const makeKey = async (base: string, token: string): Promise<Caller> => {
  const me = await call<{ readonly account: { readonly id: string; readonly tenant_id: string } }>(
    "GET",
    `${base}/v1/me`,
    token
  )
  const { id: account, tenant_id: tenant } = me.result.account
  const made = await call<{ readonly id: string; readonly api_key: string }>(
    "POST",
    `${base}/v1/tenants/${tenant}/applications`,
    token,
    { name: "bench", description: "drives the benchmark" }
  )
  return { account, tenant, application: made.result.id, key: made.result.api_key }
}
