/**
 * Orders a model's upstreams for one request. A model has a chooser if it has a routing rule or an upstream with a cooldown.
 *
 * Where the specification is silent:
 * - A request that may refer to objects stored by the vendor uses the configured order, because the first upstream stores them.
 */
import type { Clock } from "effect"
import { createHash, randomInt } from "node:crypto"
import type { Caller } from "../../kernel/Caller.ts"
import { charge } from "../../kernel/Price.ts"
import type { Upstream } from "../../upstream/models/Upstreams.ts"
import { Conversations } from "../../upstream/routing/Conversations.ts"
import { orderOf } from "../../upstream/routing/Order.ts"
import type { Candidate, Reason, Routing } from "../../upstream/routing/Order.ts"
import type { Model, ModelRoute } from "../prompts/Model.ts"
import { requestedCompletionTokens, preferredCompletionTokens, promptTokensEstimate } from "../prompts/Prompt.ts"
import type { ValidPrompt } from "../prompts/Prompt.ts"
import { conversationOf } from "./Conversation.ts"

/** A route with its upstream. */
export interface Routed {
  readonly route: ModelRoute
  readonly upstream: Upstream
}

export interface Choice<Route> {
  /** The routes, in the order they are tried. */
  readonly ways: ReadonlyArray<Route>
  readonly reason: Reason
  /** Records the upstream that serves the request. */
  readonly answered?: ((upstream: string) => void) | undefined
}

export type Chooser = <Route extends Routed>(
  ways: ReadonlyArray<Route>,
  prompt: ValidPrompt,
  caller: Caller
) => Choice<Route>

const defaultRouting: Routing = { policy: "order", sticky: false }

/** Creates the choosers, keyed by model id. */
export const choosersOf = (
  models: ReadonlyArray<Model>,
  upstreamOf: (name: string) => Upstream,
  clock: Clock.Clock
): ReadonlyMap<string, Chooser> => {
  const isChosen = ({ routes, routing }: Model) =>
    routes.length > 1 && (routing !== undefined || routes.some(({ upstream }) => upstreamOf(upstream).health.cools))
  return new Map(models.filter(isChosen).map((model) => [model.id, chooserOf(model, clock)]))
}

const chooserOf = (model: Model, clock: Clock.Clock): Chooser => {
  const { policy, sticky } = model.routing ?? defaultRouting
  const conversations = new Conversations()
  return (ways, prompt, caller) => {
    const conversation = sticky ? conversationOf(caller, prompt) : undefined
    const now = clock.unsafeCurrentTimeMillis()
    const { places, reason } = orderOf({
      policy,
      candidates: ways.map((way) => candidateOf(way, policy, model, prompt)),
      last: conversation === undefined ? undefined : conversations.last(conversation, now),
      chance: conversation === undefined ? randomFraction : (upstream) => seededFraction(conversation, upstream)
    })
    if (reason === "probe") ways[places[0]!]!.upstream.health.probe()
    return {
      ways: places.map((place) => ways[place]!),
      reason,
      answered:
        conversation === undefined ? undefined : (upstream) => conversations.answered(conversation, upstream, now)
    }
  }
}

const candidateOf = (
  { route, upstream }: Routed,
  policy: Routing["policy"],
  model: Model,
  prompt: ValidPrompt
): Candidate => ({
  upstream: upstream.name,
  standing: upstream.health.standing(),
  weight: route.weight ?? 1,
  cost: policy === "cost" ? costOf(route, model, prompt) : undefined,
  latency_ms: policy === "latency" ? upstream.health.median() : undefined
})

/** Estimates the vendor's charge for the prompt and a completion of limited length. Returns `undefined` if the vendor's prices are unknown. */
const costOf = ({ cost }: ModelRoute, model: Model, prompt: ValidPrompt): bigint | undefined => {
  if (cost === undefined) return undefined
  const answer = Math.min(
    requestedCompletionTokens(model, prompt) ?? model.output_tokens_max,
    preferredCompletionTokens
  )
  return charge([
    { units: promptTokensEstimate(model, prompt), price: cost.prompt_price },
    { units: answer * prompt.answers, price: cost.completion_price },
    { units: 1, price: cost.request_price }
  ])
}

/** Random numbers have 47 bits, because `randomInt` accepts ranges up to 2^48. */
const range = 2 ** 47

const randomFraction = (): number => (randomInt(range) + 1) / range

/** Derives a pseudorandom number from both names, so that every node computes the same number. */
const seededFraction = (conversation: string, upstream: string): number => {
  const drawn = createHash("sha256").update(`${conversation}\n${upstream}`).digest()
  return (Math.floor(drawn.readUIntBE(0, 6) / 2) + 1) / range
}
