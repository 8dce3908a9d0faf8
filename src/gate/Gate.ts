/**
 * The credit gate. A metered call runs inside `meter`: its upper bound is set aside on disk, the provider is called with the
 * `Admission` in hand, and the call ends exactly once, charged or released. The types leave no other way: a provider's port
 * wants an `Admission`, only `meter` makes one, and only ending it gives the `Metered` that `meter` wants back.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Cause, Clock, Context, Duration, Effect, Exit, Layer, Option } from "effect"
import type { CallerFacts } from "../http/Caller.ts"
import * as FiberPool from "../kernel/FiberPool.ts"
import * as Ids from "../kernel/Ids.ts"
import { toNumber } from "../kernel/Money.ts"
import type { Nano } from "../kernel/Money.ts"
import { isProblem } from "../kernel/Problem.ts"
import { Writer } from "../ledger/Writer.ts"
import type { CallOutcome, Refusal, Source } from "../ledger/Transaction.ts"
import { Payers } from "./Payers.ts"
import { InsufficientCredits } from "./Problems.ts"

/** What a call wants to be admitted for. */
export interface Claim {
  readonly caller: CallerFacts
  readonly usage_type: "inference" | "tool"
  /** The route's name in usage records: `chat/completions`. */
  readonly endpoint: string
  readonly model: string
  /** The upstream expected to serve it. */
  readonly provider: string
  /** The most that the call can cost, which is what is set aside; less where the balance has less, but never below `least`. */
  readonly most: Nano
  readonly least: Nano
}

declare const admitted: unique symbol
declare const metered: unique symbol

/** What was measured of a call; the gate adds the time it took. */
export type Measured = Omit<CallOutcome, "latency_ms">

/** The end of a call as it stands in the books. */
export interface Receipt {
  readonly usage_id: string
  /** What was charged. */
  readonly collected: Nano
}

/** The right to call a provider once, at a cost of up to `reserved`. */
export interface Admission {
  readonly [admitted]: true
  readonly call: string
  readonly reserved: Nano
  readonly payer: Source
  /** Ends the call: charge, entry, usage record and sums are on disk when this returns. Ending it again changes nothing. */
  readonly settle: (measured: Measured) => Effect.Effect<Receipt>
  /** Ends the call and answers with `value`, made from the receipt. */
  readonly answer: <A>(measured: Measured, value: (receipt: Receipt) => A) => Effect.Effect<Metered<A>>
  /** Answers now, while the call goes on in `rest`, which settles it; a `rest` that ends without is settled as a failure. */
  readonly goOn: <A>(value: A, rest: Effect.Effect<void>) => Effect.Effect<Metered<A>>
}

/** A value whose call is settled, or certain to be. */
export interface Metered<A> {
  readonly [metered]: true
  readonly value: A
}

interface Contract {
  /**
   * Admits the claim and runs the call. From the admission on it cannot be interrupted: whoever leaves, the call is ended in
   * the books. A call that fails costs 0 and leaves a record with `success: false`.
   */
  readonly meter: <A, E, R>(
    claim: Claim,
    call: (admission: Admission) => Effect.Effect<Metered<A>, E, R>
  ) => Effect.Effect<A, E | InsufficientCredits, R>
  /** Releases what an earlier run of the process left reserved; answers how many calls those were. */
  readonly recover: Effect.Effect<number>
}

/** How long a shutdown waits for calls whose client has its answer but whose upstream is still read. */
export const drainLimit = Duration.seconds(15)

export class Gate extends Context.Tag("tollgate/gate/Gate")<Gate, Contract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(Gate, make))
}

