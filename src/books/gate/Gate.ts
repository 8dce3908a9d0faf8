/**
 * The credit gate. A metered call runs inside `meter`: its upper bound is set aside on disk, the provider is called with the
 * `Admission` in hand, and the call ends exactly once, charged or released. The types leave no other way: a provider's port
 * wants an `Admission`, only `meter` makes one, and only ending it gives the `Metered` that `meter` wants back.
 *
 * Where the specification is silent:
 * - An API key's list of models names them as usage records do: a chat model's id (what `auto` became), the provider of a search, the
 *   model of any other tool. What is not in it is 403 `model_not_allowed`, before anything is set aside.
 * - The bound can be too low only where an upstream does more than it was asked: the charge then takes what the balance has, and the
 *   rest stands on the record as `uncollected`.
 * - A tool's price follows from what is asked (characters, images, seconds of quote, a query and its depth), so its charge is never
 *   above what was set aside. The seconds of a transcription are the provider's, believed up to what was set aside; a decision's tokens are believed up to the bytes of the request and 100,000. A figure beyond that, or one that is
 *   no such number, is charged at the bound; without any figure, audio costs its counted length or an estimate (`calls/transcription/Length`), and a token is four bytes. The record then says
 *   that it is estimated.
 */
import { Cause, Context, Duration, Effect, Exit, Layer, Option } from "effect"
import { mayCall } from "../../kernel/Caller.ts"
import type { Caller } from "../../kernel/Caller.ts"
import * as FiberPool from "../../kernel/hot/FiberPool.ts"
import * as Ids from "../../kernel/Ids.ts"
import * as Loop from "../../kernel/Loop.ts"
import { ToItsEnd } from "../../kernel/ReadOn.ts"
import { toDecimal } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { isProblem } from "../../kernel/Problem.ts"
import * as Calls from "../ledger/Calls.ts"
import { BooksUnavailable } from "../ledger/rules/Problems.ts"
import type { Conflict, RefusalByPosting } from "../ledger/rules/Problems.ts"
import { untilWritten, Writer } from "../ledger/write/Writer.ts"
import { interrupted } from "../ledger/rules/Transaction.ts"
import type { CallFacts, CallOutcome, Posting, Source, Statement } from "../ledger/rules/Transaction.ts"
import { Runs } from "../../storage/engine/Runs.ts"
import { Payers } from "./Payers.ts"
import { InsufficientCredits, ModelNotAllowed } from "./Problems.ts"
import type { GateRefusal } from "./Problems.ts"

/** A request for admission. */
export interface Claim {
  readonly caller: Caller
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
  /**
   * Statements that must stand or fall with the admission of this call. One that does not find the rows that it demands refuses it
   * (`BooksUnavailable`).
   */
  readonly beside?: ((call: string) => ReadonlyArray<Statement>) | undefined
  /** The call outlives the process: its reservation stays until the call is ended (see `hold` and `resume`). */
  readonly held?: boolean | undefined
}

declare const admitted: unique symbol
declare const metered: unique symbol

/** The measured outcome of a call; the gate adds the time it took. */
export type Measured = Omit<CallOutcome, "latency_ms">

/** The end of a call as recorded in the books. */
export interface Receipt {
  readonly usage_id: string
  /** The charged amount. */
  readonly charged: Nano
  /** The payer's balance after it. */
  readonly balance: Nano
  /** Who paid. */
  readonly payer: Source
}

/**
 * The right to call a provider once, at a cost of up to `reserved`.
 *
 * How a call ended is said once: what was measured stays what was measured. While the books cannot be written it is tried again under the
 * same outcome until it is written, in the background too. An answer waits for ten seconds (`settlementPatience`) and then fails with
 * `BooksUnavailable`; the call is charged all the same.
 */
