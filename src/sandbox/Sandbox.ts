/**
 * The outside world in the same process: vendors, a payment processor, a mail server and an issuer on a loopback port, in their real wire formats.
 * Levers trigger events. The service calls this world over HTTP, as configured.
 */
import { Effect, FiberSet } from "effect"
import type { Clock, Scope } from "effect"
import * as Bills from "./Bills.ts"
import * as Calls from "./Calls.ts"
import * as Control from "./Control.ts"
import * as Faults from "./Faults.ts"
import type { LeversContract } from "./Levers.ts"
import { isBody, json } from "./Outside.ts"
import type { Body, SandboxFailed } from "./Outside.ts"
import type { LeverNote, SandboxInfo } from "../kernel/SandboxInfo.ts"
import * as SteeredClock from "./SteeredClock.ts"
import * as Switchboard from "./Switchboard.ts"
import { serviceNames, world } from "./World.ts"
import type { ServiceName } from "./World.ts"

const client_id = "sandbox-client"
const service_client_id = "sandbox-web"
const oauth_client = { client_id: "sandbox-oauth", redirect_uri: "http://127.0.0.1/callback" }
const trusted_client_id = "sandbox-desktop"

/** Merges two documents: objects entry by entry, arrays by concatenation. */
const merged = (one: Body, other: Body): Body => {
  const whole: Record<string, unknown> = { ...one }
  for (const [name, value] of Object.entries(other)) {
    const there = whole[name]
    if (isBody(there) && isBody(value)) whole[name] = merged(there, value)
    else whole[name] = Array.isArray(there) && Array.isArray(value) ? [...there, ...value] : value
  }
  return whole
}

export interface Settings {
  /** The folder for the state, such as the clock, keys, payments and jobs. Without it, each start begins with new state. */
  readonly data_dir?: string | undefined
  /** The port on the loopback interface; by default, any free port. */
  readonly port?: number | undefined
  /** The services to omit from the configuration; by default, the witnesses of the log. */
  readonly without?: ReadonlyArray<ServiceName> | undefined
}

export interface Sandbox extends SandboxInfo {
  readonly url: string
  /** The levers. `GET {control}` lists them. */
  readonly levers: ReadonlyArray<LeverNote>
  /** The clock that the service and the issuer use. */
  readonly clock: Clock.Clock
  /** The same clock, with a method to advance it. */
  readonly steered: SteeredClock.SteeredClock
  /** Connects the running service, with its levers and its address. */
  readonly connect: (levers: LeversContract, url?: string) => void
  /** The configuration document that directs a deployment to this sandbox. */
  readonly configuration: Body
}

/** The sandbox's configuration before its services add their entries. */
const base: Body = {
  service_name: "Tollgate",
  clients: [{ client_id, name: "Sandbox" }],
  oauth_clients: [
    {
      client_id: oauth_client.client_id,
      name: "Sandbox Application",
      redirect_uris: [oauth_client.redirect_uri],
      device: true
    },
    {
      client_id: trusted_client_id,
      name: "Sandbox Desktop",
      redirect_uris: [oauth_client.redirect_uri],
      trusted: true
    }
  ],
  // Anyone can sign in to a sandbox.
  registration: { open: true },
  email_sign_in: true,
  web_clients: [{ client_id: service_client_id, name: "Sandbox Website" }],
  contact_email: "operator@tollgate.localhost",
  // Tests sign in many people per minute.
  rate_limits: {
    sign_in: 1_000,
    token: 1_000,
    authorize: 1_000,
    sign_in_link: 1_000,
    client_token: 60,
    contact: 60,
    contact_per_day: 1_000
  },
  prices: { default_new_credits: 5, default_registration_credits: 1 }
}

export const make = ({
  data_dir,
  port = 0,
  without = ["witnesses"]
}: Settings): Effect.Effect<Sandbox, SandboxFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* SteeredClock.make(data_dir)
    const calls = Calls.make()
    const faults = Faults.make()
    const bills = Bills.make()
    const runPromise = yield* FiberSet.makeRuntimePromise()
    const { origin, plug } = yield* Switchboard.make({ port, calls, faults })

    const services = yield* Effect.forEach(serviceNames, (name) =>
      Effect.map(world[name]({ origin, data_dir, clock, calls, faults, bills }), (service) => ({ ...service, name }))
    )
    for (const { name, routes } of services) plug(routes, name)
    let connected: LeversContract | undefined
    const levers = [
      ...Control.routes({
        calls,
        faults,
        clock,
        moveJob: (vendor_id, move) =>
          services.map((service) => service.move?.(vendor_id, move)).find((moved) => moved !== undefined),
        levers: () => connected,
        run: (effect) => runPromise(Effect.withClock(effect, clock.clock))
      }),
      ...services.flatMap((service) => service.levers ?? [])
    ]
    plug(levers)
    const notes = levers.map(({ body, does, method, path, query }) => ({
      method,
      url: `${origin}${path}`,
      does,
      ...(query !== undefined && { query }),
      ...(body !== undefined && { body })
    }))
    plug([{ method: "GET", path: "/control", answer: () => json(200, { levers: notes }) }])

    return {
      url: origin,
      issuer: `${origin}/issuer`,
      control: `${origin}/control`,
      client_id,
      service_client_id,
      oauth_client,
      levers: notes,
      clock: clock.clock,
      steered: clock,
      connect: (levers, url) => {
        connected = levers
        if (url !== undefined) for (const service of services) service.connect?.(url)
      },
      configuration: services
        .filter(({ name }) => !without.includes(name))
        .reduce<Body>((whole, { configuration }) => merged(whole, configuration), base)
    }
  })
