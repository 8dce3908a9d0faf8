/**
 * The credit gate. A metered call runs inside `meter`, which durably reserves the call's bound and passes the call an `Admission`. The call ends
 * exactly once, either charged or released. The types enforce this: a provider's port requires an `Admission`, only the gate creates one, and only
 * its methods return the `Metered` that `meter` expects.
 *
 * Where the specification is silent:
 * - An API key lists models by their names in usage records: a chat model's id (for `auto`, the selected model), a search's provider, or any other
 *   tool's model. Calls to unlisted models get 403 `model_not_allowed` before anything is reserved.
 * - The bound is too low only if an upstream does more than requested. The charge is then limited to the available credit, and the usage record lists
 *   the remainder as `uncollected`.
 * - A tool's price depends only on the request (characters, images, quoted seconds, a query and its depth), so its charge never exceeds the
 *   reservation. A transcription is charged by the duration that the provider reports, up to the reservation. A decision's token count is accepted
 *   up to the request's byte count plus 100,000. A larger or invalid figure is charged at the bound. Without a figure, audio is charged by its
 *   measured or estimated length (`calls/transcription/Length`), and four bytes count as one token. The usage record marks an estimated charge.
 */
import { Cause, Context, Duration, Effect, Exit, FiberRef, HashMap, identity, Layer, Option } from "effect"
import type { Capability } from "../../kernel/Capabilities.ts"
import { mayCall } from "../../kernel/Caller.ts"
import type { Caller, Labels } from "../../kernel/Caller.ts"
import * as CallSpan from "../../kernel/CallSpan.ts"
import { isDone } from "../../kernel/hot/Done.ts"
import * as FiberPool from "../../kernel/hot/FiberPool.ts"
import * as Ids from "../../kernel/Ids.ts"
import { merged } from "../../kernel/Labels.ts"
import * as Loop from "../../kernel/Loop.ts"
import { ReadToEnd } from "../../kernel/ReadOn.ts"
import { toDecimal } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { isProblem } from "../../kernel/Problem.ts"
import { Tracing } from "../../kernel/Tracing.ts"
import { withAttempt, withLast } from "../../kernel/VendorRequests.ts"
import * as Calls from "../ledger/Calls.ts"
import { BooksUnavailable } from "../ledger/rules/Problems.ts"
import type { Conflict, RefusalByPosting } from "../ledger/rules/Problems.ts"
import { untilWritten, Writer } from "../ledger/write/Writer.ts"
import { interrupted } from "../ledger/rules/Transaction.ts"
import type {
  CallFacts,
  CallOutcome,
  ClaimedFacts,
  Posting,
  Result,
  ResultByPosting,
  Shortage,
  Source,
  Statement,
  ServingRoute,
  BudgetAllowance
} from "../ledger/rules/Transaction.ts"
import { Runs } from "../../storage/engine/Runs.ts"
import { refusedCall, logProblem } from "./CallLog.ts"
import { CallObserver } from "./CallObserver.ts"
import type { ObserveCall, ObservedFacts } from "./CallObserver.ts"
import { Payers } from "./Payers.ts"
import { BudgetExceeded, InsufficientCredits, ModelNotAllowed, noteRates, RateLimitReached } from "./Problems.ts"
import type { GateRefusal } from "./Problems.ts"
import type { RatesAt } from "./RateHeaders.ts"

export interface Claim {
  readonly caller: Caller
  readonly usage_type: "inference" | "tool"
  /** The route's name in usage records, such as `chat/completions`. */
  readonly endpoint: string
  readonly model: string
  /** The upstream that is expected to serve the call. */
  readonly provider: string
  /** The call's bound. The gate reserves this amount, or less if the payer or a budget has less left, but at least `least`. */
  readonly most: Nano
  readonly least: Nano
  /** The first payer who can afford this amount pays, otherwise the first who can afford `least`. The default is `least`. */
  readonly enough?: Nano | undefined
  /** The capability, for budgets that apply only to some capabilities. */
  readonly capability?: Capability | undefined
  /**
   * The models and providers that can serve the call, beginning with `model` and `provider`. Absent if no others can serve it. Equal claims should
   * share one array, because the gate's cache compares it by identity.
   */
  readonly ways?: ReadonlyArray<ServingRoute> | undefined
  /** The tokens that the call needs from its token budgets. An admitted call gets at least `least`. */
  readonly tokens?: { readonly least: number; readonly most: number } | undefined
  /** The request's tags and end user. The caller's own labels take precedence. */
  readonly labels?: Labels | undefined
  readonly price?: string | undefined
  /**
   * Returns statements that commit or fail with the call's admission. If one of them does not match its rows, the gate refuses the call with
   * `BooksUnavailable`.
   */
  readonly beside?: ((call: string) => ReadonlyArray<Statement>) | undefined
  /** The value of `X-Request-Id`, for the usage record. The default is the `request_id` in the fiber's log annotations. */
  readonly request_id?: string | undefined
  /** Whether the call can outlive the process. If so, its reservation remains until the call ends (`hold`, `resume`). */
  readonly held?: boolean | undefined
}

