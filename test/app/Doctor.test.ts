/** `tollgate doctor`, as an operator runs it on a healthy machine and on a neglected one. */
import { chmodSync, mkdirSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import type { Server } from "node:http"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Machine from "../../src/app/check/Machine.ts"
import { startLocalServer } from "../support/LocalServer.ts"
import { command, freshFolder } from "../support/Service.ts"

const folder = freshFolder()
const env = { DATA_DIR: join(folder, "data") }
const backups = join(folder, "backups")
const config = join(folder, "tollgate.json")
let local: Server

const write = (api_key: string, address: string) =>
  writeFileSync(config, JSON.stringify({ upstreams: { ours: { base_url: `${address}/v1`, api_key } } }))

beforeAll(async () => {
  const started = await startLocalServer()
  local = started.server
  write("right", started.address)
  mkdirSync(backups)
  await command(["migrate"], env)
})
afterAll(() => {
  local.close()
  rmSync(folder, { recursive: true, force: true })
})

const doctor = async (...args: ReadonlyArray<string>) => {
  const finished = await command(["doctor", "--json", ...args], env)
  const { findings, ok } = JSON.parse(finished.stdout) as {
    readonly ok: boolean
    readonly findings: ReadonlyArray<Machine.Examined>
  }
  return { ...finished, ok, of: Object.fromEntries(findings.map((one) => [one.subject, one])) }
}

describe("tollgate doctor", () => {
  it("finds nothing wrong with a new deployment that has a backup", async () => {
    writeFileSync(join(backups, "today.db"), "a backup")
    const { code, of, ok } = await doctor("--config", config, "--backups", backups)
    expect([code, ok]).toEqual([0, true])
    expect(Object.values(of).map(({ result, subject }) => [subject, result])).toEqual([
      ["versions", "ok"],
      ["permissions", "ok"],
      ["disk", expect.any(String)],
      ["database", "ok"],
      ["secret", "ok"],
      ["clock", "ok"],
      ["backups", "ok"],
      ["upstreams.ours", "ok"]
    ])
  })

  it("says which files others can read, that the backup is old, and that a vendor refuses the key", async () => {
    const data = env.DATA_DIR
    chmodSync(data, 0o755)
    const yesterday = Date.now() / 1_000 - 48 * 3_600
    utimesSync(join(backups, "today.db"), yesterday, yesterday)
    write("wrong", `http://127.0.0.1:${(local.address() as { readonly port: number }).port}`)
    const { code, of, stderr } = await doctor("--config", config, "--backups", backups)
    expect(code).toBe(1)
    expect(of["permissions"]).toMatchObject({ result: "warning", finding: expect.stringContaining("(0755)") })
    expect(of["backups"]).toMatchObject({ result: "warning", finding: expect.stringContaining("48 h old") })
    expect(of["upstreams.ours"]).toMatchObject({
      result: "failure",
      finding: expect.stringContaining("rejects the key")
    })
    expect(stderr).toContain("tollgate: upstreams.ours: see above")
  })

  it("says what is missing where there is no deployment", async () => {
    const nothing = join(folder, "nothing")
    const finished = await command(["doctor", "--json"], { DATA_DIR: nothing })
    expect(finished.code).toBe(1)
    expect(finished.stdout).toContain(`${nothing} does not exist yet; the first start creates it`)
    expect(finished.stdout).not.toContain("is private")
    expect(finished.stdout).toContain("check that it exists")
  })
})

describe("the clock", () => {
  const dates = (seconds: number) => [{ date: 1_000_000, now: 1_000_000 + seconds * 1_000 }]

  it("is judged by the smallest difference from an upstream's", () => {
    expect(Machine.clock([...dates(-400), ...dates(2)]).result).toBe("ok")
    expect(Machine.clock(dates(-30))).toMatchObject({ result: "warning", finding: expect.stringContaining("by 30 s") })
    expect(Machine.clock(dates(90)).result).toBe("failure")
    expect(Machine.clock([]).result).toBe("warning")
  })
})
