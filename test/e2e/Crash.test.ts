/**
 * The process is killed at random moments under load and started again on the same files. Every charge that was acknowledged
 * is there once, none is there twice, nothing is negative, nothing is left reserved. The same for transfers: what was acknowledged
 * is there, what was not is there whole or not at all.
 */
import Sqlite from "better-sqlite3"
import { afterAll, describe, expect, it } from "vitest"
import { command, start } from "../support/Service.ts"
import type { Service } from "../support/Service.ts"
import { rmSync } from "node:fs"

const rounds = Number(process.env.CRASH_ROUNDS ?? 4)
let folder: string | undefined

afterAll(() => {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
})

describe("a process that is killed", () => {
  it("loses no acknowledged charge, doubles none, and leaves nothing reserved", async () => {
    // Each call has a length of its own, by which its record is known again.
    let calls = 0
    const acknowledged = new Set<number>()
    const sent = new Set<number>()
    let service: Service = await start()
    folder = service.folder
    const ada = await service.signIn("ada@example.com")
    const key = await service.key(ada)
    const bob = await service.signIn("bob@example.com")
    await service.control("/credit", { tenant_id: ada.tenant_id, amount: 1_000, source: "purchase" })
    let sends = 0
    /** By Idempotency-Key: the last state that was acknowledged. */
    const transfers = new Map<string, { readonly id: string; readonly status: string }>()

    const moved = () => new Set([...transfers.values()].map(({ status }) => status))
    // On a busy machine a round may be over before anything was accepted: then there are more of them, each longer than the one before.
    for (let round = 0; round < rounds || (!moved().has("accepted") && round < 4 * rounds); round++) {
      const process = { killed: false }
      const caller = async () => {
        while (!process.killed) {
          const words = ++calls
          const stream = words % 3 === 0
          sent.add(words)
          const content = Array.from({ length: words }, () => "w").join(" ")
          try {
            const answer = await service.call("/v1/chat/completions", {
              token: key,
              json: { model: "sandbox-small", max_tokens: 1, stream, messages: [{ role: "user", content }] }
            })
            // A stream is acknowledged by its end.
            const whole = !stream || String(answer.body).includes("data: [DONE]")
            if (answer.status === 200 && whole) acknowledged.add(words)
          } catch {
            // Cut off by the kill.
          }
        }
      }
      const sender = async () => {
        const path = `/v1/tenants/${ada.tenant_id}/billing/transfers`
        while (!process.killed) {
          const name = `crash-test-key-${++sends}`
          try {
            const made = await service.call(path, {
              token: ada.token,
              headers: { "idempotency-key": name },
              json: { amount: 0.01, recipient_email: bob.email, kind: "gift" }
            })
            if (made.status !== 201) continue
            const { id } = made.body.result
            transfers.set(name, { id, status: "pending" })
            const [token, method, where] =
              sends % 2 === 0
                ? ([ada.token, "DELETE", `${path}/${id}`] as const)
                : ([bob.token, "POST", `/v1/transfers/${id}/accept`] as const)
            const answer = await service.call(where, { token, method })
            if (answer.status === 200) transfers.set(name, { id, status: answer.body.result.status })
          } catch {
            // Cut off by the kill.
          }
        }
      }
      const callers = [...Array.from({ length: 16 }, caller), ...Array.from({ length: 4 }, sender)]
      const millis = (300 + Math.random() * 700) * Math.max(1, round - rounds + 2)
      await new Promise((resolve) => setTimeout(resolve, millis))
      const ended = service.end("SIGKILL")
      process.killed = true
      expect(await ended).toBe("SIGKILL")
      await Promise.all(callers)

      service = await start({ folder })
      const db = new Sqlite(`${folder}/tollgate.db`, { readonly: true })
      const charged = db
        .prepare(
          "SELECT prompt_tokens AS words, count(*) AS times FROM tollgate_usage_records WHERE success = 1 GROUP BY 1"
        )
        .all() as ReadonlyArray<{ words: number; times: number }>
      const left = db.prepare("SELECT count(*) AS n FROM tollgate_ledger_reservations").get() as { n: number }
      const reserved = db.prepare("SELECT sum(reserved) AS n FROM tollgate_ledger_amounts").get() as { n: number }
      const kept = db
        .prepare("SELECT idempotency_key AS key, id, status FROM tollgate_transfers")
        .all() as ReadonlyArray<{
        key: string
        id: string
        status: string
      }>
      db.close()
      const states = new Map(kept.map(({ id, key, status }) => [key, { id, status }]))
      for (const [name, { id, status }] of transfers) {
        // A move that was not acknowledged may have been made all the same.
        const found = states.get(name)
        expect([name, found?.id]).toEqual([name, id])
        if (status !== "pending") expect([name, found?.status]).toEqual([name, status])
      }
      expect(charged.filter(({ times }) => times !== 1)).toEqual([])
      const there = new Set(charged.map(({ words }) => words))
      expect([...acknowledged].filter((words) => !there.has(words))).toEqual([])
      expect([...there].filter((words) => !sent.has(words))).toEqual([])
      expect(left.n).toBe(0)
      expect(reserved.n).toBe(0)
    }
    expect(acknowledged.size).toBeGreaterThan(0)
    expect(moved()).toContain("accepted")

    const verified = await command(["verify"], { DATA_DIR: folder })
    expect(verified.stdout + verified.stderr).toContain("every invariant of the books holds")
    expect(verified.code).toBe(0)
    await service.end()
  })
})