declare const admitted: unique symbol
declare const metered: unique symbol

/** A call's outcome, as measured by its route. The gate adds the latency and the request id. */
export type Measured = Omit<CallOutcome, "latency_ms" | "request_id">

/** The books' record of a settled call. */
export interface Receipt {
  readonly usage_id: string
  readonly charged: Nano
  /** The payer's balance after the charge. */
  readonly balance: Nano
  readonly payer: Source
  /** The call's rate limits. Present only in the receipt that `answer` passes to its callback, and only if a budget concerns the call. */
  readonly rates?: RatesAt | undefined
}

/**
 * The right to call a provider once, for at most `reserved`.
 *
 * A call's first outcome is final unless its settlement is rejected. If the books cannot be written, the gate retries the settlement in the
 * background with the same outcome. The response waits for the retries (`SettlementPatience`), then fails with `BooksUnavailable`, although the call
 * will still be charged.
 */
export interface Admission {
  readonly [admitted]: true
  readonly call: string
  readonly reserved: Nano
  readonly payer: Source
  /** The tokens that the call may use within its budgets; `undefined` if no budget limits tokens. */
  readonly tokens: number | undefined
  /** The request and token limits with the smallest remainders among the call's budgets; `undefined` if no budget concerns the call. */
  readonly rates: RatesAt | undefined
  /** Returns whether the budgets allow the model and provider at this index of the claim's `ways`. */
  readonly mayServe: (place: number) => boolean
  /** The refusal by the first budget that excludes a model or provider; `undefined` if none is excluded. */
  readonly barred: BudgetExceeded | RateLimitReached | undefined
  /** Logs an upstream's failure before the next upstream is tried. */
  readonly goesOn: (problem: { readonly _tag: string }) => Effect.Effect<void>
  /** Reads responses of non-streaming calls to their end even if the caller disconnects. */
  readonly to_its_end: ReadToEnd
  /** Adds the vendor's request id of an attempt to the usage record. */
  readonly servedAs: (vendor_request: string | undefined) => void
  /** Ends the call. Once this succeeds, its charge, entry, usage record and sums are durable. Idempotent. */
  readonly settle: (measured: Measured) => Effect.Effect<Receipt, BooksUnavailable>
  /**
   * Works like `settle`, with statements that commit or fail with the settlement. If a statement does not match its rows, the effect fails with
   * `Conflict` and the call stays open.
   */
  readonly settleBeside: (
    measured: Measured,
    beside: ReadonlyArray<Statement>
  ) => Effect.Effect<Receipt, Conflict | BooksUnavailable>
  /** Ends the call and returns the value that `value` computes from the receipt. */
  readonly answer: <A>(
    measured: Measured,
    value: (receipt: Receipt) => A
  ) => Effect.Effect<Metered<A>, BooksUnavailable>
  /** Returns the value and runs `rest` in the background to settle the call. If `rest` ends without an outcome, the call is settled as a failure. */
  readonly goOn: <A>(value: A, rest: Effect.Effect<void, BooksUnavailable>) => Effect.Effect<Metered<A>>
  /**
   * Returns the value and leaves a `heldPrefix` call open. The code that resumes the call ends it. The statements `beside` store the data for resuming the
   * call. They are written like a settlement, with retries in the background.
   */
  readonly hold: <A>(value: A, beside: ReadonlyArray<Statement>) => Effect.Effect<Metered<A>, BooksUnavailable>
}

/** The value of a call that is settled, held, or certain to be settled. */
export interface Metered<A> {
  readonly [metered]: true
  readonly value: A
}

