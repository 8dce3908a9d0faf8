/**
 * Stories of generation jobs, over the real books and the sandbox's vendor: people submit, look (several at once), cancel; jobs run,
 * complete, fail; the vendor stumbles, time passes, the service restarts. Whatever the order, each job is charged at most once, its
 * quote or nothing, and what is set aside is what still runs.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Exit, Layer, ManagedRuntime, Redacted, Scope } from "effect"
import fc from "fast-check"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { accountsTable } from "../../../src/books/ledger/rows/Rows.ts"
import { Gate } from "../../../src/books/gate/Gate.ts"
import { Payers } from "../../../src/books/gate/Payers.ts"
import type { AccountId, TenantId } from "../../../src/kernel/Ids.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import { toDecimal, usd } from "../../../src/kernel/Money.ts"
import type { UnitPrice } from "../../../src/kernel/Price.ts"
import { verify } from "../../../src/app/Checks.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import type { Job } from "../../../src/calls/media/Job.ts"
import { Jobs } from "../../../src/calls/media/Jobs.ts"
import { PriceFactors } from "../../../src/books/prices/PriceFactors.ts"
import { PriceVersions } from "../../../src/books/prices/PriceVersions.ts"
import * as Sandbox from "../../../src/sandbox/Sandbox.ts"
import { Upstreams } from "../../../src/upstream/models/Upstreams.ts"
import { tell } from "../../support/story.ts"
import type { Step } from "../../support/story.ts"
import * as TestDatabase from "../../support/database.ts"

const scope = Effect.runSync(Scope.make())
let sandbox: Sandbox.Sandbox
beforeAll(async () => {
  sandbox = await Effect.runPromise(Scope.extend(Sandbox.make({}), scope))
})
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const control = (path: string, json: object) =>
  fetch(sandbox.control + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(json)
  })

const layer = (file: string) =>
  Jobs.layerJobs.pipe(
    Layer.provideMerge(Jobs.layer),
    Layer.provideMerge(Layer.mergeAll(Gate.layer, PriceVersions.layer, PriceFactors.layerNone)),
    Layer.provide(Payers.layerOwnOnly),
    Layer.provideMerge(
      Upstreams.layer({
        vendor: {
          base_url: `${sandbox.url}/media-queue`,
          api_key: Redacted.make("sandbox"),
          silence_ms_max: 2_000
        }
      })
    ),
    Layer.provideMerge(TestDatabase.writerAt(file)),
    Layer.provideMerge(TestDatabase.sqlAt(file)),
    Layer.provideMerge(Layer.setClock(sandbox.clock))
  )

const people = ["ada", "bob"] as const
type Name = (typeof people)[number]
const start = 2n * usd
const price = 50_000_000_000_000_000n as UnitPrice

interface Submitted {
  readonly id: string
  readonly who: Name
  readonly quote: bigint
  /** Whether it was ever done: the service may have seen it then, whatever the vendor says later. */
  done: boolean
  /** It has failed, and was never done. */
  failed: boolean
  /** What it was found to have cost, once it is settled. */
  cost: bigint | undefined
}

interface Notebook {
  readonly jobs: Array<Submitted>
}

interface World {
  runtime: ManagedRuntime.ManagedRuntime<Layer.Layer.Success<ReturnType<typeof layer>>, unknown>
  readonly file: string
  readonly folder: string
}

type Deed = Step<Notebook, World>

const callerOf = (who: Name) => ({
  account_id: `acc_${who}` as AccountId,
  tenant_id: `ten_${who}` as TenantId,
  application_id: null,
  credential: "user_token" as const,
  team_first: false
})

const keyOf = ({ id, who }: Submitted) => ({
  caller: callerOf(who),
  route: "media" as const,
  request_id: id
})

const look = (world: World, one: Submitted): Promise<Job | undefined> =>
  world.runtime.runPromise(Effect.flatMap(Jobs, (jobs) => jobs.poll(keyOf(one))))

/** Whatever was seen of a job must be possible, and once settled it stays as it is. */
const note = (one: Submitted, job: Job | undefined) => {
  expect(job).toBeDefined()
  const { charge, quote, status } = job!
  expect(quote).toBe(one.quote)
  if (one.cost !== undefined) expect(charge?.charged).toBe(one.cost)
  if (charge === undefined) return
  expect([0n, one.quote]).toContain(charge.charged)
  if (status === "CANCELLED" || one.failed) expect(charge.charged).toBe(0n)
  one.cost = charge.charged
}

const settle = async (notebook: Notebook, world: World) => {
  for (const who of people) {
    // In one look: the service settles by itself meanwhile.
    const [row] = await world.runtime.runPromise(
      Effect.flatMap(
        SqlClient,
        (sql) => sql<{ giftable: string; reserved: string; cost: string; open: string }>`SELECT
          CAST(a.giftable AS TEXT) AS giftable, CAST(a.reserved AS TEXT) AS reserved,
          CAST(coalesce(sum(j.cost), 0) AS TEXT) AS cost,
          CAST(coalesce(sum(j.quote) FILTER (WHERE j.settled = 0), 0) AS TEXT) AS open
          FROM ${sql.literal(accountsTable)} a LEFT JOIN tollgate_media_jobs j ON j.account_id = ${`acc_${who}`}
          WHERE a.id = ${billingAccountOf(`ten_${who}`)} GROUP BY a.giftable, a.reserved`
      )
    )
    const { cost, giftable, open, reserved } = row!
    // What is charged is what jobs cost; what is set aside is what still runs.
    expect([who, BigInt(giftable), BigInt(reserved)]).toEqual([who, start - BigInt(cost), BigInt(open)])
  }
  for (const one of notebook.jobs) if (one.cost !== undefined) note(one, await look(world, one))
}

