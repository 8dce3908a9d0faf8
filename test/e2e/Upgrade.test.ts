/**
 * A rolling upgrade: processes of three builds over one PostgreSQL database. The second expands its tables while the first serves, and both
 * go on; the third contracts them, and is refused while the first is there.
 */
import { execFile } from "node:child_process"
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { newest } from "../../src/storage/postgres/Migrate.ts"
import { startServer } from "../support/postgres.ts"
import type { Server } from "../support/postgres.ts"
import { command, freshFolder, root, start } from "../support/Service.ts"
import type { Service } from "../support/Service.ts"

const next = newest + 1

/** As they would stand at the end of the list of migrations. */
const expands = `{ name: "${next}_expands", oldest: ${newest}, apply: statements([
  "CREATE TABLE tollgate_test_next (id bigint PRIMARY KEY)", "ALTER TABLE tollgate_usage_records ADD COLUMN next text"]) }`
const contracts = `{ name: "${next + 1}_contracts", oldest: ${next}, apply: statements(["DROP TABLE tollgate_test_next"]) }`

let server: Server
const folder = freshFolder()
const services: Array<Service> = []

/** Builds this source with further migrations; answers where. */
const build = async (name: string, ...migrations: ReadonlyArray<string>): Promise<string> => {
  const copy = join(folder, name)
  mkdirSync(copy)
  for (const part of ["src", "scripts", "package.json", "tsconfig.json"])
    cpSync(join(root, part), join(copy, part), { recursive: true })
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"))
  const file = join(copy, "src", "storage", "postgres", "Migrate.ts")
  const text = readFileSync(file, "utf8")
  const end = text.indexOf("\n]\n", text.indexOf("export const migrations"))
  writeFileSync(file, `${text.slice(0, end)},\n${migrations.join(",\n")}${text.slice(end)}`)
  await promisify(execFile)(process.execPath, ["--import", "tsx", "scripts/build.ts"], { cwd: copy })
  return copy
}

let between: string
let last: string
beforeAll(async () => {
  server = await startServer(["fsync=off"])
  between = await build("between", expands)
  last = await build("last", expands, contracts)
})
afterAll(async () => {
  for (const service of services) await service.discard()
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

const env = (name: string) => ({ DATABASE_URL: server.url, TOLLGATE_SECRET: "5e".repeat(32), NODE_NAME: name })

const begin = async (name: string, at?: string): Promise<Service> => {
  const service = await start({ env: env(name), ...(at !== undefined && { build: at }) })
  services.push(service)
  return service
}

const statusOf = async (service: Service, token: string): Promise<number> =>
  (
    await service.call("/v1/chat/completions", {
      token,
      json: { model: "sandbox-small", messages: [{ role: "user", content: "one two" }] }
    })
  ).status

describe("a rolling upgrade", () => {
  it("keeps the version before at work, and refuses to take away what that one needs", async () => {
    const old = await begin("old")
    const key = await old.key(await old.signIn("ada@example.com"))
    const statuses: Array<number> = []
    const over = new AbortController()
    const load = (async () => {
      while (!over.signal.aborted) statuses.push(await statusOf(old, key))
    })()
    const newer = await begin("newer", between)
    expect(await statusOf(newer, key)).toBe(200)
    expect(await statusOf(old, key)).toBe(200)
    over.abort()
    await load
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect((await newer.call("/readyz")).body.node.nodes).toBe(2)

    // One of the version before may come again, and its commands work.
    await old.end("SIGKILL")
    const again = await begin("old again")
    expect(await statusOf(again, key)).toBe(200)
    const verified = await command(["verify"], { ...env("old"), DATA_DIR: again.folder })
    expect(verified.stdout).toContain("every invariant of the books holds")

    const early = await begin("last", last).catch((error: Error) => error.message)
    expect(early).toContain("is served by")
    expect(early).toContain("old again")
    expect([await statusOf(again, key), await statusOf(newer, key)]).toEqual([200, 200])

    // Those that were killed count for as long as their lease.
    expect(await again.end()).toBe(0)
    await expect
      .poll(async () => (await newer.call("/readyz")).body.node.nodes, { timeout: 60_000, interval: 200 })
      .toBe(1)
    const newest = await begin("last", last)
    expect([await statusOf(newest, key), await statusOf(newer, key)]).toEqual([200, 200])
    expect(await begin("old").catch((error: Error) => error.message)).toContain("was written by a newer version")
  })
})