export interface GateContract {
  /**
   * Admits the claim and runs the call. After the admission, the call can be interrupted only while it waits for an upstream (`upstream/wire/Wire`)
   * or inside an `Effect.interruptible`. It is therefore settled even if its caller disconnects. A stream that has begun is read for up to ten more
   * seconds, and any other response to its end. The received part is charged. The interrupting fiber waits for the settlement unless it uses
   * `Effect.disconnect`. A call that fails without an outcome costs 0, and its usage record has `success: false`. The `error_type` of an interrupted
   * call is `client_disconnected`.
   */
  readonly meter: <A, E, R>(
    claim: Claim,
    call: (admission: Admission) => Effect.Effect<Metered<A>, E, R>
  ) => Effect.Effect<A, E | GateRefusal, R>
  /**
   * Refuses a caller if all sources are out of credit or the key's limit is used up. Routes without free calls can check this before reading a long
   * body. Nothing is reserved, so `meter` can still refuse.
   */
  readonly look: (caller: Caller) => Effect.Effect<void, InsufficientCredits>
  /**
   * Refuses a caller if `meter` would refuse even a free call. Either the caller's own billing account is missing or inactive, or no active account
   * may pay. Free requests that reach a provider need this check.
   */
  readonly mayPay: (caller: Caller) => Effect.Effect<void, InsufficientCredits>
  /** Returns the admission of a held call until its settlement is written. Returns `undefined` afterwards, and for a call that is not held. */
  readonly resume: (call: string) => Effect.Effect<Admission | undefined>
  /** Returns whether a held call or the run that admitted it has ended. The call should then be resumed. */
  readonly isOrphan: (call: string) => Effect.Effect<boolean>
  /** Returns whether a run has ended, so that its reservations must be released. Always false for a held call's run. */
  readonly isAbandoned: (run: string) => Effect.Effect<boolean>
  /**
   * Releases the reservations of runs that have ended, at cost 0 and with the `error_type` `interrupted`, and returns their number. Held calls stay
   * reserved. `layer` runs this when it opens. `layerJobs` runs it once a minute and when another node's lease lapses.
   */
  readonly reclaim: Effect.Effect<number, BooksUnavailable>
  /**
   * Notifies the gate that the host is closing. Calls of disconnected callers get ten more seconds, then they are aborted at no cost. Closing the
   * layer has the same effect, but a host that waits for its requests before that should call this first.
   */
  readonly closing: Effect.Effect<void>
  /** Waits until no call is running and every ended call is settled. */
  readonly idle: Effect.Effect<void>
  /** The number of calls that have ended without a written settlement. */
  readonly unsettled: Effect.Effect<number>
}

/** How long closing the gate waits for open upstreams and unwritten settlements. */
export const drainLimit = Duration.seconds(15)

/** How long a response waits for its settlement while the books cannot be written. */
export class SettlementPatience extends Context.Reference<SettlementPatience>()("tollgate/gate/SettlementPatience", {
  defaultValue: (): Duration.Duration => Duration.seconds(10)
}) {}

/**
 * Called when a settlement takes longer than `SettlementPatience`. If set, the wait continues instead of failing. Use it in fibers that still wait
 * after their caller has received a response.
 */
export class OnLateSettlement extends Context.Reference<OnLateSettlement>()("tollgate/gate/OnLateSettlement", {
  defaultValue: (): (() => void) | undefined => undefined
}) {}

export class Gate extends Context.Tag("tollgate/gate/Gate")<Gate, GateContract>() {
  /** Opens the gate and releases the reservations of runs that have ended. */
  static readonly layer = Layer.suspend(() => Layer.scoped(Gate, make).pipe(Layer.provide(Runs.layer)))
  /**
   * Releases the reservations of runs that end later. Required if programs share a database, or if the database was not writable when the gate
   * opened.
   */
  static readonly layerJobs = Layer.suspend(() => Layer.scopedDiscard(reclaimJob).pipe(Layer.provide(Runs.layer)))
}

/**
 * The job that runs `reclaim`. All nodes run it, so several can find the same reservation. A call still ends only once, because its reservation is
 * released only once.
 */
