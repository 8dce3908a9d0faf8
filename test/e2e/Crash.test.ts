/**
 * The process is killed at random moments under load and started again on the same books. Every charge that was acknowledged
 * is there once, none is there twice, nothing is negative, nothing is left reserved. The same for transfers: what was acknowledged
 * is there, what was not is there whole or not at all.
 */
import { rmSync } from "node:fs"
import { afterAll, describe, expect, it } from "vitest"
import { Load, settled } from "../support/load.ts"
import type { Ask } from "../support/load.ts"
import { command, start } from "../support/Service.ts"
import type { Service } from "../support/Service.ts"
import * as Tables from "../support/tables.ts"
import * as TestDatabase from "../support/database.ts"

const rounds = Number(process.env.CRASH_ROUNDS ?? 4)
let folder: string | undefined

afterAll(async () => {
  if (folder === undefined) return
  await TestDatabase.drop(folder)
  rmSync(folder, { recursive: true, force: true })
})

describe("a process that is killed", () => {
  it("loses no acknowledged charge, doubles none, and leaves nothing reserved", async () => {
    let service: Service = await start()
    const at = (folder = service.folder)
    const ask: Ask = (text) => Tables.ask(at, text)
    const load = await Load.on(service)
    // On a busy machine a round may be over before anything was accepted: then there are more of them, each longer than the one before.
    for (let round = 0; round < rounds || (!load.moved().has("accepted") && round < 4 * rounds); round++) {
      let killed = false
      const running = load.run(service, () => killed)
      const millis = (300 + Math.random() * 700) * Math.max(1, round - rounds + 2)
      await new Promise((resolve) => setTimeout(resolve, millis))
      const ended = service.end("SIGKILL")
      killed = true
      expect(await ended).toBe("SIGKILL")
      await running

      await Tables.lapse(at)
      service = await start({ folder: at })
      if (TestDatabase.isPostgres) await settled(ask)
      await load.compare(ask)
    }
    expect(load.acknowledged.size).toBeGreaterThan(0)
    expect(load.moved()).toContain("accepted")

    const verified = await command(["verify"], { DATA_DIR: at })
    expect(verified.stdout + verified.stderr).toContain("every invariant of the books holds")
    expect(verified.code).toBe(0)
    await service.end()
  })
})
