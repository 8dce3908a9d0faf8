/** TLS to PostgreSQL, by each `sslmode`: to a server that offers it, with a certificate of a root of its own, and to one that does not. */
import { Effect, Redacted } from "effect"
import { execFileSync, spawnSync } from "node:child_process"
import { chownSync, copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Engine from "../../src/storage/engine/Engine.ts"
import { postgresDatabase } from "../../src/storage/database/Location.ts"
import { TargetClient, targetOf } from "../../src/storage/postgres/Target.ts"
import { commandHere } from "../support/CommandLine.ts"
import { startServer } from "../support/postgres.ts"
import type { Server } from "../support/postgres.ts"
import { command } from "../support/Service.ts"
import { askAt } from "../support/tables.ts"

const hasOpenssl = spawnSync("openssl", ["version"]).status === 0

const folder = mkdtempSync(join(tmpdir(), "tollgate-"))
const root = join(folder, "root.crt")
const openssl = (...args: ReadonlyArray<string>) => execFileSync("openssl", args, { cwd: folder, stdio: "pipe" })

let server: Server

beforeAll(async () => {
  if (!hasOpenssl) return
  for (const name of ["root", "other"])
    openssl(
      "req",
      "-x509",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-days",
      "2",
      "-subj",
      `/CN=${name}`,
      "-keyout",
      `${name}.key`,
      "-out",
      `${name}.crt`
    )
  openssl(
    "req",
    "-newkey",
    "rsa:2048",
    "-nodes",
    "-subj",
    "/CN=localhost",
    "-keyout",
    "server.key",
    "-out",
    "server.csr"
  )
  writeFileSync(join(folder, "names"), "subjectAltName=DNS:localhost")
  openssl(
    "x509",
    "-req",
    "-in",
    "server.csr",
    "-CA",
    "root.crt",
    "-CAkey",
    "root.key",
    "-CAcreateserial",
    "-days",
    "2",
    "-extfile",
    "names",
    "-out",
    "server.crt"
  )
  openssl(
    "req",
    "-newkey",
    "rsa:2048",
    "-nodes",
    "-subj",
    "/CN=certified",
    "-keyout",
    "client.key",
    "-out",
    "client.csr"
  )
  openssl(
    "x509",
    "-req",
    "-in",
    "client.csr",
    "-CA",
    "root.crt",
    "-CAkey",
    "root.key",
    "-CAcreateserial",
    "-days",
    "2",
    "-out",
    "client.crt"
  )
  openssl("rsa", "-aes256", "-passout", "pass:hunter2", "-in", "client.key", "-out", "sealed.key")
  server = await startServer(["fsync=off"])
})
afterAll(async () => {
  if (hasOpenssl) await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

const switchTls = async (setting: "on" | "off") => {
  const [row] = await askAt<{ folder: string }>(server.url, "SELECT current_setting('data_directory') AS folder")
  const data = row!.folder
  const { gid, uid } = statSync(data)
  for (const name of ["server.crt", "server.key", "root.crt"]) {
    copyFileSync(join(folder, name), join(data, name))
    chownSync(join(data, name), uid, gid)
  }
  execFileSync("chmod", ["600", join(data, "server.key")])
  const client = new TargetClient(targetOf(Redacted.make(server.url)))
  await client.connect()
  await client.query("ALTER SYSTEM SET ssl_ca_file = 'root.crt'")
  await client.query(`ALTER SYSTEM SET ssl = ${setting}`)
  await client.query("SELECT pg_reload_conf()")
  for (;;) if ((await client.query("SHOW ssl")).rows[0].ssl === setting) break
  await client.end()
}

const urlOf = (params: string, host = "127.0.0.1"): string => {
  const url = new URL(server.url)
  url.hostname = host
  return url.href + (params === "" ? "" : `?${params}`)
}

/** Whether a connection by this URL has TLS. */
const hasTls = async (url: string): Promise<boolean> => {
  const client = new TargetClient(targetOf(Redacted.make(url)))
  await client.connect()
  const { rows } = await client.query("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
  await client.end()
  return rows[0].ssl
}

/** What is said where the database is looked at. */
const refusal = (url: string): Promise<string> =>
  Effect.runPromise(Effect.flip(Engine.look(postgresDatabase(url)!, { writing: true }))).then(({ message }) => message)

describe.skipIf(!hasOpenssl)("a server that offers TLS (its certificate is made by openssl)", () => {
  beforeAll(() => switchTls("on"))

  it.each<[string, boolean, string?]>([
    ["sslmode=disable", false],
    ["", true],
    ["sslmode=prefer", true],
    ["sslmode=require", true],
    ["sslmode=require&sslrootcert=ROOT", true],
    ["sslmode=verify-ca&sslrootcert=ROOT", true],
    ["sslmode=verify-full&sslrootcert=ROOT", true, "localhost"],
    ["sslrootcert=ROOT", true, "localhost"]
  ])("is spoken to with '%s': TLS is %s", async (params, tls, host) => {
    expect(await hasTls(urlOf(params.replace("ROOT", root), host))).toBe(tls)
  })

  it.each([
    ["sslmode=verify-full&sslrootcert=ROOT", /certificate for another host: use the name/],
    ["sslrootcert=ROOT", /certificate for another host/],
    ["sslmode=verify-ca", /a certificate that is not trusted .*sslrootcert=FILE/],
    ["sslmode=verify-full&sslrootcert=system", /a certificate that is not trusted/],
    ["sslmode=require&sslrootcert=OTHER", /a certificate that is not trusted/],
    ["sslmode=verify-ca&sslrootcert=OTHER", /a certificate that is not trusted/],
    ["sslmode=require&sslrootcert=/no/such.crt", /sslrootcert: \/no\/such\.crt cannot be read \(ENOENT\)/]
  ])("is refused with '%s'", async (params, words) => {
    expect(await refusal(urlOf(params.replace("ROOT", root).replace("OTHER", join(folder, "other.crt"))))).toMatch(
      words
    )
  })

  it("is served and read over TLS, without a word of the driver on stderr", async () => {
    for (const mode of ["prefer", "require", "verify-ca"]) {
      const DATABASE_URL = urlOf(`sslmode=${mode}${mode === "verify-ca" ? `&sslrootcert=${root}` : ""}`)
      expect(await command(["migrate"], { DATA_DIR: folder, DATABASE_URL })).toMatchObject({ code: 0, stderr: "" })
      expect(await command(["verify"], { DATA_DIR: folder, DATABASE_URL })).toMatchObject({ code: 0 })
    }
  })
})

describe.skipIf(!hasOpenssl)("a server that lets a user in by a certificate", () => {
  beforeAll(async () => {
    await switchTls("on")
    const [row] = await askAt<{ file: string }>(server.url, "SELECT current_setting('hba_file') AS file")
    writeFileSync(row!.file, `hostssl all certified 127.0.0.1/32 cert\n${readFileSync(row!.file, "utf8")}`)
    await askAt(server.url, "CREATE ROLE certified LOGIN", "SELECT pg_reload_conf()")
    while (!/valid client certificate/.test(await refusal(certified("sslmode=require")).catch(() => "")));
  })

  const certified = (params: string): string => {
    const url = new URL(urlOf(params.replaceAll("FOLDER", folder)))
    url.username = "certified"
    url.password = ""
    return url.href
  }

  it.each([
    "sslmode=require&sslcert=FOLDER/client.crt&sslkey=FOLDER/client.key",
    "sslmode=verify-ca&sslrootcert=FOLDER/root.crt&sslcert=FOLDER/client.crt&sslkey=FOLDER/client.key",
    "sslcert=FOLDER/client.crt&sslkey=FOLDER/sealed.key&sslpassword=hunter2"
  ])("takes '%s'", async (params) => {
    expect(await hasTls(certified(params))).toBe(true)
  })

  it.each([
    ["sslmode=require", /rejects this user: .*valid client certificate/],
    [
      "sslmode=require&sslcert=FOLDER/client.crt&sslkey=FOLDER/none.key",
      /sslkey: .*none\.key cannot be read \(ENOENT\)/
    ],
    ["sslmode=require&sslcert=FOLDER/other.crt&sslkey=FOLDER/other.key", /rejects this client's certificate/],
    [
      "sslmode=require&sslcert=FOLDER/client.crt&sslkey=FOLDER/other.key",
      /the sslkey in the URL of .* does not match its sslcert/
    ],
    [
      "sslmode=require&sslcert=FOLDER/client.crt&sslkey=FOLDER/sealed.key&sslpassword=wrong",
      /sslpassword does not decrypt it/
    ],
    ["sslmode=require&sslcert=FOLDER/client.crt&sslkey=FOLDER/sealed.key", /sslpassword does not decrypt it/]
  ])("is not entered with '%s'", async (params, words) => {
    const said = await refusal(certified(params))
    expect(said).toMatch(words)
    expect(said).not.toContain("hunter2")
  })
})

describe.skipIf(!hasOpenssl)("a server that offers none", () => {
  beforeAll(() => switchTls("off"))

  it.each(["", "sslmode=disable", "sslmode=prefer"])("is spoken to with '%s' all the same", async (params) => {
    expect(await hasTls(urlOf(params))).toBe(false)
  })

  it.each(["sslmode=require", "sslmode=verify-ca", "sslmode=verify-full"])("is refused with '%s'", async (params) => {
    expect(await refusal(urlOf(params))).toMatch(/does not offer TLS/)
  })
})

describe("a URL", () => {
  it.each([
    ["sslmode=always", "sslmode must be one of disable, prefer, require, verify-ca, verify-full"],
    ["sslmode=allow", "sslmode must be one of disable"],
    ["ssl=true", "use sslmode instead of ssl"],
    ["sslmode=require&sslrootcert=system", "sslrootcert=system requires sslmode=verify-full"],
    ["sslmode=require&sslcert=/c.crt", "sslcert and sslkey must be set together"]
  ])("is refused with '%s'", async (params, words) => {
    const { code, stderr } = await commandHere(["migrate"], {
      DATA_DIR: folder,
      DATABASE_URL: `postgres://user:hunter2@127.0.0.1:1/books?${params}`
    })
    expect([code, stderr]).toEqual([1, expect.stringContaining(`DATABASE_URL: ${words}`)])
    expect(stderr).not.toContain("hunter2")
  })
})