export interface Admission {
  readonly [admitted]: true
  readonly call: string
  readonly reserved: Nano
  readonly payer: Source
  /** For calls that do not stream: they are read on to their end after their caller has left. */
  readonly to_its_end: ToItsEnd
  /** Ends the call: charge, entry, usage record and sums are on disk when this returns. Ending it again changes nothing. */
  readonly settle: (measured: Measured) => Effect.Effect<Receipt, BooksUnavailable>
  /** The same, with statements that stand or fall with it: `Conflict` if one did not find its rows, and then nothing has ended. */
  readonly settleBeside: (
    measured: Measured,
    beside: ReadonlyArray<Statement>
  ) => Effect.Effect<Receipt, Conflict | BooksUnavailable>
  /** Ends the call and answers with `value`, made from the receipt. */
  readonly answer: <A>(
    measured: Measured,
    value: (receipt: Receipt) => A
  ) => Effect.Effect<Metered<A>, BooksUnavailable>
  /** Answers now, while the call goes on in `rest`, which settles it; a `rest` that ends without is settled as a failure. */
  readonly goOn: <A>(value: A, rest: Effect.Effect<void, BooksUnavailable>) => Effect.Effect<Metered<A>>
  /**
   * Answers and leaves the call open, for a claim that is `held`: the code that resumes it ends it. The statements say by what it is
   * resumed; they are written like the end of a call, in the background too, and leave the call open even where the answer does not wait.
   */
  readonly hold: <A>(value: A, beside: ReadonlyArray<Statement>) => Effect.Effect<Metered<A>, BooksUnavailable>
}

/** A value whose call is settled, or certain to be. */
export interface Metered<A> {
  readonly [metered]: true
  readonly value: A
}

export interface GateContract {
  /**
   * Admits the claim and runs the call. From the admission on it cannot be interrupted, but where it waits for an upstream
   * (`upstream/wire/Wire`) or says `Effect.interruptible` itself: the call is ended in the books even where its caller leaves. A stream that
   * has begun is read on for up to ten seconds, any other call to its end, and what came is charged. The interrupting fiber waits for that;
   * `Effect.disconnect` spares it the wait.
   * A call that fails costs 0 and leaves a record with `success: false`; one that its interruption ended is a `client_disconnected`.
   */
  readonly meter: <A, E, R>(
    claim: Claim,
    call: (admission: Admission) => Effect.Effect<Metered<A>, E, R>
  ) => Effect.Effect<A, E | GateRefusal, R>
  /**
   * Refuses a caller none of whose sources has credit left, or whose key's limit leaves none, for routes where every call costs something: asked before a long body is
   * read. It sets nothing aside, so `meter` may refuse still.
   */
  readonly look: (caller: Caller) => Effect.Effect<void, InsufficientCredits>
  /**
   * Refuses a caller whose calls `meter` refuses whatever they cost and whatever the balance is, for what costs nothing and reaches a
   * provider: the own billing account is missing or not active, or none that is active may pay.
   */
  readonly mayPay: (caller: Caller) => Effect.Effect<void, InsufficientCredits>
  /** The admission of a held call that is still open; `undefined` when it has ended. */
  readonly resume: (call: string) => Effect.Effect<Admission | undefined>
  /**
   * Whether a held call is no longer worked on, so that the code that finds it should resume it: it has ended, or the run that admitted it
   * has.
   */
  readonly isOrphan: (call: string) => Effect.Effect<boolean>
  /** Whether what this run has reserved waits to be released, since the run has ended. Of a held call that is never so. */
  readonly isAbandoned: (run: string) => Effect.Effect<boolean>
  /**
   * Releases what runs that have ended left reserved, at cost 0 and with `error_type` `interrupted`; answers how many calls those were.
   * Held calls stay. The layer does it once when it opens, `layerJobs` once a minute.
   */
  readonly reclaim: Effect.Effect<number, BooksUnavailable>
  /**
   * The host begins to close: a call whose caller has left is read on for ten seconds more, then it is aborted and costs nothing. The layer's
   * end says it too; a host that first waits for its own requests says it before.
   */
  readonly closing: Effect.Effect<void>
  /** How many calls have ended whose end could not be written yet. */
  readonly unsettled: Effect.Effect<number>
}

/** How long the gate's end waits for calls whose upstream is still read, or whose end is not written. */
export const drainLimit = Duration.seconds(15)

