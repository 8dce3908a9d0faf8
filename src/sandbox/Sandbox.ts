/**
 * The outside world in process: what the service would reach over the internet, on a loopback port of its own and in the vendors'
 * own wire formats. The service knows it only by the addresses in its configuration.
 */
import type { Clock } from "effect"
import { Effect } from "effect"
import type { Scope } from "effect"
import { createServer } from "node:http"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { chat } from "./Chat.ts"
import { control } from "./Control.ts"
import * as Issuer from "./Issuer.ts"
import type { LeversContract } from "./Levers.ts"
import { json, Outside } from "./Outside.ts"
import type { Service, ServiceName } from "./Outside.ts"
import type { SandboxInfo } from "./SandboxInfo.ts"
import * as SteeredClock from "./SteeredClock.ts"

export interface Sandbox extends SandboxInfo {
  readonly clock: Clock.Clock
  /** The configuration of a deployment whose outside world this is. */
  readonly configuration: unknown
  /** Gives the control interface its hold on the service. */
  readonly connect: (levers: LeversContract) => void
}

const bodyMax = 64 * 1024 * 1024

export const make = ({ data_dir }: { readonly data_dir: string }): Effect.Effect<Sandbox, never, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = SteeredClock.make(data_dir)
    const outside = new Outside()
    let levers: LeversContract | undefined
    let url = ""
    const issuer = yield* Effect.promise(() => Issuer.make(data_dir, clock.now, () => `${url}/issuer`))

    /** Each outside service by the first part of its path. */
    const mounted: Readonly<Record<string, readonly [ServiceName, Service]>> = {
      "chat-a": ["chat", chat],
      "chat-b": ["chat", chat],
      issuer: ["identity", issuer]
    }

    const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const { pathname, searchParams } = new URL(request.url ?? "/", "http://sandbox")
      const body = await read(request)
      const exchange = {
        method: request.method ?? "GET",
        path: pathname,
        query: searchParams,
        headers: request.headers,
        body,
        response
      }
      const [, first = "", ...rest] = pathname.split("/")
      if (first === "control") {
        return control(`/${rest.join("/")}`, exchange, { outside, clock, levers: () => levers })
      }
      const found = Object.hasOwn(mounted, first) ? mounted[first] : undefined
      return found === undefined
        ? json(response, 404, { error: `${pathname}: there is nothing here` })
        : outside.receive(found[0], exchange, found[1])
    }

    const server = yield* Effect.acquireRelease(
      Effect.async<Server>((resume) => {
        const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
          serve(request, response).catch((error: unknown) => {
            if (response.headersSent) response.destroy()
            else json(response, 400, { error: error instanceof Error ? error.message : "unreadable" })
          })
        })
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) =>
        Effect.async<void>((resume) => {
          server.close(() => resume(Effect.void))
          server.closeAllConnections()
        })
    )
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

    return {
      issuer: `${url}/issuer`,
      control: `${url}/control`,
      client_id: "sandbox-client",
      service_client_id: "sandbox-web",
      oauth_client: { client_id: "sandbox-oauth", redirect_uri: "http://127.0.0.1/callback" },
      clock: clock.clock,
      configuration: configuration(url),
      connect: (to) => {
        levers = to
      }
    }
  })

const read = (request: IncomingMessage): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const chunks: Array<Buffer> = []
    let size = 0
    request.on("data", (chunk: Buffer) => {
      size += chunk.length
      if (size > bodyMax) reject(new Error("the body is too large"))
      else chunks.push(chunk)
    })
    request.once("error", reject)
    request.once("end", () => {
      const text = Buffer.concat(chunks).toString("utf8")
      try {
        resolve(text === "" ? undefined : JSON.parse(text))
      } catch {
        resolve(text)
      }
    })
  })

const configuration = (url: string) => {
  const provider = { issuer: `${url}/issuer`, audiences: [Issuer.audience] }
  const model = (id: string, description: string, prompt: string, completion: string, upstreams = ["sandbox-a"]) => ({
    id,
    name: id,
    description,
    context_length: 128_000,
    max_output_tokens: 4_096,
    price: { prompt_usd_per_million: prompt, completion_usd_per_million: completion },
    upstreams: upstreams.map((upstream) => ({ upstream }))
  })
  return {
    clients: [{ client_id: "sandbox-client", name: "Sandbox" }],
    identity: { google: provider, microsoft: provider },
    upstreams: {
      "sandbox-a": { base_url: `${url}/chat-a/v1`, api_key: "sandbox" },
      "sandbox-b": { base_url: `${url}/chat-b/v1`, api_key: "sandbox" }
    },
    models: [
      model("sandbox-small", "Repeats what you say, cheaply", "0.15", "0.60"),
      model("sandbox-large", "Repeats what you say, at length", "3", "15"),
      model("sandbox-fraction", "Costs a fraction of a nano-USD a token", "0.0375", "0.15"),
      model("sandbox-failover", "Has a second upstream", "0.15", "0.60", ["sandbox-a", "sandbox-b"])
    ],
    auto: "sandbox-small",
    prices: { default_new_credits: 5, default_registration_credits: 1 }
  }
}
