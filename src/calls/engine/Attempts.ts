/**
 * Makes all attempts of one call: first the model's upstreams, then more rounds after a pause, then the model's fallbacks.
 *
 * Where the specification is silent:
 * - A round tries each upstream once. The next round (`retries`) repeats only upstreams that certainly did no work, because the connection failed or
 *   the status was 429, 503 or 529. It begins after a pause of 250 ms (doubled for each round, at most 8 s) or after the shortest `Retry-After`. No
 *   round begins later than `retry_seconds` after the start of the call.
 * - Fallbacks (`fallbacks`) are tried after the last round, if all upstreams failed and the call has cost nothing. A fallback is skipped if the
 *   caller may not call it, if it cannot serve the request, or if it could cost more than the reservation. If an upstream rejected the request as
 *   invalid, no fallback is tried. A fallback uses its own routing, but neither its `retries` nor its `fallbacks`.
 * - An upstream is skipped if a budget excludes it from the call. If budgets exclude all of a model's upstreams, the fallbacks are tried. If no
 *   fallback can serve the call either, the call fails with the budget's error and costs nothing.
 */
import { Clock, Duration, Effect } from "effect"
import type { BudgetExceeded, RateLimitReached } from "../../books/gate/Problems.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import type { Busy } from "../../kernel/Busy.ts"
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { firstOf, stillThere } from "../../upstream/models/Failover.ts"
import type { Spent } from "../../upstream/models/Failover.ts"
import type { AttemptOutcome, Decision, DecisionAttempt } from "../../upstream/routing/Decision.ts"
import type { UpstreamProblem } from "../../upstream/wire/Failures.ts"
import type { Model, Retries } from "../prompts/Model.ts"
import type { Choice, Routed } from "./Choice.ts"

/** The error of a budget that excludes an upstream. */
type BudgetProblem = BudgetExceeded | RateLimitReached

export type AttemptProblem = UpstreamProblem | BooksUnavailable | Busy | InvalidRequest
/** A call's failure after all attempts. */
export type CallProblem = AttemptProblem | BudgetProblem

/** The routes that may serve a call with one model, in the order they are tried. */
export interface Plan<Route> extends Choice<Route> {
  readonly model: Model
  /** The completion limit, in tokens per choice. */
  readonly limit: number
  /** The model and price to record if a fallback serves the call. */
  readonly served: { readonly model: string; readonly price: string } | undefined
}

export interface Attempts<Route, A> {
  readonly first: Plan<Route>
  /** Calls one upstream. `isLast` is true if no further attempt can follow. */
  readonly ask: (plan: Plan<Route>, way: Route, isLast: boolean) => Effect.Effect<A, AttemptProblem | Spent>
  readonly retries: Retries | undefined
  /** The fallbacks' model ids. */
  readonly fallbacks: ReadonlyArray<string>
  /** Plans a fallback. Returns `undefined` if the fallback cannot serve the call. */
  readonly planOf: (fallback: string) => Effect.Effect<Plan<Route> | undefined, BooksUnavailable>
  /** The error of the budget that excludes upstreams from the plans, if any. */
  readonly barred: BudgetProblem | undefined
  readonly request_id: string | undefined
  readonly observe: (decision: Decision) => void
  /** Runs before the next attempt. */
  readonly goesOn: (problem: CallProblem) => Effect.Effect<void>
}

export const run = <Route extends Routed, A>(attempts: Attempts<Route, A>): Effect.Effect<A, CallProblem> =>
  Effect.flatMap(Clock.currentTimeMillis, (at) => {
    const trail = new Trail<Route>()
    const { first, observe, request_id } = attempts
    return Effect.ensuring(
      Effect.catchAll(rounds(attempts, trail, at), (problem) => fallBack(attempts, trail, problem)),
      Effect.sync(() =>
        observe({ at, model: first.model.id, request_id, reason: first.reason, attempts: trail.attempts })
      )
    )
  })

/** The attempts made so far. */
class Trail<Route extends Routed> {
  readonly attempts: Array<DecisionAttempt> = []
  /** The routes of the last round that may be retried, each with the delay in seconds that its upstream requested, or 0. */
  readonly unserved = new Map<Route, number>()
  /** Whether the call may have been charged or the service is busy. In either case, no further attempt is made. */
  isCharged = false