/** How long an answer waits for its settlement while the books cannot be written. */
export class SettlementPatience extends Context.Reference<SettlementPatience>()("tollgate/gate/SettlementPatience", {
  defaultValue: (): Duration.Duration => Duration.seconds(10)
}) {}

/**
 * For a fiber that goes on to wait after its caller has been answered: called when a settlement has taken longer than the patience,
 * which is then no failure.
 */
export class OnLateSettlement extends Context.Reference<OnLateSettlement>()("tollgate/gate/OnLateSettlement", {
  defaultValue: (): (() => void) | undefined => undefined
}) {}

export class Gate extends Context.Tag("tollgate/gate/Gate")<Gate, GateContract>() {
  /** The gate. When it opens it releases what runs that have ended left reserved. */
  static readonly layer = Layer.suspend(() => Layer.scoped(Gate, make).pipe(Layer.provide(Runs.layer)))
  /**
   * Releases what runs that end meanwhile leave reserved: for programs that share a database, and for one that could not be written when
   * the gate opened.
   */
  static readonly layerJobs = Layer.suspend(() => Layer.scopedDiscard(reclaiming).pipe(Layer.provide(Runs.layer)))
}

/** Each node does it, when the lease of another has lapsed. Those of two nodes at once end a call once: a call ends by its reservation. */
const reclaiming = Effect.gen(function* () {
  const { reclaim } = yield* Gate
  const { node } = yield* Runs
  const waker = yield* Loop.waker
  if (node !== undefined)
    yield* Effect.acquireRelease(
      Effect.sync(() => node.on("lapse", waker.wakeNow)),
      (end) => Effect.sync(end)
    )
  yield* Loop.fork({ name: "abandoned reservations", turn: Effect.as(reclaim, reclaimPause), waker, everywhere: true })
})

