/**
 * The server, the database and the TLS that the URL of a PostgreSQL database asks for. `sslmode` means what it means to libpq:
 * - `disable`: no TLS.
 * - `prefer`, or nothing: TLS where the server offers it, whatever its certificate is.
 * - `require`: TLS, whatever the certificate is. With `sslrootcert=FILE` as `verify-ca`.
 * - `verify-ca`: a certificate that a root has signed. `verify-full`: one that names the host, too.
 * The roots are those in `sslrootcert=FILE`; without it, or by `sslrootcert=system`, those that Node.js trusts.
 *
 * Where libpq does otherwise:
 * - With `sslrootcert` but no `sslmode` the certificate is verified in full. libpq does so for `sslrootcert=system` alone.
 * - `verify-ca` needs no `sslrootcert`.
 * - `prefer` does not go on without TLS where a server that offers it fails at it.
 */
import { Redacted } from "effect"
import { readFileSync } from "node:fs"
import { Client, Connection } from "pg"
import type { ClientConfig } from "pg"

/** Parameters of the URL that the driver does not get: it has a meaning of its own for each. */
const own = ["sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "options"] as const
type Params = Readonly<Partial<Record<(typeof own)[number], string>>>

/** The driver's connection settings. `prefersTls`: it goes on without TLS where the server offers none. */
export interface Target extends ClientConfig {
  readonly prefersTls?: boolean
}

/** For the driver. `options`: settings of each session, which those of the URL go before. Throws where a file of it cannot be read. */
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
    // oxlint-disable-next-line preserve-caught-error -- the innermost error is what an operator is told, and that does not name the parameter
    throw new Error(`${name}: ${path} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
}

/** A connection of the driver. */
export class TargetClient extends Client {
  #isConnected = false

  constructor(target: Target = {}) {
    super(target.prefersTls === true ? ({ ...target, connection: new TlsIfOffered(target) } as Target) : target)
    this.once("connect", () => (this.#isConnected = true))
  }

  /** The driver would wait for the end of a connection that failed at TLS, which never comes. */
  // oxlint-disable-next-line typescript/no-explicit-any -- the driver's own has two overloads
  override end(callback?: any): any {
    if (this.#isConnected) return callback === undefined ? super.end() : super.end(callback)
    ;(this as unknown as { readonly connection: DriverConnection }).connection.stream.destroy()
    return callback === undefined ? Promise.resolve() : callback()
  }
}

/** Goes on without TLS where the server offers none, which the driver takes for an error. */
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

/** Members of the driver's connection that its types leave out. */
interface DriverConnection extends Connection {
  readonly ssl: unknown
  connect(port: number | string, host?: string): void
  attachListeners(stream: Connection["stream"]): void
}