  add({ model }: Plan<Route>, { upstream }: Route, outcome: AttemptOutcome): void {
    this.attempts.push({ model: model.id, upstream: upstream.name, outcome })
  }

  failed(plan: Plan<Route>, way: Route, problem: AttemptProblem | Spent): void {
    this.add(plan, way, outcomeOf(problem))
    if (problem._tag === "Spent" || problem._tag === "Busy" || problem._tag === "BooksUnavailable")
      this.isCharged = true
    if (problem._tag === "UpstreamBusy") this.unserved.set(way, problem.retry_after ?? 0)
    if (problem._tag === "UpstreamFailed" && problem.unserved === true) this.unserved.set(way, 0)
  }
}

export const outcomeOf = ({ _tag }: AttemptProblem | Spent): AttemptOutcome => {
  switch (_tag) {
    case "InvalidRequest":
      return "skipped"
    case "UpstreamRejected":
      return "rejected"
    case "UpstreamBusy":
      return "busy"
    case "UpstreamFailed":
      return "failed"
    default:
      return "charged"
  }
}

/** Tries each of the given routes once, in order. */
const round = <Route extends Routed, A>(
  { ask, goesOn }: Attempts<Route, A>,
  trail: Trail<Route>,
  plan: Plan<Route>,
  ways: ReadonlyArray<Route>,
  isLastRound: boolean
): Effect.Effect<A, AttemptProblem> =>
  firstOf<Route, A, AttemptProblem>(
    ways,
    (way, isLast) =>
      Effect.tap(ask(plan, way, isLast && isLastRound), () => {
        trail.add(plan, way, "answered")
        plan.answered?.(way.upstream.name)
      }),
    { goesOn, failed: (way, problem) => trail.failed(plan, way, problem) }
  )

/** Returns whether another attempt may follow once all of a plan's routes have failed. */
const mayContinue = (trail: Trail<never>, { _tag }: CallProblem): boolean => !trail.isCharged && retriableTags.has(_tag)

const retriableTags: ReadonlySet<CallProblem["_tag"]> = new Set<CallProblem["_tag"]>([
  "UpstreamFailed",
  "UpstreamBusy",
  "BudgetExceeded",
  "RateLimitReached"
])

const pauseMin = 250
const pauseMax = 8_000

const rounds = <Route extends Routed, A>(
  attempts: Attempts<Route, A>,
  trail: Trail<Route>,
  at: number,
  ways = attempts.first.ways,
  made = 0
): Effect.Effect<A, CallProblem> => {
  const { barred, fallbacks, first, retries } = attempts
  if (ways.length === 0 && barred !== undefined) return Effect.fail(barred)
  const roundResult = round(attempts, trail, first, ways, fallbacks.length === 0)
  if (retries === undefined || made >= retries.max) return roundResult
  return Effect.catchAll(roundResult, (problem) => {
    const retriable = ways.filter((way) => trail.unserved.has(way))
    if (!mayContinue(trail as Trail<never>, problem) || retriable.length === 0) return Effect.fail(problem)
    const requestedPause = Math.min(...trail.unserved.values()) * 1_000
    const pause = Math.max(requestedPause, Math.min(pauseMin * 2 ** made, pauseMax))
    trail.unserved.clear()
    return Effect.flatMap(Clock.currentTimeMillis, (now) =>
      now + pause > at + retries.within_ms
        ? Effect.fail(problem)
        : Effect.zipRight(
            Effect.zipRight(attempts.goesOn(problem), Effect.interruptible(Effect.sleep(Duration.millis(pause)))),
            rounds(attempts, trail, at, retriable, made + 1)
          )
    )
  })
}

const fallBack = <Route extends Routed, A>(
  attempts: Attempts<Route, A>,
  trail: Trail<Route>,
  problem: CallProblem,
  left = attempts.fallbacks
): Effect.Effect<A, CallProblem> => {
  const [next, ...others] = left
  if (next === undefined || !mayContinue(trail as Trail<never>, problem)) return Effect.fail(problem)
  return Effect.flatMap(Effect.zipRight(stillThere, attempts.planOf(next)), (plan) =>
    plan === undefined
      ? fallBack(attempts, trail, problem, others)
      : Effect.zipRight(
          attempts.goesOn(problem),
          Effect.catchAll(round(attempts, trail, plan, plan.ways, others.length === 0), (failed) =>
            fallBack(attempts, trail, failed, others)
          )
        )
  )
}
