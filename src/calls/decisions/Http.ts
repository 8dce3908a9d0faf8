import { Effect, Either } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import type { Inbound } from "../../http/transport/Inbound.ts"
import { notJson, parse } from "../../http/transport/Json.ts"
import { group, raw } from "../../http/lanes/Raw.ts"
import type { Reply } from "../../http/transport/Reply.ts"
import { Idempotency } from "../../http/idempotency/Idempotency.ts"
import type { Beside } from "../../http/idempotency/Idempotency.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { write } from "../../kernel/Decimal.ts"
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { toJson } from "../../kernel/Money.ts"
import { isObject } from "../../upstream/wire/Failures.ts"
import { chargeHeader } from "../metered/ReceiptHeaders.ts"
import { labelled } from "../metered/Routes.ts"
import { DecisionsApi } from "./Api.ts"
import type { DecisionRequest } from "./Decision.ts"
import { Decisions, ownMembersOf } from "./Decisions.ts"
import type { Decision, DecisionCall } from "./Decisions.ts"
import { DecisionBodyTooLarge, DecisionBodyUnreadable } from "./Problems.ts"
import type { DecisionRefused } from "./Problems.ts"

const bodyBytesMax = 1024 * 1024

/**
 * Builds the handler for a named route. The name also appears in idempotency keys and usage records. If no model is configured, the handler rejects a
 * request before reading its body.
 */
const routes = Effect.gen(function* () {
  const decisions = yield* Decisions
  const idempotency = yield* Idempotency
  const model = yield* Effect.either(decisions.model)

  const answer = (call: DecisionCall) =>
    decisions.decide(call).pipe(
      Effect.map(replyOf),
      Effect.catchTag("DecisionRefused", (refusal) => Effect.succeed(replyOfRefusal(refusal)))
    )

  const served = (caller: Caller, inbound: Inbound, endpoint: string) => {
    const call = (inbound: Inbound, beside: Beside | undefined) =>
      Effect.flatMap(bytesOf(inbound), (bytes) =>
        Effect.flatMap(read(bytes), (request) =>
          inbound.withRoom((room) =>
            answer({ caller, request, endpoint, beside, room, request_id: inbound.request_id })
          )
        )
      )
    return Effect.catchTag(
      idempotency.onceOf(caller, inbound, endpoint, bodyBytesMax, call),
      "PayloadTooLarge",
      () => new DecisionBodyTooLarge()
    )
  }
  return (endpoint: string) =>
    labelled((caller, inbound) => (Either.isLeft(model) ? model.left : served(caller, inbound, endpoint)))
})

export const DecisionsHttp = group(contract.add(DecisionsApi), "decisions", (handlers) =>
  Effect.map(routes, (route) =>
    handlers.handleRaw("decide", raw(route("decisions"))).handleRaw("systemOne", raw(route("systemone")))
  )
)

const bytesOf = (inbound: Inbound) =>
  Effect.catchTag(
    inbound.read(bodyBytesMax),
    "InvalidRequest",
    ({ field, rule }) => new DecisionBodyUnreadable({ field, rule })
  )

/** Parses the body as a JSON object. The service validates its members. */
const read = (bytes: Buffer): Either.Either<DecisionRequest, InvalidRequest | DecisionBodyUnreadable> => {
  const parsed = parse(bytes)
  if (Either.isLeft(parsed)) return parsed.left === notJson ? unreadable : Either.left(parsed.left)
  return isObject(parsed.right) ? Either.right(parsed.right as DecisionRequest) : unreadable
}

const unreadable = Either.left(new DecisionBodyUnreadable({ field: "", rule: "must be a JSON object" }))

/** Builds the reply from the model's status and body, and adds the charged token counts and the cost. */
const replyOf = (decision: Decision): Reply => {
  const { receipt, upstream } = decision
  return {
    status: upstream.status,
    headers: {
      "content-type": "application/json",
      ...retryAfter(upstream.retry_after),
      ...chargeHeader(receipt)
    },
    body:
      upstream.long === undefined
        ? write({ ...upstream.body, ...changed(decision) })
        : withMembers(upstream.long.rest, write(changed(decision)))
  }
}

/** Returns the reply members that the service changes. */
const changed = ({ id, model, provider, upstream, usage }: Decision) => {
  const reported = ownMembersOf(upstream).usage
  return {
    id,
    model,
    provider,
    usage: {
      ...(isObject(reported) ? reported : {}),
      input_tokens: usage.input_tokens,
      output_tokens: usage.output_tokens,
      cost: toJson(usage.cost)
    }
  }
}

/** Appends an object's members to the JSON of an object with other members. */
const withMembers = (json: Buffer, members: string): Buffer => {
  const others = json.subarray(0, -1)
  return Buffer.concat([others, Buffer.from(others.length === 1 ? "" : ","), Buffer.from(members.slice(1))])
}

/** Passes on the model's error response unchanged, with a charge of 0. */
const replyOfRefusal = ({ body, content_type, retry_after, status }: DecisionRefused): Reply => ({
  status,
  headers: { "content-type": content_type, ...retryAfter(retry_after), ...chargeHeader({ charged: 0n }) },
  body: Buffer.from(body.buffer, body.byteOffset, body.byteLength)
})

const retryAfter = (value: string | undefined): Record<string, string> =>
  value === undefined ? {} : { "retry-after": value }
