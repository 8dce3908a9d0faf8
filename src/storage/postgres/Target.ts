/**
 * Reads the server, the database and the TLS options from a PostgreSQL URL. `sslmode` has the meanings that libpq defines:
 * - `disable`: no TLS.
 * - `prefer` (the default): TLS if the server offers it, with any certificate.
 * - `require`: TLS with any certificate; with `sslrootcert=FILE`, the same as `verify-ca`.
 * - `verify-ca`: a trusted root must have signed the certificate. `verify-full`: it must also contain the host.
 *
 * `sslrootcert=FILE` names the file that contains the trusted roots. Without it, or with `sslrootcert=system`, the roots of Node.js are trusted.
 *
 * Differences from libpq:
 * - If there is an `sslrootcert` but no `sslmode`, the certificate is verified in full. libpq verifies it in full only for `sslrootcert=system`.
 * - `verify-ca` does not require `sslrootcert`.
 * - `prefer` does not fall back to an unencrypted connection if the server offers TLS but the handshake fails.
 */
import { Redacted } from "effect"
import { readFileSync } from "node:fs"
import { Client, Connection } from "pg"
import type { ClientConfig } from "pg"

/** The URL parameters that are not passed to the driver, because it would interpret them differently. */
const own = ["sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "options"] as const
type Params = Readonly<Partial<Record<(typeof own)[number], string>>>

/** The driver's connection settings. `prefersTls` means that the connection continues without TLS if the server does not offer it. */
export interface Target extends ClientConfig {
  readonly prefersTls?: boolean
}

/** Builds the driver's settings. The URL's session options override `options`. Throws if a file named in the URL cannot be read. */
export const targetOf = (url: Redacted.Redacted, options = ""): Target => {
  const target = new URL(Redacted.value(url))
  const params: Params = Object.fromEntries(
    own.flatMap((name) => (target.searchParams.has(name) ? [[name, target.searchParams.get(name)!]] : []))
  )
  for (const name of own) target.searchParams.delete(name)
  const mode = params.sslmode ?? (params.sslrootcert === undefined ? "prefer" : "verify-full")
  const isSocket = target.searchParams.get("host")?.startsWith("/") === true
  return {
    connectionString: target.href,
    options: `${options} ${params.options ?? ""}`.trim(),
    ssl: mode === "disable" || isSocket ? false : tlsOf(mode, params),
    prefersTls: mode === "prefer"
  }
}

const tlsOf = (mode: string, params: Params): NonNullable<ClientConfig["ssl"]> => {
  const isLax = mode === "prefer"
  const hasRoot = !isLax && params.sslrootcert !== undefined && params.sslrootcert !== "system"
  return {
    rejectUnauthorized: !isLax && (mode !== "require" || hasRoot),
    ...(mode !== "verify-full" && { checkServerIdentity: () => undefined }),
    ...(hasRoot && { ca: contentOf("sslrootcert", params.sslrootcert!) }),
    ...(params.sslcert !== undefined && { cert: contentOf("sslcert", params.sslcert) }),
    ...(params.sslkey !== undefined && { key: contentOf("sslkey", params.sslkey) }),
    ...(params.sslpassword !== undefined && { passphrase: params.sslpassword })
  }
}

const contentOf = (name: string, path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch (error) {
    // oxlint-disable-next-line preserve-caught-error -- the operator sees only the innermost error, which must name the parameter
    throw new Error(`${name}: ${path} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
}

export class TargetClient extends Client {
  #isConnected = false

  constructor(target: Target = {}) {
    super(target.prefersTls === true ? ({ ...target, connection: new TlsIfOffered(target) } as Target) : target)
    this.once("connect", () => (this.#isConnected = true))
  }

  /** Ends the connection. After a failed TLS handshake, the driver would wait forever for the connection to end. */
  // oxlint-disable-next-line typescript/no-explicit-any -- the driver's method has two overloads
  override end(callback?: any): any {
    if (this.#isConnected) return callback === undefined ? super.end() : super.end(callback)
    ;(this as unknown as { readonly connection: DriverConnection }).connection.stream.destroy()
    return callback === undefined ? Promise.resolve() : callback()
  }
}

/** Continues without TLS if the server does not offer it. The driver itself would fail. */
class TlsIfOffered extends (Connection as unknown as new (target: Target) => DriverConnection) {
  override connect(port: number | string, host?: string): void {
    super.connect(port, host)
    const [negotiate] = this.stream.rawListeners("data")
    if (!this.ssl || negotiate === undefined) return
    this.stream.removeAllListeners("data").once("data", (answer: Buffer) => {
      if (answer.toString() !== "N") return negotiate(answer)
      this.attachListeners(this.stream)
      this.emit("sslconnect")
    })
  }
}

/** The members of the driver's connection that its types omit. */
interface DriverConnection extends Connection {
  readonly ssl: unknown
  connect(port: number | string, host?: string): void
  attachListeners(stream: Connection["stream"]): void
}