const make = Effect.gen(function* () {
  const writer = yield* Writer
  const calls = yield* Calls.make
  const payers = yield* Payers
  const clock = yield* Effect.clock
  const { hasEnded, run } = yield* Runs
  const factsOf = makeFacts()
  const fibers = yield* FiberPool.make
  const patience = Duration.toMillis(yield* SettlementPatience)

  /** Calls that have ended, but not yet in the books. */
  const unsettled = new Map<string, Unsettled>()
  let closed = false
  const to_its_end = new ToItsEnd()
  const closing = Effect.sync(() => to_its_end.close())
  yield* Effect.addFinalizer(() =>
    Effect.andThen(
      Effect.zipRight(closing, fibers.quiet(drainLimit)),
      Effect.suspend(() => {
        closed = true
        const lost = [...unsettled.values()]
        return Effect.zipRight(
          Effect.forEach(
            lost,
            ({ ending, waiting }) => {
              for (const tell of waiting) tell(Exit.fail(new BooksUnavailable({ maybe_written: true })))
              return abandoned(ending)
            },
            { discard: true }
          ),
          // A process that stops like this does not exit with 0.
          lost.length === 0 ? Effect.void : Effect.die(new Error(`${lost.length} settlements were not written`))
        )
      })
    )
  )

  const endingOf: Books["endingOf"] = (call, payer, at, measured, beside) => ({
    call,
    payer,
    since: performance.now(),
    beside,
    posting: {
      _tag: "Settle",
      call,
      payer: payer?.billing_account_id,
      outcome: {
        cost: measured.cost,
        prompt_tokens: measured.prompt_tokens,
        completion_tokens: measured.completion_tokens,
        units: measured.units,
        provider: measured.provider,
        served: measured.served,
        success: measured.success,
        error_type: measured.error_type,
        usage_source: measured.usage_source,
        latency_ms: Math.max(0, clock.unsafeCurrentTimeMillis() - at),
        token_details: measured.token_details
      }
    }
  })

  const holdingOf: Books["holdingOf"] = (call, beside) => ({
    call,
    payer: undefined,
    since: performance.now(),
    beside,
    posting: undefined
  })

  const write: Books["write"] = ({ beside, call, payer = nobody, posting }) =>
    Effect.flatMap(
      writer.submit({ postings: posting === undefined ? [] : [posting], statements: beside }),
      ([result]) =>
        result?._tag === "Settled"
          ? Effect.succeed({ usage_id: result.usage_id, charged: result.collected, balance: result.balance, payer })
          : posting === undefined
            ? Effect.succeed(nothing)
            : recorded(call, payer)
    )

  /** The receipt of a call that is settled already, by other code or by an attempt that got no answer. */
  const recorded = (call: string, payer: Source): Effect.Effect<Receipt, BooksUnavailable> =>
    Effect.mapBoth(calls.charged(call), {
      onFailure: () => new BooksUnavailable({ maybe_written: true }),
      onSuccess: (found): Receipt => ({
        usage_id: Ids.usageOf(call),
        charged: found?.charged ?? 0n,
        balance: found?.balance ?? 0n,
        payer
      })
    })

  /** Goes on trying in the background. Answers like `write` within the patience. */
  const writeLater: Books["writeLater"] = (admitted, ending) =>
    Effect.suspend(() => {
      let one = unsettled.get(ending.call)
      if (one === undefined) {
        // The provider answered after the gate was closed: no retry would follow.
        if (closed) return Effect.zipRight(abandoned(ending), new BooksUnavailable())
        if (unsettled.size === 0)
          fibers.run(Effect.logError("a settlement could not be written: it is tried again until it is"))
        unsettled.set(ending.call, (one = { admitted, ending, waiting: [] }))
        fibers.run(goOnWriting(one))
      }
      return waited(one)
    })

  const goOnWriting = (one: Unsettled): Effect.Effect<void> =>
    untilWritten(Effect.suspend(() => (closed ? Effect.interrupt : write(one.ending)))).pipe(
      Effect.exit,
      Effect.flatMap((exit) => {
        // Those that are still unsettled when the gate is closed are told of there.
        if (closed && Exit.isInterrupted(exit)) return Effect.void
        unsettled.delete(one.ending.call)
        one.admitted.ended(exit)
        for (const tell of one.waiting) tell(exit)
        if (Exit.isFailure(exit) && Cause.isDie(exit.cause)) return abandoned(one.ending, exit.cause)
        return unsettled.size === 0 ? Effect.logWarning("all settlements are written again") : Effect.void
      })
    )

  const waited = (one: Unsettled): Effect.Effect<Receipt, Conflict | BooksUnavailable> =>
    Effect.flatMap(OnLateSettlement, (onLate) =>
      Effect.async((resume) => {
        const late = () => (onLate === undefined ? resume(new BooksUnavailable({ maybe_written: true })) : onLate())
        // By the time of this process, however its clock may be steered: a client waits.
        const timer = setTimeout(late, Math.max(0, patience - (performance.now() - one.ending.since)))
        one.waiting.push((exit) => {
          clearTimeout(timer)
          resume(exit)
        })
      })
    )

  const books: Books = { endingOf, holdingOf, write, writeLater, fibers, to_its_end }

  const admit = Effect.fnUntraced(function* <A, E, R>(
    claim: Claim,
    call: (admission: Admission) => Effect.Effect<Metered<A>, E, R>
  ) {
    const { beside, caller, enough, least, model, most } = claim
    if (!mayCall(caller, model))
      return yield* new ModelNotAllowed({ model, allowed_models: caller.allowed_models ?? [] })
    const now = clock.unsafeCurrentTimeMillis()
    const id = Ids.at("call", now)
    const sources = yield* payers(caller)
    const [reserved] = yield* writer
      .submit({
        postings: [
          {
            _tag: "Reserve",
            call: id,
            sources,
            least,
            enough,
            most,
            run: claim.held === true ? heldBy(run) : run,
            facts: factsOf(claim)
          }
        ],
        statements: beside === undefined ? none : beside(id)
      })
      .pipe(
        Effect.catchAll((refusal): Effect.Effect<never, InsufficientCredits | BooksUnavailable> => {
          // A row that a statement beside it demands was there a moment ago: the whole request may be made again.
          if (refusal._tag === "Conflict") return new BooksUnavailable()
          if (refusal._tag !== "BooksUnavailable") return refused(refusal, least, sources)
          // Should it be reserved after all, it is given back as soon as that is known.
          if (refusal.maybe_written) {
            const late = new Admitted(id, now, sources[0]!, 0n, books)
            fibers.run(Effect.ignore(late.settle(failure(refusedLate))))
          }
          return refusal
        })
      )
    const admitted = new Admitted(id, now, reserved.source, reserved.amount, books)
    fibers.begin()
    // Suspended: whatever the host's function throws ends the call too.
    const exit = yield* Effect.exit(Effect.suspend(() => call(admitted as unknown as Admission)))
    if (Exit.isSuccess(exit)) {
      fibers.end()
      return exit.value.value
    }
    yield* Effect.ensuring(admitted.fail(exit.cause), Effect.sync(fibers.end))
    return yield* Effect.failCause(exit.cause)
  })
  const meter = <A, E, R>(claim: Claim, call: (admission: Admission) => Effect.Effect<Metered<A>, E, R>) =>
    Effect.uninterruptible(admit(claim, call))

  const resume = Effect.fnUntraced(function* (call: string) {
    // It has ended already, and its end stays what it is.
    const one = unsettled.get(call)
    if (one !== undefined) return one.admitted as unknown as Admission
    const open = yield* calls.find(call)
    if (open === undefined || !isHeld(open.run)) return undefined
    return new Admitted(call, open.at, open.payer, open.amount, books) as unknown as Admission
  })

  /** The open calls of a run that has ended. */
  const leftBy = Effect.fnUntraced(function* (run: string) {
    if (!(yield* hasEnded(run))) return none
    const left = yield* calls.ofRun(run)
    // A node that was frozen may have come back, and these be calls that it has admitted since.
    return (yield* hasEnded(run)) ? left : none
  })

  const reclaim = Effect.gen(function* () {
    const others = (yield* calls.runs).filter((one) => one !== run && !isHeld(one))
    const left = (yield* Effect.forEach(others, leftBy)).flat()
    if (left.length === 0) return 0
    const now = clock.unsafeCurrentTimeMillis()
    yield* Effect.forEach(left, (call) => write(endingOf(call, undefined, now, failure(interrupted), none)), {
      concurrency: "unbounded",
      discard: true
    }).pipe(Effect.catchTag("Conflict", Effect.die))
    yield* Effect.logWarning(`reservations of runs that have ended were released: ${left.length}`)
    return left.length
  })
  yield* Effect.catchAllCause(reclaim, (cause) =>
    Effect.logError("the reservations of runs that have ended could not be released", cause)
  )

  const isOrphan = (call: string) =>
    Effect.flatMap(calls.find(call), (open) =>
      open === undefined ? Effect.succeed(true) : hasEnded(open.run.slice(heldBy("").length))
    )

  const isAbandoned = (run: string) => (isHeld(run) ? Effect.succeed(false) : hasEnded(run))

  const look = Effect.fnUntraced(function* (caller: Caller) {
    const sources = yield* payers(caller)
    const accounts = sources.filter(({ barred }) => barred !== true).map(({ billing_account_id }) => billing_account_id)
    const now = clock.unsafeCurrentTimeMillis()
    const { funded, within_limit } = yield* calls.look({ accounts, application: caller.application_id, now })
    if (!funded || !within_limit)
      return yield* new InsufficientCredits({
        available: 0n,
        required: 0n,
        payer: sources[0]!.billing_account_id,
        reason: funded ? "key_limit" : isBarred(sources) ? "members_may_not_spend" : "balance"
      })
  })

  const mayPay = Effect.fnUntraced(function* (caller: Caller) {
    const sources = yield* payers(caller)
    const active = yield* calls.active(sources.map(({ billing_account_id }) => billing_account_id))
    const ownIsActive = sources.every((one) => one.kind === "team" || active.has(one.billing_account_id))
    if (ownIsActive && sources.some((one) => one.barred !== true && active.has(one.billing_account_id))) return
    return yield* new InsufficientCredits({
      available: 0n,
      required: 0n,
      payer: sources[0]!.billing_account_id,
      reason: ownIsActive && isBarred(sources) ? "members_may_not_spend" : "account_not_active"
    })
  })

  return {
    meter,
    look,
    mayPay,
    resume,
    isOrphan,
    isAbandoned,
    reclaim,
    closing,
    unsettled: Effect.sync(() => unsettled.size)
  } satisfies GateContract
})

