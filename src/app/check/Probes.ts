/**
 * Tests the configured upstreams, identity providers, mail server and payment processor. The probes cost nothing.
 *
 * Where the specification is silent:
 * - An upstream's probe requests its model list with the configured key. A rejected key (401, 403) or a missing response fails the check.
 *   Any other response passes, because some vendors provide no list of models. For the mail server, the payment processor,
 *   GitHub, and upstreams with AWS, Google Cloud or Entra credentials, the probe only opens a connection.
 * - Each probe times out after ten seconds.
 */
import * as GitHub from "../../upstream/identity/GitHub.ts"
import { Clock, Effect, Redacted } from "effect"
import { connect } from "node:net"
import type { ConfigFile } from "../Config.ts"
import { headerOf, usualHeader } from "../../upstream/models/Credential.ts"

export interface Probed {
  /** The entry of the configuration that defines the connection, such as `upstreams.openai`. */
  readonly entry: string
  readonly address: string
  /** The problem and its remedy; `undefined` if the probe succeeded. */
  readonly fault: string | undefined
  /** The server's clock in Unix milliseconds, if its response contained a date. */
  readonly date?: number | undefined
  readonly now: number
}

interface Probe {
  readonly entry: string
  readonly address: string
  readonly run: (signal: AbortSignal) => Promise<Outcome>
}

type Outcome = Pick<Probed, "fault" | "date">

const timeout = "10 seconds"

const ask = async (
  url: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal
): Promise<ProbeResponse> => {
  const response = await fetch(url, { headers, signal, redirect: "manual" })
  await response.body?.cancel()
  const date = Date.parse(response.headers.get("date") ?? "")
  return { status: response.status, date: Number.isNaN(date) ? undefined : date }
}

interface ProbeResponse extends Pick<Outcome, "date"> {
  readonly status: number
}

/** Opens a connection and closes it again. */
const reach = (host: string, port: number, signal: AbortSignal): Promise<Outcome> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port })
    signal.addEventListener("abort", () => socket.destroy())
    socket.once("error", reject).once("connect", () => {
      socket.destroy()
      resolve({ fault: undefined })
    })
  })

const portIn = (url: URL): number => Number(url.port || (url.protocol === "http:" ? 80 : 443))

/** Returns a URL's host, without the brackets around an IPv6 address. */
const hostIn = (url: URL): string => url.hostname.replace(/^\[|\]$/g, "")

const connects = (entry: string, address: string): Probe => {
  const url = new URL(address)
  return { entry, address, run: (signal) => reach(hostIn(url), portIn(url), signal) }
}

type UpstreamEntry = ConfigFile["upstreams"][string]

const upstream = (name: string, settings: UpstreamEntry, variables: Variables): Probe => {
  const { api_key, api_key_env, base_url, credential, headers, speaks } = settings
  const entry = `upstreams.${name}`
  if (settings.aws !== undefined || settings.google_cloud !== undefined || settings.entra !== undefined)
    return connects(entry, base_url)
  const key = (api_key_env === undefined ? api_key : variables[api_key_env]) ?? ""
  const sent = headerOf(credential ?? usualHeader(speaks[0]!), Redacted.make(key))
  const url = `${base_url.replace(/\/$/, "")}/models`
  return {
    entry,
    address: url,
    run: async (signal) => {
      const { date, status } = await ask(url, { "anthropic-version": "2023-06-01", ...headers, ...sent }, signal)
      if (status !== 401 && status !== 403) return { fault: undefined, date }
      const fault = `rejects the key (${status}): ${api_key_env === undefined ? "set api_key_env" : `check the variable ${api_key_env}`}`
      return { fault, date }
    }
  }
}

const issuer = (name: string, address: string): Probe => {
  const url = `${address.replace(/\/$/, "")}/.well-known/openid-configuration`
  return {
    entry: `identity.${name}`,
    address: url,
    run: async (signal) => {
      const { date, status } = await ask(url, {}, signal)
      return { fault: status === 200 ? undefined : `returned ${status}; check the issuer's address`, date }
    }
  }
}

const mailServer = ({ host, port, secure }: NonNullable<ConfigFile["mail"]>): Probe => {
  const reached = port ?? (secure ? 465 : 587)
  return { entry: "mail", address: `${host}:${reached}`, run: (signal) => reach(host, reached, signal) }
}

export interface Variables {
  readonly [name: string]: string | undefined
}

const probesOf = (file: ConfigFile, variables: Variables): ReadonlyArray<Probe> => [
  ...Object.entries(file.upstreams).map(([name, settings]) => upstream(name, settings, variables)),
  ...Object.entries(file.identity).map(([name, settings]) =>
    settings.issuer === undefined
      ? connects(`identity.${name}`, settings.api_url ?? GitHub.api)
      : issuer(name, settings.issuer)
  ),
  ...(file.mail === undefined ? [] : [mailServer(file.mail)]),
  ...(file.payments === undefined ? [] : [connects("payments", file.payments.base_url ?? "https://api.stripe.com")])
]

const faultOf = (error: unknown): string => {
  const { cause, code, message } = error as Error & {
    readonly code?: string
    readonly cause?: { readonly code?: string }
  }
  return `cannot be reached (${cause?.code ?? code ?? message})`
}

const probed = ({ address, entry, run }: Probe): Effect.Effect<Probed> =>
  Effect.tryPromise({ try: run, catch: faultOf }).pipe(
    Effect.timeoutFail({ duration: timeout, onTimeout: () => `did not respond within ${timeout}` }),
    Effect.merge,
    Effect.map((outcome) => (typeof outcome === "string" ? { fault: outcome } : outcome)),
    Effect.zipWith(Clock.currentTimeMillis, (outcome, now) => ({ entry, address, ...outcome, now }))
  )

/** Runs all probes concurrently. `variables` are the environment variables. */
export const probe = (file: ConfigFile, variables: Variables): Effect.Effect<ReadonlyArray<Probed>> =>
  Effect.forEach(probesOf(file, variables), probed, { concurrency: "unbounded" })
