/** Creates the routes for embeddings and reranking. */
import { Effect, Either } from "effect"
import type { Shape } from "../../http/contract/Annotations.ts"
import type { Inbound } from "../../http/transport/Inbound.ts"
import { parse } from "../../http/transport/Json.ts"
import type { Reply } from "../../http/transport/Reply.ts"
import type { Beside } from "../../http/idempotency/Idempotency.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { ofBody } from "../../kernel/Labels.ts"
import type { Nano } from "../../kernel/Money.ts"
import { meteredRoutes } from "../metered/Routes.ts"
import { hashOf } from "../metered/TextHash.ts"
import { chargeHeader } from "../metered/ReceiptHeaders.ts"
import { parsedMax } from "../threads/BodyThreads.ts"
import type { SingleProtocol } from "./BodyTask.ts"
import * as LongRequests from "./LongRequests.ts"
import { LongRequest } from "./LongRequests.ts"
import type { SingleAnswer, SingleCall, SingleProblem } from "./Single.ts"

const bodyBytesMax = 8 * 1024 * 1024

/** Creates a route. `name` scopes its idempotency keys. `least` is the price of the cheapest possible call. `answer` must validate the request. */
export const single = Effect.fnUntraced(function* (
  name: SingleProtocol,
  least: Nano,
  answer: (call: SingleCall<never>) => Effect.Effect<SingleAnswer, SingleProblem>,
  shape?: Shape
) {
  const meteredRoute = yield* meteredRoutes([least])

  const call = Effect.fnUntraced(function* (caller: Caller, inbound: Inbound, beside: Beside | undefined) {
    const json = yield* inbound.read(bodyBytesMax)
    const parsed =
      json.length <= parsedMax ? parse(json) : Either.right(yield* LongRequests.read(name, json, caller.account_id))
    if (Either.isLeft(parsed)) return yield* parsed.left
    const request = parsed.right
    const isLong = request instanceof LongRequest
    const labelled = ofBody(caller, isLong ? request.value : request, false, hashOf)
    if (labelled instanceof InvalidRequest) return yield* labelled
    const { request_id } = inbound
    const { bytes, receipt } = yield* inbound.withRoom((room) =>
      answer({ caller: labelled, request: request as never, json: isLong ? undefined : json, beside, room, request_id })
    )
    return {
      status: 200,
      headers: { "content-type": "application/json", ...chargeHeader(receipt) },
      body: bytes
    } satisfies Reply
  })

  return meteredRoute({ name, body_bytes_max: bodyBytesMax, answer: call, shape })
})
