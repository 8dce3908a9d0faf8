/** Two programs on one database: what the living one has reserved stays its own, what the dead one left is released by itself. */
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { Effect, Layer, Logger, ManagedRuntime, Option, TestClock, TestContext } from "effect"
import { spawn } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { layerOver } from "../../../src/app/entry/database.ts"
import { Gate } from "../../../src/books/gate/Gate.ts"
import { Payers } from "../../../src/books/gate/Payers.ts"
import { Idempotency } from "../../../src/http/idempotency/Idempotency.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import { verify } from "../../../src/app/Checks.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { freshFolder, root } from "../../support/Service.ts"
import { caller, key } from "./two.ts"

let folder: string
let file: string
let other: ChildProcess

beforeEach(async () => {
  folder = freshFolder()
  file = join(folder, "host.db")
  other = spawn(process.execPath, ["--import", "tsx", "test/support/holder.ts", file], {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"]
  })
  await new Promise<void>((resolve, reject) => {
    other.stdout!.once("data", () => resolve())
    other.once("exit", (code) => reject(new Error(`the other program ended with ${code}`)))
  })
}, 60_000)
afterEach(() => {
  other.kill("SIGKILL")
  rmSync(folder, { recursive: true, force: true })
})

const killed = () =>
  new Promise<void>((resolve) => {
    other.once("exit", () => resolve())
    other.kill("SIGKILL")
  })

const open = () =>
  ManagedRuntime.make(
    Gate.layerJobs.pipe(
      Layer.provideMerge(Layer.mergeAll(Gate.layer, Idempotency.layer, Ledger.layer)),
      Layer.provide(Payers.layerOwnOnly),
      Layer.provideMerge(layerOver),
      Layer.provideMerge(SqliteClient.layer({ filename: file })),
      Layer.provideMerge(TestContext.TestContext),
      // It warns of what the dead program left.
      Layer.provide(Logger.remove(Logger.defaultLogger))
    )
  )

const reserved = Effect.flatMap(Ledger, (ledger) => ledger.account(billingAccountOf(caller.tenant_id))).pipe(
  Effect.map(Option.match({ onNone: () => -1n, onSome: (account) => account.reserved }))
)

/** The same request again, from this program. */
const again = Effect.flatMap(Idempotency, (keys) =>
  Effect.merge(
    Effect.map(
      keys.once(
        caller,
        key,
        () => "the request",
        () => Effect.die("it was made again")
      ),
      ({ status }) => status
    )
  )
)

const locks = () => readdirSync(folder).filter((name) => name.includes(".run_"))

describe("two programs on one database", () => {
  it("leave each other's calls alone, until one of them dies", async () => {
    const runtime = open()
    // The call and the held one.
    expect(await runtime.runPromise(reserved)).toBe(12n)
    await runtime.runPromise(TestClock.adjust("10 minutes"))
    expect(await runtime.runPromise(reserved)).toBe(12n)
    expect(await runtime.runPromise(again)).toMatchObject({ _tag: "IdempotencyInFlight" })
    expect(locks()).toHaveLength(2)

    await killed()
    await runtime.runPromise(TestClock.adjust("1 minute"))
    // The held call is for whoever resumes it.
    await expect.poll(() => runtime.runPromise(reserved)).toBe(7n)
    expect(await runtime.runPromise(again)).toBe(409)
    expect(await runtime.runPromise(verify)).toEqual([])
    await runtime.dispose()
    // That of the dead one goes when the next program comes.
    const next = open()
    await next.runPromise(reserved)
    expect(locks()).toHaveLength(1)
    await next.dispose()
    expect(locks()).toEqual([])
  }, 60_000)

  it("the next to come finds nothing of the dead one reserved", async () => {
    await killed()
    const runtime = open()
    expect(await runtime.runPromise(reserved)).toBe(7n)
    expect(await runtime.runPromise(again)).toBe(409)
    await runtime.dispose()
    expect(locks()).toEqual([])
  }, 60_000)
})