const reclaimJob = Effect.gen(function* () {
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
  const tracing = yield* Tracing

  const unsettled = new Map<string, Unsettled>()
  let closed = false
  const to_its_end = new ReadToEnd()
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
              return logAbandoned(ending)
            },
            { discard: true }
          ),
          // Die, so that the process exits with a code other than 0.
          lost.length === 0 ? Effect.void : Effect.die(new Error(`${lost.length} settlements were not written`))
        )
      })
    )
  )

  const endingOf: Books["endingOf"] = (call, payer, at, measured, beside, request_id, vendor_request) => ({
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
        token_details: measured.token_details,
        request_id,
        vendor_request:
          measured.vendor_request === undefined ? vendor_request : withLast(vendor_request, measured.vendor_request),
        vendor_cost: measured.vendor_cost,
        request_hash: measured.request_hash,
        answer_hash: measured.answer_hash
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

  const submit: Books["submit"] = ({ beside, posting }) =>
    writer.submit({ postings: posting === undefined ? [] : [posting], statements: beside })

  /** Reads the receipt of a call that was already settled, by other code or by an attempt that got no reply. */
  const recorded: Books["recorded"] = ({ call, payer = noPayer }) =>
    Effect.mapBoth(calls.charged(call), {
      onFailure: () => new BooksUnavailable({ maybe_written: true }),
      onSuccess: (found): Receipt => ({
        usage_id: Ids.usageOf(call),
        charged: found?.charged ?? 0n,
        balance: found?.balance ?? 0n,
        payer
      })
    })

  const write = (ending: Ending): Effect.Effect<Receipt, Conflict | BooksUnavailable> =>
    Effect.flatMap(submit(ending), (results) => {
      const receipt = receiptIn(results, ending)
      return receipt === undefined ? recorded(ending) : Effect.succeed(receipt)
    })

  /** Works like `write`, but retries in the background. The wait is limited by `SettlementPatience`. */
  const writeLater: Books["writeLater"] = (admitted, ending) =>
    Effect.suspend(() => {
      let unsettledCall = unsettled.get(ending.call)
      if (unsettledCall === undefined) {
        // The provider responded after the gate had closed, so no retry is possible.
        if (closed) return Effect.zipRight(logAbandoned(ending), new BooksUnavailable())
        if (unsettled.size === 0)
          fibers.run(Effect.logError("a settlement could not be written and is retried in the background"))
        unsettled.set(ending.call, (unsettledCall = { admitted, ending, waiting: [] }))
        fibers.run(retryWriting(unsettledCall))
      }
      return awaitSettlement(unsettledCall)
    })

  const retryWriting = (unsettledCall: Unsettled): Effect.Effect<void> =>
    untilWritten(Effect.suspend(() => (closed ? Effect.interrupt : write(unsettledCall.ending)))).pipe(
      Effect.exit,
      Effect.flatMap((exit) => {
        // The gate's finalizer reports unwritten settlements.
        if (closed && Exit.isInterrupted(exit)) return Effect.void
        unsettled.delete(unsettledCall.ending.call)
        unsettledCall.admitted.ended(exit)
        for (const tell of unsettledCall.waiting) tell(exit)
        if (Exit.isFailure(exit) && Cause.isDie(exit.cause)) return logAbandoned(unsettledCall.ending, exit.cause)
        return unsettled.size === 0 ? Effect.logWarning("all pending settlements are written") : Effect.void
      })
    )

  const awaitSettlement = (unsettledCall: Unsettled): Effect.Effect<Receipt, Conflict | BooksUnavailable> =>
    Effect.flatMap(OnLateSettlement, (onLate) =>
      Effect.async((resume) => {
        const late = () => (onLate === undefined ? resume(new BooksUnavailable({ maybe_written: true })) : onLate())
        // Use real time, because the client waits even if a test controls the clock.
        const timer = setTimeout(late, Math.max(0, patience - (performance.now() - unsettledCall.ending.since)))
        unsettledCall.waiting.push((exit) => {
          clearTimeout(timer)
          resume(exit)
        })
      })
    )

  const books: Books = {
    now: () => clock.unsafeCurrentTimeMillis(),
    observe: yield* CallObserver,
    endingOf,
    holdingOf,
    submit,
    recorded,
    writeLater,
    fibers,
    to_its_end
  }

  // Callbacks, because each additional fiber step costs every call a third of a microsecond.
  const meter = <A, E, R>(claim: Claim, call: IncomingCall<A, E, R>["call"]) =>
    Effect.uninterruptible(
      Effect.suspend(() =>
        claim.request_id === undefined
          ? Effect.flatMap(loggedRequest, (request_id) => admit(claim, call, request_id))
          : admit(claim, call, claim.request_id)
      )
    )

  const admit = <A, E, R>(
    claim: Claim,
    call: IncomingCall<A, E, R>["call"],
    request_id: string | undefined
  ): Effect.Effect<A, E | GateRefusal, R> => {
    const { caller, model } = claim
    if (!mayCall(caller, model)) {
      const problem = new ModelNotAllowed({ model, allowed_models: caller.allowed_models ?? [] })
      return Effect.zipRight(logProblem(refusedCall, factsOf(claim), request_id, 0, problem), problem)
    }
    const now = clock.unsafeCurrentTimeMillis()
    const id = Ids.at("call", now)
    const reserveFrom = (sources: ReadonlyArray<Source>) => reserve({ claim, call, id, now, request_id, sources })
    const sources = payers(caller)
    return isDone(sources) ? reserveFrom(sources.value) : Effect.flatMap(sources, reserveFrom)
  }

  const reserve = <A, E, R>(
    incoming: IncomingCall<A, E, R>
  ): Effect.Effect<A, E | GateRefusal | BooksUnavailable, R> => {
    const { claim, id, sources } = incoming
    const { beside, enough, least, most, tokens } = claim
    // From here on, the call counts as open. A client that disconnects during the reservation does not stop the call.
    fibers.begin()
    const posting = {
      _tag: "Reserve",
      call: id,
      sources,
      least,
      enough,
      most,
      run: claim.held === true ? heldBy(run) : run,
      facts: factsOf(claim),
      tokens
    } as const
    return Effect.matchCauseEffect(
      writer.submit({ postings: [posting], statements: beside === undefined ? none : beside(id) }),
      {
        onSuccess: ([reserved]) => proceed(incoming, reserved),
        onFailure: (cause) => {
          fibers.end()
          return cause._tag === "Fail"
            ? refuseReservation(incoming, cause.error)
            : Effect.failCause(cause as Cause.Cause<never>)
        }
      }
    )
  }

  const refuseReservation = (
    { claim, id, now, request_id, sources }: IncomingCall<unknown, unknown, unknown>,
    refusal: RefusalByPosting["Reserve"] | Conflict | BooksUnavailable
  ): Effect.Effect<never, Exclude<GateRefusal, ModelNotAllowed>> => {
    // A statement of `beside` did not match its rows. The client can retry the entire request.
    if (refusal._tag === "Conflict") return new BooksUnavailable()
    if (refusal._tag !== "BooksUnavailable") {
      const problem = refusalProblem(refusal, claim.least, sources, now)
      const millis = clock.unsafeCurrentTimeMillis() - now
      return Effect.zipRight(logProblem(refusedCall, factsOf(claim), request_id, millis, problem), Effect.fail(problem))
    }
    // The reservation might be written. If so, release it as soon as possible.
    if (refusal.maybe_written) {
      const late = new Admitted(id, now, sources[0]!, 0n, books, request_id, undefined)
      fibers.run(Effect.ignore(late.settle(failure(refusedLate))))
    }
    return refusal
  }

  const proceed = <A, E, R>(
    incoming: IncomingCall<A, E, R>,
    { amount, source, within }: ResultByPosting["Reserve"]
  ) => {
    const { call, claim, id, now, request_id } = incoming
    const admitted = new Admitted(id, now, source, amount, books, request_id, factsOf(claim))
    admitted.within = within
    // Suspend, so that an error thrown by the host's function also ends the call.
    const called = Effect.suspend(() => call(admitted))
    if (!tracing) return runAdmitted(admitted, called)
    return Effect.flatMap(CallSpan.begin(claim.endpoint, claim.model, claim.provider), (span) => {
      admitted.span = span
      return runAdmitted(admitted, span === undefined ? called : span.around(called))
    })
  }

  /** Runs the call, and settles it as a failure if it fails without an outcome. */
  const runAdmitted = <A, E, R>(admitted: Admitted, called: Effect.Effect<Metered<A>, E, R>): Effect.Effect<A, E, R> =>
    Effect.matchCauseEffect(called, {
      onSuccess: ({ value }) => {
        fibers.end()
        return Effect.succeed(value)
      },
      onFailure: (cause) => {
        const problem = Cause.squash(cause)
        if (isProblem(problem)) noteRates(problem, admitted.rates)
        return Effect.ensuring(admitted.fail(cause), Effect.sync(fibers.end)).pipe(
          Effect.zipRight(admitted.tell("a call failed", problem)),
          Effect.zipRight(Effect.failCause(cause))
        )
      }
    })

  const resume = Effect.fnUntraced(function* (call: string) {
    // The call has already ended, and its outcome is final.
    const one = unsettled.get(call)
    if (one !== undefined) return one.admitted
    const open = yield* calls.find(call)
    if (open === undefined || !isHeld(open.run)) return undefined
    return new Admitted(call, open.at, open.payer, open.amount, books, undefined, undefined, open)
  })

  const leftBy = Effect.fnUntraced(function* (run: string) {
    if (!(yield* hasEnded(run))) return none
    const left = yield* calls.ofRun(run)
    // Check again, because a frozen node might have recovered and admitted these calls.
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
    yield* Effect.logWarning(`released the reservations of ended runs: ${left.length}`)
    return left.length
  })
  yield* Effect.catchAllCause(reclaim, (cause) =>
    Effect.logError("the reservations of ended runs could not be released", cause)
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
    idle: fibers.quiet(Duration.infinity),
    unsettled: Effect.sync(() => unsettled.size)
  } satisfies GateContract
})

