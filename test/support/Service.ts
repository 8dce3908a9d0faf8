/** The real service, used over HTTP. It runs in a separate process with its own data folder. */
import { spawn } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Postgres from "./postgres.ts"

export const root = join(import.meta.dirname, "..", "..")

export interface Answer {
  readonly status: number
  readonly headers: Headers
  // oxlint-disable-next-line typescript/no-explicit-any -- tests inspect responses of any shape
  readonly body: any
}

export interface Call {
  readonly method?: string
  readonly token?: string
  readonly json?: unknown
  readonly headers?: Record<string, string>
  readonly raw?: string | Uint8Array
}

/** A user who has signed in to a sandbox. */
export interface Person {
  readonly token: string
  readonly refresh_token: string
  readonly account_id: string
  readonly tenant_id: string
  readonly email: string
}

export class Service {
  readonly url: string
  readonly port: number
  readonly folder: string
  readonly process: ChildProcess
  readonly stderr: Array<string>
  readonly stdout: Array<string>

  constructor(port: number, folder: string, process: ChildProcess, stdout: Array<string>, stderr: Array<string>) {
    this.url = `http://127.0.0.1:${port}`
    this.port = port
    this.folder = folder
    this.process = process
    this.stdout = stdout
    this.stderr = stderr
  }

  async call(path: string, { headers, json, method, raw, token }: Call = {}): Promise<Answer> {
    const response = await fetch(path.startsWith("http") ? path : this.url + path, {
      method: method ?? (json === undefined && raw === undefined ? "GET" : "POST"),
      redirect: "manual",
      headers: {
        ...(json !== undefined && { "content-type": "application/json" }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...headers
      },
      ...((json !== undefined || raw !== undefined) && { body: raw ?? JSON.stringify(json) })
    } as RequestInit)
    // Live events never end, so read only the head of the response.
    const isLive =
      json === undefined && raw === undefined && response.headers.get("content-type") === "text/event-stream"
    if (isLive) await response.body?.cancel()
    const text = isLive ? "" : await response.text()
    let body: unknown = text
    try {
      body = JSON.parse(text)
    } catch {
      // Not every response is JSON.
    }
    return { status: response.status, headers: response.headers, body }
  }

  /** Returns the addresses of the sandbox's issuer and control API. */
  async sandbox(): Promise<{ issuer: string; control: string; client_id: string }> {
    return (await this.call("/v1/sandbox")).body
  }

  // oxlint-disable-next-line typescript/no-explicit-any -- as above
  async control(path: string, json?: unknown, method?: string): Promise<any> {
    const { control } = await this.sandbox()
    return (
      await this.call(control + path, { ...(json !== undefined && { json }), ...(method !== undefined && { method }) })
    ).body
  }

  /** Signs a user in. `at` can name the issuer of another service's sandbox, and the client that this service knows. */
  async signIn(
    email: string,
    claims: object = {},
    at?: { readonly client_id: string; readonly issuer: string }
  ): Promise<Person> {
    const { client_id, issuer } = at ?? (await this.sandbox())
    const { id_token } = (await this.call(`${issuer}/token`, { json: { email, ...claims } })).body
    const signedIn = await this.call("/v1/auth/google", { json: { id_token, client_id } })
    if (signedIn.status !== 200) throw new Error(`sign-in answered ${signedIn.status} ${JSON.stringify(signedIn.body)}`)
    const { access_token: token, refresh_token } = signedIn.body.result.token_response
    const { account } = (await this.call("/v1/me", { token })).body.result
    return { token, refresh_token, account_id: account.id, tenant_id: account.tenant_id, email }
  }

  /** Creates an API key in the user's tenant. */
  async key(person: Person): Promise<string> {
    const made = await this.call(`/v1/tenants/${person.tenant_id}/applications`, {
      token: person.token,
      json: { name: "test", description: "" }
    })
    if (made.status !== 201) throw new Error(`making a key answered ${made.status} ${JSON.stringify(made.body)}`)
    return made.body.result.api_key
  }

  async balance(person: Person): Promise<number> {
    const { body } = await this.call(`/v1/tenants/${person.tenant_id}/billing/credits`, { token: person.token })
    return body.result.balance
  }

  // oxlint-disable-next-line typescript/no-explicit-any -- as above
  async ledger(person: Person): Promise<ReadonlyArray<any>> {
    return (await this.call(`/v1/tenants/${person.tenant_id}/billing/ledger?per_page=200`, { token: person.token }))
      .body.result.records
  }

  // oxlint-disable-next-line typescript/no-explicit-any -- as above
  async usage(person: Person): Promise<ReadonlyArray<any>> {
    return (await this.call(`/v1/tenants/${person.tenant_id}/usage?per_page=200`, { token: person.token })).body.result
      .records
  }

  /** Ends the process. Returns its exit code, or the signal that ended it. */
  end(signal: NodeJS.Signals = "SIGTERM"): Promise<number | NodeJS.Signals | null> {
    const { exitCode, signalCode } = this.process
    if (exitCode !== null || signalCode !== null) return Promise.resolve(exitCode ?? signalCode)
    return new Promise((resolve) => {
      this.process.once("exit", (code, killed) => resolve(code ?? killed))
      this.process.kill(signal)
    })
  }

  /** Ends the process and removes its folder. */
  async discard(): Promise<void> {
    await this.end("SIGKILL")
    if (Postgres.isWanted()) await Postgres.drop(this.folder)
    // Another service may still write to this folder.
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  }
}

export const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer()
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })

export const freshFolder = (): string => mkdtempSync(join(tmpdir(), "tollgate-"))

export interface StartOptions {
  /** The folder that contains `dist/`. The default is this build. */
  readonly build?: string
  readonly folder?: string
  readonly port?: number
  readonly args?: ReadonlyArray<string>
  readonly env?: Record<string, string>
  /** The largest file that the process may write, in bytes. Larger writes fail, like on a full disk. */
  readonly file_bytes_max?: number
}

/** The number of ports to try. A concurrent test may have taken a port that was free. */
const portsMax = 5

/** Starts `serve` and waits until it is ready. If the process exits first, fails with its output. */
export const start = async (options: StartOptions = {}, tries = 1): Promise<Service> => {
  const port = options.port ?? (await freePort())
  const folder = options.folder ?? freshFolder()
  // The flags of `npm start`.
  const serve = [process.execPath, "--max-semi-space-size=32", "dist/main.js", "serve", ...(options.args ?? [])]
  // `exec` replaces the shell, so the pid is the service's.
  const [program, ...args] =
    options.file_bytes_max === undefined
      ? serve
      : ["bash", "-c", `ulimit -S -f ${Math.ceil(options.file_bytes_max / 1024)} && exec "$0" "$@"`, ...serve]
  const env = await environmentOf({
    HOST: "127.0.0.1",
    PORT: String(port),
    DATA_DIR: folder,
    LOG_LEVEL: "warning",
    ...options.env
  })
  const child = spawn(program!, args, {
    cwd: options.build ?? root,
    env,
    stdio: ["ignore", "pipe", "pipe"]
  })
  const stdout: Array<string> = []
  const stderr: Array<string> = []
  child.stdout.setEncoding("utf8").on("data", (text: string) => stdout.push(text))
  child.stderr.setEncoding("utf8").on("data", (text: string) => stderr.push(text))
  const service = new Service(port, folder, child, stdout, stderr)
  while (child.exitCode === null) {
    const ready = await fetch(`${service.url}/readyz`).then(
      (response) => response.status === 200,
      () => false
    )
    if (ready) return service
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const said = `${stdout.join("")}${stderr.join("")}`
  if (options.port === undefined && said.includes("is in use by another process") && tries < portsMax) {
    return start({ ...options, folder }, tries + 1)
  }
  throw new Error(`serve ended with ${child.exitCode}: ${said}`)
}

/** The exit code and output of a command. */
export interface Finished {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Builds a process environment. If tests use PostgreSQL, each data folder has its own database. */
export const environmentOf = async (own: Record<string, string>): Promise<NodeJS.ProcessEnv> => {
  const { DATA_DIR: folder } = own
  if (!Postgres.isWanted() || folder === undefined) return { ...process.env, ...own }
  return { ...process.env, DATABASE_URL: await Postgres.databaseOf(folder), ...own }
}

/** Runs a command in a separate process and waits for it. */
export const command = async (args: ReadonlyArray<string>, own: Record<string, string> = {}): Promise<Finished> => {
  const env = await environmentOf(own)
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ["dist/main.js", ...args], { cwd: root, env })
    let stdout = ""
    let stderr = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text))
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text))
    child.once("close", (code) => resolve({ code, stdout, stderr }))
  })
}