const deed = (
  sentence: string,
  happen: Deed["happen"],
  possible: (notebook: Readonly<Notebook>) => boolean = () => true
): Deed => ({
  sentence,
  possible,
  happen: async (notebook, world) => {
    await happen(notebook, world)
    await settle(notebook, world)
  }
})

const submits = fc.tuple(fc.constantFrom(...people), fc.integer({ min: 1, max: 10 })).map(([who, seconds]) =>
  deed(`${who} wants ${seconds} seconds (${toDecimal((BigInt(seconds) * usd) / 20n)})`, async (notebook, world) => {
    const order = {
      route: "media",
      usage_endpoint: "media/generate",
      type: "video",
      model: "sandbox-video",
      provider: "vendor",
      upstream: "vendor",
      endpoint: "sandbox/video",
      input: { prompt: "a fish", duration: seconds },
      units: seconds,
      unit: "second",
      price,
      error_types: { JobRejected: "rejected", VendorBusy: "busy", VendorUnavailable: "unavailable" }
    } as const
    const made = await world.runtime.runPromise(
      Effect.either(Effect.flatMap(Jobs, (jobs) => jobs.submit({ caller: callerOf(who), order })))
    )
    if (made._tag === "Left") return
    notebook.jobs.push({
      id: made.right.request_id,
      who,
      quote: (BigInt(seconds) * usd) / 20n,
      done: false,
      failed: false,
      cost: undefined
    })
  })
)

const which = fc.nat({ max: 20 })
const some = ({ jobs }: Readonly<Notebook>) => jobs.length > 0
const pick = ({ jobs }: Readonly<Notebook>, index: number) => jobs[index % jobs.length]!

const moves = fc
  .tuple(which, fc.constantFrom("IN_PROGRESS" as const, "COMPLETED" as const, "FAILED" as const))
  .map(([index, status]) =>
    deed(
      `the vendor says ${status} of job ${index}`,
      async (notebook, world) => {
        const one = pick(notebook, index)
        if (one.cost !== undefined) return
        const request_id = await world.runtime.runPromise(Effect.flatMap(Jobs, (jobs) => jobs.vendorId(one.id)))
        sandbox.connect({
          credit: () => Effect.succeed(false),
          setBillingStatus: () => Effect.succeed(false),
          setPlan: () => Effect.succeed(false),
          vendorId: () => Effect.succeed(request_id)
        })
        const moved = await control("/media", { request_id: one.id, status, duration: 999 })
        const { was } = (await moved.json()) as { readonly was: string }
        one.done ||= was === "COMPLETED" || status === "COMPLETED"
        one.failed = status === "FAILED" && !one.done
      },
      some
    )
  )

const looks = fc.tuple(which, fc.integer({ min: 1, max: 4 })).map(([index, clients]) =>
  deed(
    clients === 1 ? `somebody looks at job ${index}` : `${clients} look at job ${index} at once`,
    async (notebook, world) => {
      const one = pick(notebook, index)
      for (const job of await Promise.all(Array.from({ length: clients }, () => look(world, one)))) note(one, job)
    },
    some
  )
)

const cancels = which.map((index) =>
  deed(
    `job ${index} is cancelled`,
    async (notebook, world) => {
      const one = pick(notebook, index)
      note(one, await world.runtime.runPromise(Effect.flatMap(Jobs, (jobs) => jobs.cancel(keyOf(one)))))
    },
    some
  )
)

const stumbles = fc
  .constantFrom({ status: 500 }, { drop: true }, { status: 200, body: "nonsense" }, { status: 429 })
  .map((fault) =>
    deed(`the vendor will stumble (${JSON.stringify(fault)})`, async () => {
      await control("/faults", { service: "media", times: 1, ...fault })
    })
  )

const passes = fc.constantFrom(500, 3_000, 60_000).map((advance_ms) =>
  deed(`${advance_ms / 1000} seconds pass`, async () => {
    await control("/clock", { advance_ms })
  })
)

const restarts = fc.constant(
  deed("the service restarts", async (_, world) => {
    await world.runtime.dispose()
    world.runtime = ManagedRuntime.make(layer(world.file))
    await world.runtime.runPromise(Effect.void)
  })
)

const begin = async () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-"))
  const file = join(folder, "books.db")
  const runtime = ManagedRuntime.make(layer(file))
  for (const who of people) {
    const account = billingAccountOf(`ten_${who}`)
    await runtime.runPromise(
      Effect.flatMap(Writer, ({ submit }) =>
        submit({
          postings: [
            { _tag: "Open", account, tenant: `ten_${who}` },
            { _tag: "Credit", account, amount: start, source: "purchase", reference: "pay", description: "d" }
          ],
          statements: []
        })
      )
    )
  }
  const world: World = { runtime, file, folder }
  return { notebook: { jobs: [] } as Notebook, world }
}

describe("people who have videos made", () => {
  it("pay each quote at most once, whatever happens and in whichever order", async () => {
    await tell<Notebook, World>({
      steps: [submits, submits, moves, moves, looks, looks, cancels, stumbles, passes, restarts],
      begin,
      end: async (notebook, world) => {
        await fetch(`${sandbox.control}/faults`, { method: "DELETE" })
        // In the end everything that still runs is done, and is paid for.
        await control("/clock", { advance_ms: 5_000 })
        for (const one of notebook.jobs) note(one, await look(world, one))
        expect(await world.runtime.runPromise(verify)).toEqual([])
      },
      close: async (world) => {
        await world.runtime.dispose()
        await TestDatabase.drop(world.folder)
        rmSync(world.folder, { recursive: true, force: true })
      },
      stories: 20,
      length: 25
    })
  })
})