/** The maximum number of cached call kinds per caller. */
const kindsMax = 1_000

/**
 * Creates a function that returns a claim's facts. Equal facts usually share one object, so that the writer's thread receives them only once
 * (`books/ledger/write/Codec`).
 */
const makeFacts = (): ((claim: Claim) => ClaimedFacts) => {
  const known = new WeakMap<Caller, Map<string, ClaimedFacts>>()
  return (claim) => {
    const { caller, capability, endpoint, model, price, provider, usage_type, ways } = claim
    const labels = claim.labels === undefined ? caller.labels : merged(caller.labels, claim.labels)
    let kinds = known.get(caller)
    if (kinds === undefined) known.set(caller, (kinds = new Map()))
    let kind = `${endpoint}\n${model}\n${provider}\n${price}\n${usage_type}`
    if (labels !== undefined) kind += `\n${labels.end_user}\n${labels.tags}`
    let facts = kinds.get(kind)
    if (facts === undefined || facts.ways !== ways) {
      const { account_id, application_id, runs, tenant_id } = caller
      facts = {
        account_id,
        tenant_id,
        application_id,
        usage_type,
        endpoint,
        model,
        provider,
        price,
        capability,
        ...(ways !== undefined && { ways }),
        ...(runs !== undefined && { runs, run_id: runs[0] }),
        ...labels
      }
      if (kinds.size >= kindsMax) kinds.clear()
      kinds.set(kind, facts)
    }
    return facts
  }
}

