/** A deployment with hostile vendors: the service in a separate process, with a proxy that corrupts the responses of the sandbox's vendors. */
import { Effect, Exit, Scope } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Sandbox from "../../../src/sandbox/Sandbox.ts"
import { freePort, freshFolder, start } from "../../../test/support/Service.ts"
import type { Person, Service } from "../../../test/support/Service.ts"
import type { OpenApi, Route } from "../Document.ts"
import { routesOf } from "../Document.ts"
import { restOf } from "../Rest.ts"
import type { AtRest } from "../Rest.ts"
import { vendors } from "./Calls.ts"
import * as Proxy from "./Proxy.ts"

export interface World {
  readonly service: Service
  readonly proxy: Proxy.Proxy
  readonly document: OpenApi
  readonly routes: ReadonlyArray<Route>
  readonly person: Person
  readonly key: string
  /** Reports faults at rest: the findings of `restOf`, and a balance that does not match the cost of the calls. */
  readonly rest: () => Promise<AtRest>
  readonly end: () => Promise<void>
}

type Json = Record<string, unknown>

/** How long a vendor may be silent before the service gives up, in seconds. */
const silence = 2

/** The user's initial credit, in USD. */
const credit = 100_000

const configurationOf = (sandbox: Sandbox.Sandbox, url: string): Json => {
  const whole = sandbox.configuration as Json
  const { upstreams, ...rest } = JSON.parse(JSON.stringify(whole).replaceAll(sandbox.url, url)) as {
    upstreams: Record<string, Json>
  } & Json
  const paths = {
    chat: "/chat-a/v1",
    messages: "/chat-a/v1",
    responses: "/chat-a/v1",
    google: "/google/v1beta",
    bedrock: "/bedrock"
  }
  const own = vendors.map((vendor) => [
    `by-${vendor}`,
    { base_url: url + paths[vendor], api_key: "sk-vendor-key", speaks: [vendor] }
  ])
  const models = vendors.map((vendor) => ({
    id: `by-${vendor}`,
    context_length: 100_000,
    max_output_tokens: 4_096,
    price: {
      prompt_usd_per_million: "3",
      completion_usd_per_million: "15",
      cached_prompt_usd_per_million: "0.3",
      cache_write_usd_per_million: "3.75"
    },
    upstreams: [
      { upstream: `by-${vendor}`, model: vendor === "bedrock" ? "anthropic.claude-sandbox-v1:0" : "sandbox-large" }
    ]
  }))
  return {
    ...rest,
    // The identity provider and the payment processor are not hostile here.
    identity: whole["identity"],
    registration: { open: true },
    payments: whole["payments"],
    prices: { default_new_credits: credit, default_registration_credits: 0 },
    upstreams: Object.fromEntries(
      [...Object.entries(upstreams), ...(own as Array<[string, Json]>)].map(([name, entry]) => [
        name,
        { ...entry, timeout_seconds: silence }
      ])
    ),
    models: [...(rest["models"] as ReadonlyArray<Json>), ...models]
  }
}

export const make = async (): Promise<World> => {
  const scope = Effect.runSync(Scope.make())
  const sandbox = await Effect.runPromise(Scope.extend(Sandbox.make({}), scope))
  const proxy = await Proxy.make(sandbox.url)
  const file = join(freshFolder(), "tollgate.json")
  writeFileSync(file, JSON.stringify(configurationOf(sandbox, proxy.url)))
  const service = await start({ port: await freePort(), args: ["--config", file], env: { LOG_LEVEL: "error" } })
  const { id_token } = (await service.call(`${sandbox.issuer}/token`, { json: { email: "ada@example.com" } })).body
  const signedIn = await service.call("/v1/auth/google", { json: { id_token, client_id: sandbox.client_id } })
  if (signedIn.status !== 200) throw new Error(`sign-in returned ${signedIn.status}: ${JSON.stringify(signedIn.body)}`)
  const { access_token: token, refresh_token } = signedIn.body.result.token_response
  const { account } = (await service.call("/v1/me", { token })).body.result
  const person = {
    token,
    refresh_token,
    account_id: account.id,
    tenant_id: account.tenant_id,
    email: "ada@example.com"
  }
  const document = (await service.call("/openapi.json")).body as OpenApi
  const forget = setInterval(
    () => void service.call(`${sandbox.control}/calls`, { method: "DELETE" }).catch(() => {}),
    10_000
  )
  const atRest = restOf(service, proxy.hangUp)
  return {
    service,
    proxy,
    document,
    routes: routesOf(document),
    person,
    key: await service.key(person),
    rest: async () => {
      proxy.ambient = []
      const { used, wrong } = await atRest()
      return { used, wrong: [...wrong, ...(await sumsOf(service, person))] }
    },
    end: async () => {
      clearInterval(forget)
      await service.discard()
      proxy.close()
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }
  }
}

/** Checks that the remaining credit is the initial credit minus the cost of the calls, and that no call has a negative cost. */
const sumsOf = async (service: Service, { tenant_id, token }: Person): Promise<ReadonlyArray<string>> => {
  const nano = (usd: number): bigint => BigInt(Math.round(usd * 1e9))
  let cost = 0n
  let calls = 0
  const wrong: Array<string> = []
  for (let cursor: string | undefined = ""; cursor !== undefined;) {
    const query: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`
    const { body } = await service.call(`/v1/tenants/${tenant_id}/usage?per_page=200${query}`, { token })
    const page = body.result as { records: ReadonlyArray<{ id: string; cost: number }>; next_cursor?: string | null }
    for (const record of page.records) {
      cost += nano(record.cost)
      calls++
      if (!(record.cost >= 0)) wrong.push(`${record.id} cost ${record.cost}`)
    }
    cursor = page.next_cursor ?? undefined
  }
  const { body } = await service.call(`/v1/tenants/${tenant_id}/billing/credits`, { token })
  const left = nano(body.result.balance)
  if (left !== nano(credit) - cost)
    wrong.push(`${calls} calls cost ${cost} nano-USD, but the balance fell by ${nano(credit) - left}`)
  return wrong
}
