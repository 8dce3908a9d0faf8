/**
 * Decides the order of a model's upstreams for one call, with the reason. The functions are pure: chance, health and prices are arguments.
 *
 * Where the specification is silent:
 * - An upstream in its cooldown is tried last, because trying it is better than failing.
 * - Weights order all upstreams: the first is drawn by weight, then the next from the remaining ones, until none remain. Upstreams with a weight of 0
 *   come after all others. With `sticky`, the draw is derived from the conversation, so that every node draws the same order.
 * - A cost is the vendor's charge for the prompt and a completion of at most 1,024 tokens. Upstreams with equal costs, or with medians in the same
 *   bucket (25 %), stay in the configured order.
 * - The latency of an upstream without a response in the last five minutes is unknown. The upstream is then tried first, so that its latency can be
 *   measured.
 * - With `sticky`, the upstream that last served the conversation comes first, because its prompt cache may contain the start of the conversation.
 */
import type { Standing } from "./Health.ts"

export const policies = ["order", "weights", "cost", "latency"] as const
export type Policy = (typeof policies)[number]

export interface Routing {
  readonly policy: Policy
  /** Whether the calls of a conversation go to the same upstream as long as that upstream serves them. */
  readonly sticky: boolean
}

export interface Candidate {
  readonly upstream: string
  readonly standing: Standing
  /** The upstream's share of the calls, relative to the other weights. */
  readonly weight: number
  /** The vendor's charge for the call. All candidates use the same unit. */
  readonly cost?: bigint | undefined
  readonly latency_ms?: number | undefined
}

export interface Question {
  readonly policy: Policy
  /** In the configured order. */
  readonly candidates: ReadonlyArray<Candidate>
  /** The upstream that last served the conversation. */
  readonly last?: string | undefined
  /** Returns a number above 0 and at most 1 for an upstream: random, or derived from the conversation. */
  readonly chance: (upstream: string) => number
}

export const reasons = [
  "only",
  "order",
  "weights",
  "cost",
  "latency",
  "unmeasured",
  "conversation",
  "probe",
  "others_cooling",
  "all_cooling"
] as const
export type Reason = (typeof reasons)[number]

export interface Order {
  /** The indexes of the candidates, in the order to try them. */
  readonly places: ReadonlyArray<number>
  readonly reason: Reason
}

export const orderOf = (question: Question): Order => {
  const { candidates, last } = question
  const ranked = ranking(question)
  const isCooling = (place: number) => candidates[place]!.standing === "cooling"
  const ready = ranked.filter((place) => !isCooling(place))
  const held = ready.find((place) => candidates[place]!.upstream === last)
  const open = held === undefined ? ready : [held, ...ready.filter((place) => place !== held)]
  const places = [...open, ...ranked.filter(isCooling)]
  return { places, reason: reasonOf(question, ranked, open, held) }
}

/** Orders all candidates by the policy, regardless of cooldowns. */
const ranking = ({ candidates, chance, policy }: Question): ReadonlyArray<number> => {
  const places = candidates.map((_, place) => place)
  switch (policy) {
    case "order":
      return places
    case "weights": {
      const times = candidates.map(({ upstream, weight }) =>
        weight > 0 ? -Math.log(chance(upstream)) / weight : Number.POSITIVE_INFINITY
      )
      return places.toSorted((a, b) => compared(times[a]!, times[b]!))
    }
    case "cost":
      return places.toSorted((a, b) => compared(candidates[a]!.cost, candidates[b]!.cost))
    case "latency":
      return places.toSorted((a, b) => (candidates[a]!.latency_ms ?? -1) - (candidates[b]!.latency_ms ?? -1))
  }
}

/** Compares two values. Unknown values come last. */
const compared = <A extends bigint | number>(one: A | undefined, other: A | undefined): number => {
  if (one === other) return 0
  if (one === undefined) return 1
  if (other === undefined) return -1
  return one < other ? -1 : 1
}

const reasonOf = (
  { candidates, policy }: Question,
  ranked: ReadonlyArray<number>,
  open: ReadonlyArray<number>,
  held: number | undefined
): Reason => {
  if (candidates.length === 1) return "only"
  const [first] = open
  if (first === undefined) return "all_cooling"
  if (candidates[first]!.standing === "due") return "probe"
  if (held !== undefined) return "conversation"
  if (first !== ranked[0]) return "others_cooling"
  return policy === "latency" && candidates[first]!.latency_ms === undefined ? "unmeasured" : policy
}
