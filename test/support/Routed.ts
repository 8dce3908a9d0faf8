/** A service with fake vendors as upstreams, and an API key. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { FakeVendors } from "./FakeVendors.ts"
import { freePort, freshFolder, start } from "./Service.ts"
import type { Answer, Person, Service } from "./Service.ts"

/** A model for the configuration file. Prompt tokens cost 1 USD per million, answer tokens 2 USD. `more` adds fields. */
export const modelOf = (id: string, upstreams: ReadonlyArray<string | object>, more: object = {}) => ({
  id,
  context_length: 8_000,
  max_output_tokens: 2_000,
  price: { prompt_usd_per_million: "1", completion_usd_per_million: "2" },
  upstreams: upstreams.map((one) => (typeof one === "string" ? { upstream: one } : one)),
  ...more
})

export class Routed {
  readonly vendors: FakeVendors
  readonly service: Service
  readonly world: Service
  readonly who: Person
  readonly key: string

  private constructor(vendors: FakeVendors, service: Service, world: Service, who: Person, key: string) {
    this.vendors = vendors
    this.service = service
    this.world = world
    this.who = who
    this.key = key
  }

  /** `upstreams` maps vendor names to additional fields. The vendor `closed` accepts no connections. */
  static async start(upstreams: Readonly<Record<string, object>>, file: object): Promise<Routed> {
    const vendors = await FakeVendors.start()
    const world = await start()
    const { issuer } = await world.sandbox()
    const closed = `http://127.0.0.1:${await freePort()}`
    const config = join(freshFolder(), "tollgate.json")
    writeFileSync(
      config,
      JSON.stringify({
        clients: [{ client_id: "console", name: "Console" }],
        identity: { google: { issuer, audiences: ["sandbox-google"] } },
        registration: { open: true },
        prices: { default_new_credits: 6, default_registration_credits: 0 },
        upstreams: Object.fromEntries(
          Object.entries(upstreams).map(([name, more]) => [
            name,
            { base_url: `${name === "closed" ? closed : vendors.origin}/${name}/v1`, api_key: "k", ...more }
          ])
        ),
        ...file
      })
    )
    const service = await start({ port: await freePort(), args: ["--config", config] })
    const who = await service.signIn("routed@example.com", {}, { client_id: "console", issuer })
    return new Routed(vendors, service, world, who, await service.key(who))
  }

  async stop(): Promise<void> {
    await Promise.all([this.service.discard(), this.world.discard()])
    this.vendors.close()
  }

  chat(model: string, more: object = {}, key = this.key): Promise<Answer> {
    return this.service.call("/v1/chat/completions", {
      token: key,
      json: { model, messages: [{ role: "user", content: "hello" }], max_tokens: 20, ...more }
    })
  }

  /** Returns the vendors that one request called, in order. */
  async askedBy(call: () => Promise<unknown>): Promise<ReadonlyArray<string>> {
    const before = this.vendors.asked.length
    await call()
    return this.vendors.order.slice(before)
  }
}
