/** Endpoints that answer typed questions about a state with the deployment's decision model. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example, Metered } from "../../http/contract/Documented.ts"
import { GateRefusal } from "../../books/gate/Problems.ts"
import { Fast, ReadsOwnBody } from "../../http/contract/Annotations.ts"
import { BodyRefusal } from "../../http/contract/Problems.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { KeyOrToken } from "../../people/credentials/Security.ts"
import { IdempotencyRefusal } from "../../http/idempotency/Problems.ts"
import { DecisionAnswer, DecisionRequest } from "./Decision.ts"
import {
  DecisionBodyTooLarge,
  DecisionBodyUnreadable,
  DecisionsUnavailable,
  DecisionUpstreamFailed,
  DecisionUpstreamUnreachable
} from "./Problems.ts"

const own = (status: number, description: string) =>
  Schema.Record({ key: Schema.String, value: Schema.Unknown }).annotations(
    HttpApiSchema.annotations({ status, description, identifier: `DecisionModel${status}` })
  )

const asked = <const Name extends string>(name: Name, path: `/${string}`, summary: string) =>
  HttpApiEndpoint.post(name, path)
    .setPayload(DecisionRequest)
    .addSuccess(DecisionAnswer)
    .addError(own(422, "The model's own body, with the name of the invalid field"))
    .addError(own(429, "The model's own body; Retry-After is passed through"))
    .addError(own(529, "The model's own body, if the model is overloaded"))
    .annotate(Fast, true)
    .annotate(ReadsOwnBody, true)
    .annotate(Example, {
      body: {
        state: { cart_usd: 140, returning: true },
        questions: { offer_discount: { type: "noul", instructions: "Would a discount be decisive?" } }
      }
    })
    .annotate(Metered, { charge_known: true })
    .annotate(OpenApi.Summary, summary)

export class DecisionsApi extends HttpApiGroup.make("decisions")
  .add(
    asked(
      "decide",
      "/v1/decisions",
      "Answer typed questions about a state; reserves 0.30 USD and charges for the input tokens"
    )
  )
  .add(asked("systemOne", "/v1/systemone", "Answer typed questions, on the path of TypeSafe's own clients"))
  .addError(InvalidRequest)
  .addError(DecisionBodyUnreadable)
  .addError(DecisionBodyTooLarge)
  .addError(BodyRefusal)
  .addError(GateRefusal)
  .addError(IdempotencyRefusal)
  .addError(DecisionUpstreamFailed)
  .addError(DecisionUpstreamUnreachable)
  .addError(DecisionsUnavailable)
  .middleware(KeyOrToken) {}
