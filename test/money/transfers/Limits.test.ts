/** Limits on the rows that transfers cause, which cost their sender nothing: transfers in 24 hours, and kept notifications. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect, Either, Layer, Option } from "effect"
import { describe, expect, it } from "vitest"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import * as Statements from "../../../src/books/ledger/write/Statements.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import { cent, usd } from "../../../src/kernel/Money.ts"
import { TransferLimits } from "../../../src/money/transfers/Settings.ts"
import type { Transfer } from "../../../src/money/transfers/Transfer.ts"
import { Transfers } from "../../../src/money/transfers/Transfers.ts"
import { notice, noticesMax } from "../../../src/people/notifications/Notification.ts"
import { Tenants } from "../../../src/people/tenants/Tenants.ts"
import { layer } from "../../../src/app/entry/transfers.ts"
import { PriceList } from "../../../src/books/prices/PriceList.ts"
import { ServiceInfo } from "../../../src/kernel/ServiceInfo.ts"
import * as DeploymentSecret from "../../../src/storage/secret/DeploymentSecret.ts"
import { Mail } from "../../../src/upstream/mail/Mail.ts"
import * as TestDatabase from "../../support/database.ts"

const day = 86_400_000
const start = Date.UTC(2026, 0, 5)
let now = start

const { sleep } = Clock.make()
const nanos = () => BigInt(now) * 1_000_000n
const clock: Clock.Clock = {
  [Clock.ClockTypeId]: Clock.ClockTypeId,
  unsafeCurrentTimeMillis: () => now,
  unsafeCurrentTimeNanos: nanos,
  currentTimeMillis: Effect.sync(() => now),
  currentTimeNanos: Effect.sync(nanos),
  sleep
}

const signIn = (email: string) =>
  Effect.flatMap(Tenants, ({ welcome }) =>
    Effect.map(
      welcome({ provider: "google", subject: email, email, email_verified: true, name: email }),
      ({ account_id, home_tenant_id }) => ({ account_id, tenant_id: home_tenant_id })
    )
  )
type Person = Effect.Effect.Success<ReturnType<typeof signIn>>

const key = (name: string) => `key-of-transfer-${name}`
const send = (caller: Person, name: string, recipient_email = "bob@example.com") =>
  Effect.flatMap(Transfers, ({ create }) =>
    create({ caller, key: key(name), transfer: { amount: cent, recipient_email, kind: "gift" } })
  )
const funded = Effect.gen(function* () {
  now = start
  const [ada, bob] = yield* Effect.all([signIn("ada@example.com"), signIn("bob@example.com")])
  const { credit } = yield* Ledger
  yield* credit({ account: billingAccountOf(ada.tenant_id), amount: usd, source: "purchase", reference: "p" })
  return { ada, bob }
})
const heldBy = ({ tenant_id }: Person) =>
  Effect.flatMap(Ledger, ({ account }) =>
    Effect.map(account(billingAccountOf(tenant_id)), (found) => Option.getOrThrow(found).held)
  )

const services = layer.pipe(
  Layer.provide(Layer.succeed(TransferLimits, { per_day: 3 })),
  Layer.provide([
    PriceList.layerNone,
    Mail.layerNone,
    ServiceInfo.layer({ service_name: "Tollgate", key_prefix: "svc", public_url: "http://127.0.0.1:8787" }),
    DeploymentSecret.layer(new Uint8Array(32).fill(1))
  ]),
  Layer.provideMerge(TestDatabase.writer),
  Layer.provideMerge(TestDatabase.sql)
)

const run = <A, E>(story: Effect.Effect<A, E, Transfers | Tenants | Ledger | Writer | SqlClient>) =>
  Effect.runPromise(story.pipe(Effect.provide(Layer.fresh(services)), Effect.withClock(clock)))

describe("transfers of a tenant in 24 hours", () => {
  const refusal = { _tag: "TooManyTransfers", status: 429, code: "too_many_transfers", limit: 3 }

  it("are limited, however they end; a replay is answered, another tenant may send, and nothing is booked", () =>
    run(
      Effect.gen(function* () {
        const { ada, bob } = yield* funded
        const { accept, revoke } = yield* Transfers
        const made: Array<Transfer> = []
        for (const name of ["one", "two", "three"]) {
          made.push((yield* send(ada, name)).transfer)
          now += 3_600_000
        }
        yield* revoke({ caller: ada, transfer_id: made[0]!.id })
        yield* accept({ caller: bob, transfer_id: made[1]!.id })
        const refused = yield* Effect.flip(send(ada, "four"))
        expect(refused).toMatchObject({ ...refusal, retry_after: 21 * 3_600 })
        expect(yield* heldBy(ada)).toBe(cent)
        expect((yield* send(ada, "one")).created).toBe(false)
        expect((yield* send(bob, "back", "ada@example.com")).created).toBe(true)
        now = start + day - 1
        expect((yield* Effect.flip(send(ada, "four")))._tag).toBe("TooManyTransfers")
        now++
        expect((yield* send(ada, "four")).created).toBe(true)
        expect((yield* Effect.flip(send(ada, "five")))._tag).toBe("TooManyTransfers")
      })
    ))

  it("are limited when they are created at once", () =>
    run(
      Effect.gen(function* () {
        const { ada } = yield* funded
        const answers = yield* Effect.forEach(
          Array.from({ length: 12 }, (_, i) => `at once ${i}`),
          (name) => Effect.either(send(ada, name.replaceAll(" ", "-"))),
          { concurrency: "unbounded" }
        )
        expect(answers.filter(Either.isRight)).toHaveLength(3)
        for (const answer of answers.filter(Either.isLeft)) expect(answer.left).toMatchObject(refusal)
        expect(yield* heldBy(ada)).toBe(3n * cent)
      })
    ))
})

describe("notifications of an account", () => {
  it("keep the newest 1,000 of each account", () =>
    run(
      Effect.gen(function* () {
        const { ada, bob } = yield* funded
        const writer = yield* Writer
        const sql = yield* SqlClient
        const notify = ({ account_id }: Person, n: number) =>
          notice({ account_id, kind: "transfer_ended", title: `${n}`, text: "" }, start + n)
        yield* Statements.write(writer, notify(ada, 0))
        const all = Array.from({ length: noticesMax }, (_, i) => notify(bob, i))
        yield* Statements.write(writer, ...all)
        now = start + day
        const { transfer } = yield* send(ada, "one")
        const of = ({ account_id }: Person) => sql<{ title: string; data: string }>`SELECT title, data
          FROM tollgate_notifications_notices WHERE account_id = ${account_id} ORDER BY id`
        const kept = yield* of(bob)
        expect(kept).toHaveLength(1_000)
        expect(kept[0]!.title).toBe("1")
        expect(JSON.parse(kept.at(-1)!.data)).toEqual({ transfer_id: transfer.id })
        expect(yield* of(ada)).toHaveLength(1)
      })
    ))
})
