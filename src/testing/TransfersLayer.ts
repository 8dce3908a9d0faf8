/** Connects layers of `Transfers`, `Tenants` and `Ledger`, from this package or another implementation, to the property suite. */
import { Clock, Effect, Either, Layer, ManagedRuntime, Option } from "effect"
import * as DeploymentSecret from "../storage/secret/DeploymentSecret.ts"
import type { Actor } from "../kernel/Caller.ts"
import { billingAccountOf } from "../kernel/Ids.ts"
import type { BillingAccountId } from "../kernel/Ids.ts"
import { ServiceInfo } from "../kernel/ServiceInfo.ts"
import { Ledger } from "../books/ledger/Ledger.ts"
import { Outbox } from "../people/mail/Outbox.ts"
import { LetterLimits } from "../people/mail/Settings.ts"
import { PriceList } from "../books/prices/PriceList.ts"
import { Belonging } from "../people/tenants/Belonging.ts"
import { Tenants } from "../people/tenants/Tenants.ts"
import type { TransferId } from "../money/transfers/States.ts"
import type { Transfer } from "../money/transfers/Transfer.ts"
import { TransferLimits } from "../money/transfers/Settings.ts"
import { Transfers } from "../money/transfers/Transfers.ts"
import type { TransferOf } from "../money/transfers/Transfers.ts"
import { Mail } from "../upstream/mail/Mail.ts"
import { layerMemory } from "./LedgerLayer.ts"
import type { TransferRefusal } from "./TransfersModel.ts"
import type { TransferAnswer, TransfersClock, TransfersUnderTest } from "./TransfersProperties.ts"

/** Transfers on a database and its ledger. The limits are very high, because stories exceed the usual limits. */
export const layerTransfers = Transfers.layer.pipe(
  Layer.provideMerge(Outbox.layer),
  Layer.provide(Layer.succeed(LetterLimits, { per_hour: 1_000_000, per_day_to_one_address: 1_000_000 })),
  Layer.provide(Layer.succeed(TransferLimits, { per_day: 1_000_000 })),
  Layer.provideMerge(Tenants.layer),
  Layer.provideMerge(Belonging.layer),
  Layer.provide([
    PriceList.layerNone,
    Mail.layerNone,
    ServiceInfo.layer({ service_name: "Tollgate", key_prefix: "svc", public_url: "http://127.0.0.1:8787" })
  ]),
  Layer.provideMerge(DeploymentSecret.layer(new Uint8Array(32).fill(1)))
)

/** This package's transfers on a fresh database in memory. */
export const layerTransfersMemory = Layer.provideMerge(layerTransfers, layerMemory)

type Services = Transfers | Tenants | Ledger

/**
 * Creates a factory of transfers. It builds a new implementation on each call. The implementation uses the suite's clock and runs no background jobs.
 */
export const transfersOfLayer =
  <E>(layer: Layer.Layer<Services, E>) =>
  async (clock: TransfersClock): Promise<TransfersUnderTest> => {
    const runtime = ManagedRuntime.make(Layer.provideMerge(Layer.fresh(layer), Layer.setClock(effectClock(clock))))
    const run = <A, Failure>(effect: Effect.Effect<A, Failure, Services>) => runtime.runPromise(effect)
    const people = new Map<string, Actor & { readonly account: BillingAccountId }>()

    const moved =
      (name: "accept" | "decline" | "revoke" | "resend" | "find") =>
      (email: string, id: string): Promise<TransferAnswer> =>
        run(
          Effect.flatMap(Transfers, (transfers) => {
            const move: (asked: TransferOf) => Effect.Effect<Transfer, Tagged> = transfers[name]
            const done = move({ caller: people.get(email)!, transfer_id: id as TransferId })
            return answered(Effect.map(done, (transfer) => ({ transfer })))
          })
        )

    return {
      join: async (email) => {
        const { account_id, home_tenant_id } = await run(
          Effect.flatMap(Tenants, ({ welcome }) =>
            welcome({ provider: "google", subject: email, email, email_verified: true, name: email })
          )
        )
        const account = billingAccountOf(home_tenant_id)
        people.set(email, { account_id, tenant_id: home_tenant_id, account })
      },
      credit: (email, amount, source) =>
        run(
          Effect.flatMap(Ledger, ({ credit }) =>
            Effect.asVoid(credit({ account: people.get(email)!.account, amount, source, reference: "outside" }))
          )
        ),
      setStatus: (email, status) =>
        run(
          Effect.flatMap(Ledger, ({ setStatus }) =>
            Effect.asVoid(setStatus({ account: people.get(email)!.account, status }))
          )
        ),
      create: (email, { key, ...transfer }) =>
        run(answered(Effect.flatMap(Transfers, ({ create }) => create({ caller: people.get(email)!, key, transfer })))),
      accept: moved("accept"),
      decline: moved("decline"),
      revoke: moved("revoke"),
      resend: moved("resend"),
      find: moved("find"),
      expire: () => run(Effect.asVoid(Effect.flatMap(Transfers, ({ expire }) => expire))),
      account: (email) =>
        run(
          Effect.map(
            Effect.flatMap(Ledger, (ledger) => ledger.account(people.get(email)!.account)),
            Option.getOrThrow
          )
        ),
      entries: (email) =>
        run(
          Effect.map(
            Effect.flatMap(Ledger, (ledger) =>
              ledger.entries(people.get(email)!.account, { page: 1, per_page: 10_000 })
            ),
            ({ records }) => records.toReversed()
          )
        ),
      close: () => runtime.dispose()
    }
  }

interface Tagged {
  readonly _tag: string
}

/** Converts a problem to an answer. Problems that no story expects remain failures. */
const answered = <R>(effect: Effect.Effect<TransferAnswer, Tagged, R>): Effect.Effect<TransferAnswer, Tagged, R> =>
  Effect.flatMap(
    Effect.either(effect),
    Either.match({
      onLeft: (problem) =>
        unexpected.has(problem._tag)
          ? Effect.fail(problem)
          : Effect.succeed<TransferAnswer>({ refusal: dataOf(problem) }),
      onRight: (answer) => Effect.succeed(answer)
    })
  )

const unexpected: ReadonlySet<string> = new Set([
  "BooksUnavailable",
  "InsufficientRole",
  "TooManyLetters",
  "TooManyTransfers"
])

/** Extracts the tag and the data of a problem, without its text. */
const dataOf = (problem: Tagged): TransferRefusal => {
  const fields = Object.entries(problem).filter(([name]) => name !== "message" && name !== "retry_after")
  return { ...Object.fromEntries(fields), _tag: problem._tag } as TransferRefusal
}

/** Creates a clock that shows the story's time. Sleeping takes real time. */
const effectClock = ({ now }: TransfersClock): Clock.Clock => {
  const { sleep } = Clock.make()
  const nanos = () => BigInt(now()) * 1_000_000n
  return {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: now,
    unsafeCurrentTimeNanos: nanos,
    currentTimeMillis: Effect.sync(now),
    currentTimeNanos: Effect.sync(nanos),
    sleep
  }
}
