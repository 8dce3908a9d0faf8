/** Runs the service with a configuration file, users and their keys, on a folder that outlives its processes. */
import Sqlite from "better-sqlite3"
import { Effect, Exit, Scope } from "effect"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Sandbox from "../../src/sandbox/Sandbox.ts"
import { freePort, freshFolder, start } from "../../test/support/Service.ts"
import type { Person, Service } from "../../test/support/Service.ts"

export interface Deployment {
  readonly port: number
  readonly folder: string
  readonly people: ReadonlyArray<Person>
  readonly keys: ReadonlyArray<string>
  /** The keys of callers that sometimes disconnect early: all of the last user's keys. */
  readonly leavers: ReadonlySet<string>
  /** The vendor's URL. */
  readonly vendor: string
  /** Returns the current process. Each restart replaces it. */
  readonly service: () => Service
  /** The file into which `Probe.cjs` writes the processes' memory. */
  readonly memory: string
  /** Ends the process with this signal and starts another one. Returns the time until it is ready, in milliseconds. */
  readonly restart: (signal: "SIGTERM" | "SIGKILL") => Promise<number>
  /** Holds the write lock for this many milliseconds, as another program might. */
  readonly lock: (millis: number) => Promise<void>
  /** Returns the faults of processes that have ended, including their fatal log lines. */
  readonly faults: () => ReadonlyArray<string>
  readonly end: () => Promise<void>
}

export interface Options {
  readonly vendor: string
  readonly callers: number
  /** The minutes of each life at which to write a heap snapshot, separated by commas. */
  readonly snapshots: string | undefined
}

const people = 25

export const make = async ({ callers, snapshots, vendor }: Options): Promise<Deployment> => {
  const scope = Effect.runSync(Scope.make())
  const sandbox = await Effect.runPromise(Scope.extend(Sandbox.make({}), scope))
  const [folder, port] = [freshFolder(), await freePort()]
  const file = join(folder, "tollgate.json")
  writeFileSync(
    file,
    JSON.stringify({
      clients: [{ client_id: sandbox.client_id, name: "Soak" }],
      identity: (sandbox.configuration as { readonly identity: unknown }).identity,
      registration: { open: true },
      prices: { default_new_credits: 1_000, default_registration_credits: 0 },
      rate_limits: { sign_in: 100_000 },
      upstreams: { vendor: { base_url: vendor, api_key: "k", timeout_seconds: 2 } },
      models: [
        {
          id: "m",
          context_length: 10_000,
          max_output_tokens: 1_000,
          price: { prompt_usd_per_million: "1", completion_usd_per_million: "2" },
          upstreams: [{ upstream: "vendor" }]
        }
      ]
    })
  )
  const memory = join(snapshots === undefined ? folder : freshFolder(), "memory")
  const env = {
    LOG_LEVEL: "error",
    MALLOC_ARENA_MAX: "2",
    NODE_OPTIONS: `--require "${join(import.meta.dirname, "Probe.cjs")}"`,
    SOAK_MEMORY: memory,
    SOAK_SNAPSHOTS: snapshots ?? ""
  }
  const begin = () => start({ folder, port, args: ["--config", file], env })
  let service = await begin()
  const faults: Array<string> = []
  const signIn = async (email: string): Promise<Person> => {
    const { id_token } = (await service.call(`${sandbox.issuer}/token`, { json: { email } })).body
    const signedIn = await service.call("/v1/auth/google", { json: { id_token, client_id: sandbox.client_id } })
    const { access_token: token, refresh_token } = signedIn.body.result.token_response
    const { account } = (await service.call("/v1/me", { token })).body.result
    return { token, refresh_token, account_id: account.id, tenant_id: account.tenant_id, email }
  }
  const all: Array<Person> = []
  for (let index = 0; index < people; index++) all.push(await signIn(`person${index}@example.com`))
  const keys: Array<string> = []
  for (let index = 0; index < callers; index++) keys.push(await service.key(all[index % people]!))
  return {
    port,
    folder,
    people: all,
    keys,
    leavers: new Set(keys.filter((_, index) => index % people === people - 1)),
    vendor,
    service: () => service,
    memory,
    restart: async (signal) => {
      const began = performance.now()
      const code = await service.end(signal)
      if (signal === "SIGTERM" && code !== 0) faults.push(`SIGTERM: the service exited with ${code}`)
      faults.push(...fatal(service))
      service = await begin()
      return performance.now() - began
    },
    lock: async (millis) => {
      const db = new Sqlite(join(folder, "tollgate.db"), { timeout: 0 })
      while (!isBegun(db)) await pause(10)
      await pause(millis)
      db.exec("ROLLBACK")
      db.close()
    },
    faults: () => [...faults, ...fatal(service)],
    end: async () => {
      await service.discard()
      rmSync(folder, { recursive: true, force: true })
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }
  }
}

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

/** Tries to take the write lock, and returns whether it was free. */
const isBegun = (db: Sqlite.Database): boolean => {
  try {
    db.exec("BEGIN IMMEDIATE")
    return true
  } catch {
    return false
  }
}

const fatal = ({ stderr }: Service): ReadonlyArray<string> =>
  stderr
    .join("")
    .split("\n")
    .filter((line) => line.includes('"logLevel":"FATAL"'))