const make = Effect.gen(function* () {
  const writer = yield* Writer
  const sql = yield* SqlClient
  const payers = yield* Payers
  const run = yield* Ids.make("call")
  const fibers = yield* FiberPool.make
  yield* Effect.addFinalizer(() => fibers.quiet.pipe(Effect.timeout(drainLimit), Effect.ignore))

  const end = (call: string, outcome: CallOutcome): Effect.Effect<Receipt> =>
    writer.submit({ postings: [{ _tag: "Settle", call, outcome }], statements: [] }).pipe(
      Effect.map(([result]) => ({
        usage_id: Ids.usageOf(call),
        collected: result?._tag === "Settled" ? result.collected : 0n
      })),
      // A settlement has nothing to be refused for; if it is, the books are broken and must say so.
      Effect.catchAll((refusal) => Effect.dieMessage(`the settlement of ${call} was refused: ${refusal._tag}`))
    )

  const meter = <A, E, R>(claim: Claim, call: (admission: Admission) => Effect.Effect<Metered<A>, E, R>) =>
    Effect.uninterruptible(
      Effect.gen(function* () {
        const { caller, endpoint, least, model, most, provider, usage_type } = claim
        const now = yield* Clock.currentTimeMillis
        const id = Ids.at("call", now)
        const { account_id, application_id, tenant_id } = caller
        const sources = yield* payers(caller)
        const [result] = yield* writer
          .submit({
            postings: [
              {
                _tag: "Reserve",
                call: id,
                sources,
                least,
                most,
                run,
                facts: { account_id, tenant_id, application_id, usage_type, endpoint, model, provider }
              }
            ],
            statements: []
          })
          .pipe(Effect.mapError((refusal) => refused(refusal, least)))
        if (result?._tag !== "Reserved") return yield* Effect.dieMessage("the writer did not answer a reservation")

        const admission = new Admitted(id, now, result.source, result.amount, end, fibers) as unknown as Admission
        const exit = yield* Effect.exit(call(admission))
        if (Exit.isSuccess(exit)) return exit.value.value
        yield* admission.settle(failed(exit.cause))
        return yield* Effect.failCause(exit.cause)
      })
    )

  const recover = Effect.gen(function* () {
    const left = yield* sql<{ id: string }>`SELECT id FROM ledger_reservations WHERE run <> ${run}`.pipe(Effect.orDie)
    yield* Effect.forEach(left, ({ id }) => end(id, { ...failure("interrupted"), latency_ms: 0 }), {
      concurrency: "unbounded",
      discard: true
    })
    return left.length
  })

  return { meter, recover } satisfies Contract
})

/** An admission in the making of its end. */
class Admitted implements Omit<Admission, typeof admitted> {
  private receipt: Receipt | undefined
  readonly call: string
  readonly at: number
  readonly payer: Source
  readonly reserved: Nano
  private readonly end: (call: string, outcome: CallOutcome) => Effect.Effect<Receipt>
  private readonly fibers: FiberPool.FiberPool

  constructor(
    call: string,
    at: number,
    payer: Source,
    reserved: Nano,
    end: (call: string, outcome: CallOutcome) => Effect.Effect<Receipt>,
    fibers: FiberPool.FiberPool
  ) {
    this.call = call
    this.at = at
    this.payer = payer
    this.reserved = reserved
    this.end = end
    this.fibers = fibers
  }

  settle(measured: Measured): Effect.Effect<Receipt> {
    if (this.receipt !== undefined) return Effect.succeed(this.receipt)
    return Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.map(
        this.end(this.call, {
          cost: measured.cost,
          prompt_tokens: measured.prompt_tokens,
          completion_tokens: measured.completion_tokens,
          units: measured.units,
          provider: measured.provider,
          success: measured.success,
          error_type: measured.error_type,
          usage_source: measured.usage_source,
          latency_ms: Math.max(0, now - this.at)
        }),
        (receipt) => (this.receipt = receipt)
      )
    )
  }

  answer<A>(measured: Measured, value: (receipt: Receipt) => A): Effect.Effect<Metered<A>> {
    return Effect.map(this.settle(measured), (receipt) => ({ value: value(receipt) }) as unknown as Metered<A>)
  }

  goOn<A>(value: A, rest: Effect.Effect<void>): Effect.Effect<Metered<A>> {
    return Effect.sync(() => {
      this.fibers.run(
        Effect.matchCauseEffect(rest, {
          onFailure: (cause) => Effect.asVoid(this.settle(failed(cause))),
          onSuccess: () => Effect.asVoid(this.settle(failed(Cause.empty)))
        })
      )
      return { value } as unknown as Metered<A>
    })
  }
}

const refused = (refusal: Refusal, least: Nano): InsufficientCredits =>
  refusal._tag === "InsufficientCredits"
    ? new InsufficientCredits({
        details: { available_usd: toNumber(refusal.available), required_usd: toNumber(least) }
      })
    : // An own account that is missing or inactive refuses outright; there is nothing that a smaller call could do.
      new InsufficientCredits({ details: { reason: "the billing account is not active" } })

/** A call that came to nothing: it costs nothing. */
export const failure = (error_type: string): Measured => ({
  cost: 0n,
  prompt_tokens: 0,
  completion_tokens: 0,
  units: 0,
  provider: null,
  success: false,
  error_type,
  usage_source: "none"
})

const failed = <E>(cause: Cause.Cause<E>): Measured => {
  const error = Option.getOrUndefined(Cause.failureOption(cause))
  return failure(isProblem(error) ? (error.body.code ?? error._tag) : "internal_error")
}