/** How many kinds of call are remembered for a caller. */
const kindsMax = 1_000

/** The facts of this claim. The same facts give the same object, which crosses to the writer once (`books/ledger/write/Codec`). */
const makeFacts = (): ((claim: Claim) => CallFacts) => {
  const known = new WeakMap<Caller, Map<string, CallFacts>>()
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

/** The `error_type` of a call that was refused because its reservation could not be written in time, and then was. */
export const refusedLate = "books_unavailable"

const none: ReadonlyArray<never> = []

/** Of a call that is ended without anybody who waits for its receipt. */
const nobody: Source = { billing_account_id: "", tenant_id: "", kind: "own", why: "own" }
const nothing: Receipt = { usage_id: "", charged: 0n, balance: 0n, payer: nobody }

/** The run of a held call: this word and the name of the run that admitted it. */
const held = "held"
const heldBy = (run: string): string => `${held} ${run}`
/** Whether it is that of a held call, which a job looks after. (An earlier version wrote the word alone.) */
const isHeld = (run: string): boolean => run.startsWith(held)

const reclaimPause = Duration.minutes(1)

/** The end of a call, to be written to the books; without a posting, statements beside a call that stays open. */
interface Ending {
  readonly call: string
  readonly payer: Source | undefined
  readonly posting: Extract<Posting, { readonly _tag: "Settle" }> | undefined
  readonly beside: ReadonlyArray<Statement>
  /** When it was first to be written, by the time of the process. */
  readonly since: number
}

/** A call that has ended, but not yet in the books. */
interface Unsettled {
  readonly admitted: Admitted
  readonly ending: Ending
  readonly waiting: Array<(exit: Exit.Exit<Receipt, Conflict | BooksUnavailable>) => void>
}

/** Dependencies of an admission. */
interface Books {
  /** The end of a call that began at `at`, as measured now. `payer` may be unknown where it costs nothing. */
  readonly endingOf: (
    call: string,
    payer: Source | undefined,
    at: number,
    measured: Measured,
    beside: ReadonlyArray<Statement>
  ) => Ending
  /** Statements to write beside a call that stays open. */
  readonly holdingOf: (call: string, beside: ReadonlyArray<Statement>) => Ending
  readonly write: (ending: Ending) => Effect.Effect<Receipt, Conflict | BooksUnavailable>
  readonly writeLater: (admitted: Admitted, ending: Ending) => Effect.Effect<Receipt, Conflict | BooksUnavailable>
  readonly fibers: FiberPool.FiberPool
  readonly to_its_end: ToItsEnd
}

/** This end is no longer retried: the operator must follow up what the call cost. */
const abandoned = ({ call, posting }: Ending, cause: Cause.Cause<unknown> = Cause.empty): Effect.Effect<void> =>
  Effect.logFatal("a settlement was not written", ...(Cause.isEmpty(cause) ? [] : [cause])).pipe(
    Effect.annotateLogs(
      posting === undefined
        ? { call }
        : { call, cost_usd: toDecimal(posting.outcome.cost), success: posting.outcome.success }
    )
  )

/** An admission in the making of its end. */
class Admitted implements Omit<Admission, typeof admitted> {
  private receipt: Receipt | undefined
  /** How it ended, as first said: nothing replaces it. */
  private ending: Ending | undefined
  readonly call: string
  readonly at: number
  readonly payer: Source
  readonly reserved: Nano
  private readonly books: Books

  constructor(call: string, at: number, payer: Source, reserved: Nano, books: Books) {
    this.call = call
    this.at = at
    this.payer = payer
    this.reserved = reserved
    this.books = books
  }

  get to_its_end(): ToItsEnd {
    return this.books.to_its_end
  }

  settle(measured: Measured): Effect.Effect<Receipt, BooksUnavailable> {
    return this.settleBeside(measured, none) as Effect.Effect<Receipt, BooksUnavailable>
  }

  settleBeside(
    measured: Measured,
    beside: ReadonlyArray<Statement>
  ): Effect.Effect<Receipt, Conflict | BooksUnavailable> {
    if (this.receipt !== undefined) return Effect.succeed(this.receipt)
    if (this.ending !== undefined) return this.books.writeLater(this, this.ending)
    this.ending = this.books.endingOf(this.call, this.payer, this.at, measured, beside)
    return this.write(this.ending)
  }

  private write(ending: Ending): Effect.Effect<Receipt, Conflict | BooksUnavailable> {
    const { books } = this
    return Effect.matchCauseEffect(books.write(ending), {
      onSuccess: (receipt) => {
        this.ended(Exit.succeed(receipt))
        return Effect.succeed(receipt)
      },
      onFailure: (cause) => {
        if (cause._tag === "Fail" && cause.error._tag === "BooksUnavailable") return books.writeLater(this, ending)
        const exit = Exit.failCause(cause) as Exit.Exit<never, Conflict>
        this.ended(exit)
        return cause._tag === "Fail" ? exit : Effect.zipRight(abandoned(ending, cause), exit)
      }
    })
  }

  /** Its end is written, or was refused, in which case it has not ended; nor has it where it was only held. */
  ended(exit: Exit.Exit<Receipt, Conflict>): void {
    if (Exit.isFailure(exit)) {
      // If the database refuses the end, the call has not ended: it then ends as a failure, or its credit would stay reserved.
      if (!Cause.isInterruptedOnly(exit.cause)) this.ending = undefined
      return
    }
    if (this.ending?.posting === undefined) {
      this.ending = undefined
      return
    }
    this.receipt = exit.value
  }

  answer<A>(measured: Measured, value: (receipt: Receipt) => A): Effect.Effect<Metered<A>, BooksUnavailable> {
    return Effect.map(this.settle(measured), (receipt) => ({ value: value(receipt) }) as unknown as Metered<A>)
  }

  hold<A>(value: A, beside: ReadonlyArray<Statement>): Effect.Effect<Metered<A>, BooksUnavailable> {
    this.ending = this.books.holdingOf(this.call, beside)
    return Effect.as(this.write(this.ending), { value } as unknown as Metered<A>) as Effect.Effect<
      Metered<A>,
      BooksUnavailable
    >
  }

  goOn<A>(value: A, rest: Effect.Effect<void, BooksUnavailable>): Effect.Effect<Metered<A>> {
    return Effect.sync(() => {
      this.books.fibers.run(
        Effect.matchCauseEffect(rest, {
          onFailure: (cause) => this.fail(cause),
          onSuccess: () => this.fail(Cause.empty)
        })
      )
      return { value } as unknown as Metered<A>
    })
  }

  /** Ends the call as a failure, unless it has ended: what was measured of it, written or not, stays. */
  fail(cause: Cause.Cause<unknown>): Effect.Effect<void> {
    return this.ending === undefined ? Effect.ignore(this.settle(failed(cause))) : Effect.void
  }
}

const refused = (
  refusal: RefusalByPosting["Reserve"],
  required: Nano,
  sources: ReadonlyArray<Source>
): InsufficientCredits => {
  const payer = sources[0]!.billing_account_id
  if (refusal._tag === "LimitReached")
    return new InsufficientCredits({ available: refusal.available, required, payer, reason: "key_limit" })
  // An own account that is missing or inactive refuses outright.
  return refusal._tag === "InsufficientCredits"
    ? new InsufficientCredits({
        available: refusal.available,
        required,
        payer,
        reason: isBarred(sources) ? "members_may_not_spend" : "balance"
      })
    : new InsufficientCredits({ available: 0n, required, payer, reason: "account_not_active" })
}

const isBarred = (sources: ReadonlyArray<Source>): boolean => sources.some(({ barred }) => barred === true)

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
  // The caller has left: their fiber was interrupted.
  if (Cause.isInterruptedOnly(cause) && !Cause.isEmpty(cause)) return failure("client_disconnected")
  const error = Option.getOrUndefined(Cause.failureOption(cause))
  return failure(isProblem(error) ? (error.body.code ?? error._tag) : "internal_error")
}
