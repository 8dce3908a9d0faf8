/** The service with a configuration file, on a folder that outlives its processes; and the people and keys by which it is called. */
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
  /** The process at the moment; it is another after each restart. */
  readonly service: () => Service
  /** Ends the process in this way and starts another; answers the milliseconds until that is ready. */
  readonly restart: (signal: "SIGTERM" | "SIGKILL") => Promise<number>
  readonly end: () => Promise<void>
}

const people = 25

export const make = async (vendor: string, callers: number): Promise<Deployment> => {
  const scope = Effect.runSync(Scope.make())
  const sandbox = await Effect.runPromise(Scope.extend(Sandbox.make({}), scope))
  const [folder, port] = [freshFolder(), await freePort()]
  const file = join(folder, "tollgate.json")
  writeFileSync(
    file,
    JSON.stringify({
      clients: [{ client_id: sandbox.client_id, name: "Soak" }],
      identity: (sandbox.configuration as { readonly identity: unknown }).identity,
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
  const begin = () =>
    start({ folder, port, args: ["--config", file], env: { LOG_LEVEL: "error", MALLOC_ARENA_MAX: "2" } })
  let service = await begin()
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
    service: () => service,
    restart: async (signal) => {
      const began = performance.now()
      const code = await service.end(signal)
      if (signal === "SIGTERM" && code !== 0) throw new Error(`SIGTERM: the service ended with ${code}`)
      service = await begin()
      return performance.now() - began
    },
    end: async () => {
      await service.discard()
      rmSync(folder, { recursive: true, force: true })
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }
  }
}
