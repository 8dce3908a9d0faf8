/**
 * The credit gate. A metered call runs inside `meter`: its upper bound is set aside on disk, the provider is called with the
 * `Admission` in hand, and the call ends exactly once, charged or released. The types leave no other way: a provider's port
 * wants an `Admission`, only `meter` makes one, and only ending it gives the `Metered` that `meter` wants back.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Cause, Context, Duration, Effect, Exit, Layer, Option } from "effect"
import type { CallerFacts } from "../http/Caller.ts"
import * as FiberPool from "../kernel/FiberPool.ts"
import * as Ids from "../kernel/Ids.ts"
import { fromRow, toNumber } from "../kernel/Money.ts"
import type { Nano } from "../kernel/Money.ts"
import { isProblem } from "../kernel/Problem.ts"
import { withDimensions } from "../ledger/Batch.ts"
import { Writer } from "../ledger/Writer.ts"
import type { CallFacts, CallOutcome, Posting, Refusal, Source, Statement } from "../ledger/Transaction.ts"
import { BalanceWatch } from "./BalanceWatch.ts"
import type { BalanceFell } from "./BalanceWatch.ts"
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
  /** A payer who affords this goes before one who affords only `least`; without it, the first who affords `least` pays. */
  readonly enough?: Nano | undefined
  /** The version of the price that the call will be charged by. */
  readonly price?: string | undefined
  /** Statements that must stand or fall with the admission of this call. */
  readonly beside?: ((call: string) => ReadonlyArray<Statement>) | undefined
  /** The call outlives the process: what it has set aside stays until somebody ends it (see `hold` and `resume`). */
  readonly held?: boolean | undefined
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
  /** The payer's balance after it. */
  readonly balance: Nano
}

/** The right to call a provider once, at a cost of up to `reserved`. */
export interface Admission {
  readonly [admitted]: true
  readonly call: string
  readonly reserved: Nano
  readonly payer: Source
  /** Ends the call: charge, entry, usage record and sums are on disk when this returns. Ending it again changes nothing. */
  readonly settle: (measured: Measured) => Effect.Effect<Receipt>
  /** The same, with statements that stand or fall with it: `lost` if they found no rows, and then nothing has ended. */
  readonly settleBeside: (measured: Measured, beside: ReadonlyArray<Statement>) => Effect.Effect<Receipt, "lost">
  /** Ends the call and answers with `value`, made from the receipt. */
  readonly answer: <A>(measured: Measured, value: (receipt: Receipt) => A) => Effect.Effect<Metered<A>>
  /** Answers now, while the call goes on in `rest`, which settles it; a `rest` that ends without is settled as a failure. */
  readonly goOn: <A>(value: A, rest: Effect.Effect<void>) => Effect.Effect<Metered<A>>
  /** Answers now and leaves the call open, of a claim that is `held`: whoever resumes it ends it. */
  readonly hold: <A>(value: A) => Effect.Effect<Metered<A>>
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
  /** The admission of a held call that is still open; `undefined` when it has ended. */
  readonly resume: (call: string) => Effect.Effect<Admission | undefined>
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
  const watch = yield* BalanceWatch
  const clock = yield* Effect.clock
  const run = yield* Ids.make("call")
  const factsOf = makeFacts()
  const fibers = yield* FiberPool.make
  yield* Effect.addFinalizer(() => fibers.quiet.pipe(Effect.timeout(drainLimit), Effect.ignore))

  const settlement = (call: string, at: number, measured: Measured): Posting => ({
    _tag: "Settle",
    call,
    outcome: {
      cost: measured.cost,
      prompt_tokens: measured.prompt_tokens,
      completion_tokens: measured.completion_tokens,
      units: measured.units,
      provider: measured.provider,
      success: measured.success,
      error_type: measured.error_type,
      usage_source: measured.usage_source,
      latency_ms: Math.max(0, clock.unsafeCurrentTimeMillis() - at)
    }
  })

  const end: End = (call, at, measured, beside = none) =>
    Effect.suspend(() => writer.submit({ postings: [settlement(call, at, measured)], statements: beside })).pipe(
      Effect.map(([result]) => ({
        usage_id: Ids.usageOf(call),
        collected: result?._tag === "Settled" ? result.collected : 0n,
        balance: result?._tag === "Settled" ? result.balance : 0n
      })),
      // By itself a settlement has nothing to be refused for; if it is, the books are broken and must say so.
      Effect.catchAll((refusal) =>
        refusal._tag === "Conflict" && beside.length > 0
          ? Effect.fail("lost" as const)
          : Effect.dieMessage(`the settlement of ${call} was refused: ${refusal._tag}`)
      )
    )