/** The `error_type` of a call that was refused because its reservation was late, although the reservation was written later. */
export const refusedLate = "books_unavailable"

const none: ReadonlyArray<never> = []

const loggedRequest = Effect.map(FiberRef.get(FiberRef.currentLogAnnotations), (named) => {
  const value = Option.getOrUndefined(HashMap.get(named, "request_id"))
  return typeof value === "string" ? value : undefined
})

/** A placeholder for the payer in receipts that no code reads. */
const noPayer: Source = { billing_account_id: "", tenant_id: "", kind: "own", why: "own" }
const emptyReceipt: Receipt = { usage_id: "", charged: 0n, balance: 0n, payer: noPayer }

/** The prefix of a held call's run. The admitting run's name follows. */
const heldPrefix = "held"
const heldBy = (run: string): string => `${heldPrefix} ${run}`
/** Returns whether a run's name marks a held call. Earlier versions wrote only the prefix. */
const isHeld = (run: string): boolean => run.startsWith(heldPrefix)

const reclaimPause = Duration.minutes(1)

/** A settlement to write. Without a posting, it contains statements for a call that stays open. */
interface Ending {
  readonly call: string
  readonly payer: Source | undefined
  readonly posting: Extract<Posting, { readonly _tag: "Settle" }> | undefined
  readonly beside: ReadonlyArray<Statement>
  /** When the first attempt to write the settlement began (`performance.now()`). */
  readonly since: number
}

/** A call that has ended without a written settlement. */
interface Unsettled {
  readonly admitted: Admitted
  readonly ending: Ending
  readonly waiting: Array<(exit: Exit.Exit<Receipt, Conflict | BooksUnavailable>) => void>
}

/** A call before its reservation. */
interface IncomingCall<A, E, R> {
  readonly claim: Claim
  readonly call: (admission: Admission) => Effect.Effect<Metered<A>, E, R>
  readonly id: string
  readonly now: number
  readonly request_id: string | undefined
  readonly sources: ReadonlyArray<Source>
}

interface Books {
  readonly now: () => number
  readonly observe: ObserveCall
  /** Builds a call's settlement. `at` is the admission time. `payer` can be `undefined` if the call costs nothing. */
  readonly endingOf: (
    call: string,
    payer: Source | undefined,
    at: number,
    measured: Measured,
    beside: ReadonlyArray<Statement>,
    request_id?: string,
    vendor_request?: string
  ) => Ending
  readonly holdingOf: (call: string, beside: ReadonlyArray<Statement>) => Ending
  readonly submit: (ending: Ending) => Effect.Effect<ReadonlyArray<Result>, Conflict | BooksUnavailable>
  readonly recorded: (ending: Ending) => Effect.Effect<Receipt, BooksUnavailable>
  readonly writeLater: (admitted: Admitted, ending: Ending) => Effect.Effect<Receipt, Conflict | BooksUnavailable>
  readonly fibers: FiberPool.FiberPool
  readonly to_its_end: ReadToEnd
}

/** Returns the receipt of a settlement, an empty one for a held call, or `undefined` if the call had already been settled. */
const receiptIn = ([result]: ReadonlyArray<Result>, { payer = noPayer, posting }: Ending): Receipt | undefined =>
  result?._tag === "Settled"
    ? { usage_id: result.usage_id, charged: result.collected, balance: result.balance, payer }
    : posting === undefined
      ? emptyReceipt
      : undefined

/** Logs a settlement that is no longer retried, so that the operator can follow up on its cost. */
const logAbandoned = ({ call, posting }: Ending, cause: Cause.Cause<unknown> = Cause.empty): Effect.Effect<void> =>
  Effect.logFatal("a settlement was not written", ...(Cause.isEmpty(cause) ? [] : [cause])).pipe(
    Effect.annotateLogs(
      posting === undefined
        ? { call }
        : { call, cost_usd: toDecimal(posting.outcome.cost), success: posting.outcome.success }
    )
  )

class MeteredValue<A> implements Metered<A> {
  declare readonly [metered]: true
  readonly value: A

  constructor(value: A) {
    this.value = value
  }
}

