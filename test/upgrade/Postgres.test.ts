/**
 * A PostgreSQL database of each earlier version is brought up to date, verified and served, as those of SQLite are; and one whose node is
 * killed meanwhile is brought up to date by the next.
 */
import { spawn } from "node:child_process"
import { rmSync } from "node:fs"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { newest } from "../../src/storage/postgres/Migrate.ts"
import { isPostgres } from "../support/database.ts"
import { asked, startServer } from "../support/postgres.ts"
import type { Server } from "../support/postgres.ts"
import { command, root } from "../support/Service.ts"
import type { Service } from "../support/Service.ts"
import { fixturesOf, folderOf, secret, serve, shownOf } from "./Fixtures.ts"
import type { Fixture } from "./Fixtures.ts"

const fixtures = fixturesOf("postgres")
const services: Array<Service> = []
let server: Server
beforeAll(async () => {
  server = await startServer(["fsync=off"])
})
afterEach(async () => {
  for (const service of services.splice(0).toReversed()) await service.discard()
})
afterAll(() => server.stop())

let databases = 0

/** A database as the fixture has it. */
const restored = async (fixture: Fixture): Promise<string> => {
  const name = `fixture_${++databases}`
  await asked(server.url, (client) => client.query(`CREATE DATABASE ${name}`))
  const url = new URL(server.url)
  url.pathname = `/${name}`
  await asked(url.href, (client) => client.query(fixture.content().toString()))
  return url.href
}

const envOf = (url: string) => ({ DATABASE_URL: url, NODE_NAME: "fixture", TOLLGATE_SECRET: secret })

const expectServed = async (fixture: Fixture, url: string): Promise<void> => {
  const service = await serve(folderOf(fixture), envOf(url))
  services.push(service)
  expect((await shownOf(service, fixture)).answers).toMatchObject(fixture.figures.answers)
  const json = { model: "sandbox-small", messages: [{ role: "user", content: "one two" }] }
  const answer = await service.call("/v1/chat/completions", { token: fixture.figures.people["ada"]!.key, json })
  expect([answer.status, answer.headers.get("x-charge-usd")]).toEqual([200, "0.0000015"])
  expect(await service.end()).toBe(0)
  const verified = await command(["verify"], { DATA_DIR: service.folder, ...envOf(url) })
  expect(verified.stdout).toContain("every invariant of the books holds")
}

describe.skipIf(isPostgres)("a PostgreSQL database of an earlier version", () => {
  it("stands here for each", () => {
    expect(fixtures.map(({ figures }) => figures.migration)).toEqual([1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 16, 18])
    expect(newest).toBe(29)
  })

  it.each(fixtures.map((fixture) => [fixture.name, fixture] as const))("%s", async (_, fixture) => {
    await expectServed(fixture, await restored(fixture))
  })

  it("is served while its indexes are built, for which nobody waits", async () => {
    // The newest that lacks one.
    const fixture = fixtures.findLast(({ figures }) => figures.migration < 8)!
    const url = await restored(fixture)
    await asked(url, async (client) => {
      // A build waits for the end of this.
      await client.query("BEGIN")
      await client.query("LOCK TABLE tollgate_ledger_entries IN ROW EXCLUSIVE MODE")
      const service = await serve(folderOf(fixture), envOf(url))
      services.push(service)
      const missing = async () =>
        /^tollgate_missing_indexes (\d+)$/m.exec((await service.call("/metrics")).body as string)?.[1]
      await expect.poll(missing, { timeout: 60_000 }).toBe("1")
      const { key, tenant_id, token } = (await shownOf(service, fixture)).people["ada"]!
      const json = { model: "sandbox-small", messages: [{ role: "user", content: "one two" }] }
      expect((await service.call("/v1/chat/completions", { token: key, json })).status).toBe(200)
      const ledger = (source: string) =>
        service.call(`/v1/tenants/${tenant_id}/billing/ledger?source=${source}`, { token })
      const found = [await ledger("call"), await ledger("signup_grant")]
      expect(found.map(({ body, status }) => [status, body.result.records.length > 0])).toEqual([
        [200, true],
        [200, true]
      ])
      await client.query("COMMIT")
      await expect.poll(missing, { timeout: 60_000 }).toBe("0")
      expect([(await ledger("call")).body, (await ledger("signup_grant")).body]).toEqual(found.map(({ body }) => body))
      expect((await service.call("/readyz")).status).toBe(200)
    })
  })

  it("is brought up to date by the next, where a process was killed meanwhile", async () => {
    const fixture = fixtures[0]!
    const url = await restored(fixture)
    for (const millis of [150, 250, 350, 450]) {
      const folder = folderOf(fixture)
      const child = spawn(process.execPath, ["dist/main.js", "migrate"], {
        cwd: root,
        env: { ...process.env, DATA_DIR: folder, ...envOf(url) }
      })
      await new Promise((go) => setTimeout(go, millis))
      child.kill("SIGKILL")
      rmSync(folder, { recursive: true, force: true })
    }
    await expectServed(fixture, url)
  })
})