  const admit = Effect.fnUntraced(function* <A, E, R>(
    claim: Claim,
    call: (admission: Admission) => Effect.Effect<Metered<A>, E, R>
  ) {
    const { beside, caller, enough, held, least, most } = claim
    const now = clock.unsafeCurrentTimeMillis()
    const id = Ids.at("call", now)
    const sources = yield* payers(caller)
    const [result] = yield* writer
      .submit({
        postings: [
          {
            _tag: "Reserve",
            call: id,
            sources,
            least,
            enough,
            most,
            run: held === true ? heldRun : run,
            facts: factsOf(claim)
          }
        ],
        statements: beside === undefined ? none : beside(id)
      })
      .pipe(Effect.mapError((refusal) => refused(refusal, least, sources)))
    if (result?._tag !== "Reserved") return yield* Effect.dieMessage("the writer did not answer a reservation")

    const admission = new Admitted(id, now, result.source, result.amount, end, fibers, watch) as unknown as Admission
    const exit = yield* Effect.exit(call(admission))
    if (Exit.isSuccess(exit)) return exit.value.value
    yield* admission.settle(failed(exit.cause))
    return yield* Effect.failCause(exit.cause)
  })
  const meter = <A, E, R>(claim: Claim, call: (admission: Admission) => Effect.Effect<Metered<A>, E, R>) =>
    Effect.uninterruptible(admit(claim, call))

  const resume = Effect.fnUntraced(function* (call: string) {
    const [row] = yield* sql<{ amount: string; at: number } & Source>`
      SELECT CAST(r.amount AS TEXT) AS amount, r.at, d.billing_account_id, d.billing_source_tenant_id AS tenant_id,
        d.billing_source_kind AS kind, d.billing_source_why AS why
      FROM tollgate_ledger_reservations r ${sql.literal(withDimensions)}
      WHERE r.id = ${call} AND r.run = ${heldRun}`
    if (row === undefined) return undefined
    const { amount, at, ...payer } = row
    return new Admitted(call, at, payer, fromRow(amount), end, fibers, watch) as unknown as Admission
  }, Effect.orDie)

  const recover = Effect.gen(function* () {
    const left = yield* sql<{ id: string }>`
      SELECT id FROM tollgate_ledger_reservations WHERE run NOT IN (${run}, ${heldRun})`.pipe(Effect.orDie)
    const now = clock.unsafeCurrentTimeMillis()
    yield* Effect.forEach(left, ({ id }) => Effect.orDie(end(id, now, failure("interrupted"))), {
      concurrency: "unbounded",
      discard: true
    })
    return left.length
  })

  return { meter, resume, recover } satisfies Contract
})

/** How many kinds of call are remembered for a caller. */
const kindsMax = 1_000

/** What a call of this claim is known by: the same object for the same facts, which crosses to the writer once (`ledger/Codec`). */
const makeFacts = (): ((claim: Claim) => CallFacts) => {
  const known = new WeakMap<CallerFacts, Map<string, CallFacts>>()
  return ({ caller, endpoint, model, price, provider, usage_type }) => {
    let kinds = known.get(caller)
    if (kinds === undefined) known.set(caller, (kinds = new Map()))
    const kind = `${endpoint}\n${model}\n${provider}\n${price}\n${usage_type}`
    let facts = kinds.get(kind)
    if (facts === undefined) {
      const { account_id, application_id, tenant_id } = caller
      facts = { account_id, tenant_id, application_id, usage_type, endpoint, model, provider, price }
      if (kinds.size >= kindsMax) kinds.clear()
      kinds.set(kind, facts)
    }
    return facts
  }
}

const none: ReadonlyArray<Statement> = []

/** The run of calls that belong to no run of the process. */
const heldRun = "held"

/** Ends a call that began at `at`. */
type End = (
  call: string,
  at: number,
  measured: Measured,
  beside?: ReadonlyArray<Statement>
) => Effect.Effect<Receipt, "lost">

/** An admission in the making of its end. */
class Admitted implements Omit<Admission, typeof admitted> {
  private receipt: Receipt | undefined
  readonly call: string
  readonly at: number
  readonly payer: Source
  readonly reserved: Nano
  private readonly end: End
  private readonly fibers: FiberPool.FiberPool
  private readonly watch: BalanceFell

  constructor(
    call: string,
    at: number,
    payer: Source,
    reserved: Nano,
    end: End,
    fibers: FiberPool.FiberPool,
    watch: BalanceFell
  ) {
    this.call = call
    this.at = at
    this.payer = payer
    this.reserved = reserved
    this.end = end
    this.fibers = fibers
    this.watch = watch
  }

  settle(measured: Measured): Effect.Effect<Receipt> {
    return this.settleBeside(measured, none) as Effect.Effect<Receipt>
  }

  settleBeside(measured: Measured, beside: ReadonlyArray<Statement>): Effect.Effect<Receipt, "lost"> {
    if (this.receipt !== undefined) return Effect.succeed(this.receipt)
    return Effect.map(this.end(this.call, this.at, measured, beside), (receipt) => {
      const { balance, collected } = receipt
      if (collected > 0n) this.watch(this.payer.billing_account_id, balance + collected, balance)
      return (this.receipt = receipt)
    })
  }

  answer<A>(measured: Measured, value: (receipt: Receipt) => A): Effect.Effect<Metered<A>> {
    return Effect.map(this.settle(measured), (receipt) => ({ value: value(receipt) }) as unknown as Metered<A>)
  }

  hold<A>(value: A): Effect.Effect<Metered<A>> {
    return Effect.succeed({ value } as unknown as Metered<A>)
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

const refused = (refusal: Refusal, least: Nano, sources: ReadonlyArray<Source>): InsufficientCredits =>
  refusal._tag === "InsufficientCredits"
    ? new InsufficientCredits({
        details: {
          available_usd: toNumber(refusal.available),
          required_usd: toNumber(least),
          ...(sources.some(({ barred }) => barred === true) && { reason: "this tenant does not let its members spend" })
        }
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