class Admitted implements Admission {
  declare readonly [admitted]: true
  private receipt: Receipt | undefined
  private ending: Ending | undefined
  readonly call: string
  readonly at: number
  readonly payer: Source
  readonly reserved: Nano
  private readonly books: Books
  private readonly request_id: string | undefined
  private vendor_request: string | undefined
  /** Facts for the log; `undefined` for a resumed call. */
  private readonly facts: CallFacts | undefined
  /** Facts for the metrics and the trace; `undefined` for a call that was refused because its reservation was late. */
  private readonly observed: ObservedFacts | undefined
  /** Present if traces are collected. */
  span: CallSpan.CallSpan | undefined
  /** Present if a budget concerns the call. */
  within: BudgetAllowance | undefined

  constructor(
    call: string,
    at: number,
    payer: Source,
    reserved: Nano,
    books: Books,
    request_id: string | undefined,
    facts: CallFacts | undefined,
    observed: ObservedFacts | undefined = facts
  ) {
    this.call = call
    this.at = at
    this.payer = payer
    this.reserved = reserved
    this.books = books
    this.request_id = request_id
    this.facts = facts
    this.observed = observed
  }

  tell(message: string, problem: unknown): Effect.Effect<void> {
    const { at, books, facts, request_id } = this
    return facts === undefined ? Effect.void : logProblem(message, facts, request_id, books.now() - at, problem)
  }

  get tokens(): number | undefined {
    return this.within?.tokens
  }

  get rates(): RatesAt | undefined {
    if (this.within === undefined) return undefined
    const { requests, tokens } = this.within.rates
    return { requests, tokens, at: this.books.now() }
  }

  mayServe(place: number): boolean {
    return this.within === undefined || !this.within.barred.includes(place)
  }

  get barred(): BudgetExceeded | RateLimitReached | undefined {
    const refusal = this.within?.refusal
    return refusal === undefined ? undefined : shortageProblem(refusal, this.books.now())
  }

  goesOn(problem: { readonly _tag: string }): Effect.Effect<void> {
    return this.tell("a call moves to its next upstream", problem)
  }

  get to_its_end(): ReadToEnd {
    return this.books.to_its_end
  }

  servedAs(vendor_request: string | undefined): void {
    this.vendor_request = withAttempt(this.vendor_request, vendor_request)
  }

  settle(measured: Measured): Effect.Effect<Receipt, BooksUnavailable> {
    return this.settled(measured, none, identity) as Effect.Effect<Receipt, BooksUnavailable>
  }

  settleBeside(
    measured: Measured,
    beside: ReadonlyArray<Statement>
  ): Effect.Effect<Receipt, Conflict | BooksUnavailable> {
    return this.settled(measured, beside, identity)
  }

  /** Settles the call and applies `use` to the receipt, without an additional fiber step. */
  private settled<A>(
    measured: Measured,
    beside: ReadonlyArray<Statement>,
    use: (receipt: Receipt) => A
  ): Effect.Effect<A, Conflict | BooksUnavailable> {
    if (this.receipt !== undefined) return Effect.succeed(use(this.receipt))
    if (this.ending !== undefined) return Effect.map(this.books.writeLater(this, this.ending), use)
    this.ending = this.books.endingOf(
      this.call,
      this.payer,
      this.at,
      measured,
      beside,
      this.request_id,
      this.vendor_request
    )
    return this.write(this.ending, use)
  }

  private write<A>(ending: Ending, use: (receipt: Receipt) => A): Effect.Effect<A, Conflict | BooksUnavailable> {
    const { books } = this
    const written = (receipt: Receipt) => {
      this.ended(Exit.succeed(receipt))
      return Effect.succeed(use(receipt))
    }
    const failed = (cause: Cause.Cause<Conflict | BooksUnavailable>) => this.unwritten(ending, cause, use)
    return Effect.matchCauseEffect(books.submit(ending), {
      onSuccess: (results) => {
        const receipt = receiptIn(results, ending)
        return receipt === undefined
          ? Effect.matchCauseEffect(books.recorded(ending), { onSuccess: written, onFailure: failed })
          : written(receipt)
      },
      onFailure: failed
    })
  }

  private unwritten<A>(
    ending: Ending,
    cause: Cause.Cause<Conflict | BooksUnavailable>,
    use: (receipt: Receipt) => A
  ): Effect.Effect<A, Conflict | BooksUnavailable> {
    if (cause._tag === "Fail" && cause.error._tag === "BooksUnavailable")
      return Effect.map(this.books.writeLater(this, ending), use)
    const exit = Exit.failCause(cause) as Exit.Exit<never, Conflict>
    this.ended(exit)
    return cause._tag === "Fail" ? exit : Effect.zipRight(logAbandoned(ending, cause), exit)
  }

  /** Called once the settlement is written or rejected. A call stays open if its settlement is rejected or if the call is only held. */
  ended(exit: Exit.Exit<Receipt, Conflict>): void {
    if (Exit.isFailure(exit)) {
      // The settlement was rejected. Let the call fail, because its credit would otherwise stay reserved.
      if (!Cause.isInterruptedOnly(exit.cause)) this.ending = undefined
      return
    }
    if (this.ending?.posting === undefined) {
      this.ending = undefined
      this.span?.end(undefined)
      return
    }
    if (this.receipt === undefined) this.report(this.ending.posting.outcome, exit.value.charged)
    this.receipt = exit.value
  }

