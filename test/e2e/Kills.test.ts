/** One of two nodes over a PostgreSQL database is killed again and again under load. Whoever calls the other notices nothing. */
import { rmSync } from "node:fs"
import { afterAll, beforeAll, expect, it } from "vitest"
import { Load, settled } from "../support/load.ts"
import type { Ask } from "../support/load.ts"
import { startServer } from "../support/postgres.ts"
import type { Server } from "../support/postgres.ts"
import { command, start } from "../support/Service.ts"
import type { Service } from "../support/Service.ts"
import { askAt } from "../support/tables.ts"

const kills = Number(process.env["CRASH_ROUNDS"] ?? 3)

let server: Server
const services: Array<Service> = []
beforeAll(async () => {
  server = await startServer()
})
afterAll(async () => {
  await Promise.all(services.map((service) => service.end("SIGKILL")))
  await server.stop()
  for (const { folder } of services) rmSync(folder, { recursive: true, force: true })
})

const begin = async (name: string, folder?: string): Promise<Service> => {
  const env = { DATABASE_URL: server.url, TOLLGATE_SECRET: "5e".repeat(32), NODE_NAME: name }
  const service = await start({ env, ...(folder !== undefined && { folder }) })
  services.push(service)
  return service
}

it("a node that is killed takes nothing with it, and the other one goes on without an error", async () => {
  const other = await begin("other")
  const load = await Load.on(other)
  const over = new AbortController()
  const running = load.run(other, () => over.signal.aborted)
  let folder: string | undefined
  for (let kill = 0; kill < kills; kill++) {
    const node = await begin("killed", folder)
    folder = node.folder
    let isKilled = false
    const beside = load.run(node, () => isKilled)
    await new Promise((resolve) => setTimeout(resolve, 300 + Math.random() * 700))
    const ended = node.end("SIGKILL")
    isKilled = true
    expect(await ended).toBe("SIGKILL")
    await beside
  }
  over.abort()
  await running
  expect([...load.refusals]).toEqual([])
  expect(load.cutOff.get(other)).toBeUndefined()
  const ask: Ask = (text) => askAt(server.url, text)
  // A lease's time.
  await settled(ask)
  await load.compare(ask)
  const verified = await command(["verify"], { DATA_DIR: other.folder, DATABASE_URL: server.url })
  expect(verified.stdout + verified.stderr).toContain("every invariant of the books holds")
})
