/**
 * PostgreSQL itself is ended under load, at once or without a word, and is started again. The node stays: it refuses meanwhile, and goes
 * on afterwards. What was acknowledged is in the books once.
 */
import { rmSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Load, settled } from "../support/load.ts"
import type { Ask } from "../support/load.ts"
import { startServer } from "../support/postgres.ts"
import type { Server } from "../support/postgres.ts"
import { command, start } from "../support/Service.ts"
import type { Service } from "../support/Service.ts"
import { askAt } from "../support/tables.ts"

const rounds = Number(process.env["CRASH_ROUNDS"] ?? 1)

let server: Server
let service: Service | undefined
beforeAll(async () => {
  server = await startServer()
})
afterAll(async () => {
  await service?.end("SIGKILL")
  await server.stop()
  if (service !== undefined) rmSync(service.folder, { recursive: true, force: true })
})

const sleep = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

const isReady = async (one: Service) => (await one.call("/readyz")).status === 200

describe("a server that crashes beneath a node", () => {
  it("takes nothing with it that was acknowledged, and the node needs no restart", async () => {
    const node = (service = await start({ env: { DATABASE_URL: server.url } }))
    const ask: Ask = (text) => askAt(server.url, text)
    const load = await Load.on(node)
    for (let round = 0; round < rounds; round++) {
      for (const signal of ["SIGQUIT", "SIGKILL"] as const) {
        let over = false
        const running = load.run(node, () => over)
        await sleep(500 + Math.random() * 1_000)
        await server.crash(signal)
        const before = load.refusals.get("503 books_unavailable") ?? 0
        // Calls are refused while it is away.
        while ((load.refusals.get("503 books_unavailable") ?? 0) < before + 40) await sleep(50)
        while (await isReady(node)) await sleep(50)
        await server.restart()
        while (!(await isReady(node))) await sleep(50)
        const { size } = load.acknowledged
        while (load.acknowledged.size < size + 40) await sleep(50)
        over = true
        await running
        await settled(ask)
        await load.compare(ask)
      }
    }
    expect([...load.refusals.keys()]).toEqual(["503 books_unavailable"])
    expect(load.moved()).toContain("accepted")
    const verified = await command(["verify"], { DATA_DIR: node.folder, DATABASE_URL: server.url })
    expect(verified.stdout + verified.stderr).toContain("every invariant of the books holds")
    expect(await node.end()).toBe(0)
  })
})