  private report(outcome: CallOutcome, charged: Nano): void {
    const { books, observed, span } = this
    if (observed === undefined) return
    books.observe(observed, outcome, charged)
    span?.end({
      provider: outcome.provider ?? observed.provider,
      served: outcome.served?.model,
      prompt_tokens: outcome.prompt_tokens,
      completion_tokens: outcome.completion_tokens,
      cost_usd: toDecimal(charged),
      error_type: outcome.error_type
    })
  }

  answer<A>(measured: Measured, value: (receipt: Receipt) => A): Effect.Effect<Metered<A>, BooksUnavailable> {
    const use = (receipt: Receipt) => new MeteredValue(value(this.withRates(receipt)))
    return this.settled(measured, none, use) as Effect.Effect<Metered<A>, BooksUnavailable>
  }

  private withRates(receipt: Receipt): Receipt {
    const { rates } = this
    if (rates === undefined) return receipt
    const { balance, charged, payer, usage_id } = receipt
    return { usage_id, charged, balance, payer, rates }
  }

  hold<A>(value: A, beside: ReadonlyArray<Statement>): Effect.Effect<Metered<A>, BooksUnavailable> {
    this.ending = this.books.holdingOf(this.call, beside)
    const use = () => new MeteredValue(value)
    return this.write(this.ending, use) as Effect.Effect<Metered<A>, BooksUnavailable>
  }

  goOn<A>(value: A, rest: Effect.Effect<void, BooksUnavailable>): Effect.Effect<Metered<A>> {
    return Effect.sync(() => {
      this.books.fibers.run(
        Effect.matchCauseEffect(rest, {
          onFailure: (cause) => this.fail(cause),
          onSuccess: () => this.fail(Cause.empty)
        })
      )
      return new MeteredValue(value)
    })
  }

  /** Ends the call as a failure unless it already has an outcome. */
  fail(cause: Cause.Cause<unknown>): Effect.Effect<void> {
    return this.ending === undefined ? Effect.ignore(this.settle(failed(cause))) : Effect.void
  }
}

const refusalProblem = (
  refusal: RefusalByPosting["Reserve"],
  required: Nano,
  sources: ReadonlyArray<Source>,
  now: number
): InsufficientCredits | BudgetExceeded | RateLimitReached => {
  const payer = sources[0]!.billing_account_id
  if (refusal._tag === "BudgetReached") return shortageProblem(refusal, now)
  if (refusal._tag === "LimitReached")
    return new InsufficientCredits({ available: refusal.available, required, payer, reason: "key_limit" })
  // If the caller's own account is missing or inactive, the gate refuses without trying other payers.
  return refusal._tag === "InsufficientCredits"
    ? new InsufficientCredits({
        available: refusal.available,
        required,
        payer,
        reason: isBarred(sources) ? "members_may_not_spend" : "balance"
      })
    : new InsufficientCredits({ available: 0n, required, payer, reason: "account_not_active" })
}

/** Builds a budget's refusal: 429 if the budget limits open calls, or tokens or requests per minute or hour; otherwise 402. */
const shortageProblem = (
  { budget, left, limit, name, of_everyone, period, renews_at, unit }: Shortage,
  now: number
): BudgetExceeded | RateLimitReached => {
  const amount = (of: Nano) => (unit === "usd" ? toDecimal(of) : `${of}`)
  const fields = {
    budget_id: budget,
    unit,
    ...(of_everyone === undefined && { budget_name: name, limit: amount(limit), left: amount(left) }),
    ...(unit !== "concurrent" && renews_at !== undefined && { renews_at })
  }
  if (unit === "concurrent") return new RateLimitReached({ ...fields, at: now, retry_after: 1 })
  if (unit === "usd" || renews_at === undefined || (period !== "minute" && period !== "hour"))
    return new BudgetExceeded(fields)
  const retry_after = Math.max(1, Math.ceil((renews_at - now) / 1_000))
  return new RateLimitReached({ ...fields, at: now, retry_after })
}

const isBarred = (sources: ReadonlyArray<Source>): boolean => sources.some(({ barred }) => barred === true)

/** Builds the outcome of a failed call, at cost 0. */
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
  // The fiber was interrupted because the caller disconnected.
  if (Cause.isInterruptedOnly(cause) && !Cause.isEmpty(cause)) return failure("client_disconnected")
  const error = Option.getOrUndefined(Cause.failureOption(cause))
  return failure(isProblem(error) ? (error.body.code ?? error._tag) : "internal_error")
}
