import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { isLosslessNumber, parse } from "lossless-json"
import { contract } from "../../http/contract/Contract.ts"
import { answer, storable } from "../../http/lanes/Answer.ts"
import { json } from "../../http/transport/Body.ts"
import { CurrentCaller } from "../../http/lanes/Caller.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { RateLimits } from "../../http/transport/RateLimits.ts"
import { isKey } from "../../http/idempotency/Idempotency.ts"
import { IdempotencyKeyInvalid, IdempotencyKeyRequired, IdempotencyKeyReused } from "../../http/idempotency/Problems.ts"
import type { Nano } from "../../kernel/Money.ts"
import { envelope } from "../../kernel/Envelope.ts"
import { Created, TransfersApi, TransferInvitesApi } from "./Api.ts"
import { NewTransfer, wholeCents } from "./Transfer.ts"
import { Transfers } from "./Transfers.ts"

export const TransfersHttp = HttpApiBuilder.group(
  contract.add(TransfersApi),
  "transfers",
  Effect.fnUntraced(function* (handlers) {
    const transfers = yield* Transfers
    return handlers
      .handleRaw("create", ({ headers, request }) =>
        Effect.gen(function* () {
          const caller = yield* CurrentCaller
          // A missing key is reported before any error in the body.
          const key = headers["idempotency-key"]
          if (key === undefined || key === "") return yield* new IdempotencyKeyRequired()
          if (!isKey(key)) return yield* new IdempotencyKeyInvalid()
          const body = yield* Effect.orDie(request.text)
          const transfer = { ...(yield* newTransfer(Buffer.from(body))), amount: yield* amountIn(body) }
          const { created, transfer: made } = yield* storable(transfers.create({ caller, key, transfer })).pipe(
            Effect.catchTag("TransferKeyReused", () => new IdempotencyKeyReused())
          )
          return yield* Effect.orDie(
            HttpServerResponse.schemaJson(Created)(envelope(made), { status: created ? 201 : 200 })
          )
        })
      )
      .handle("sent", ({ urlParams }) => answer((caller) => transfers.sent({ caller, ...urlParams })))
      .handle("revoke", ({ path: { transfer_id } }) => answer((caller) => transfers.revoke({ caller, transfer_id })))
      .handle("resend", ({ path: { transfer_id } }) => answer((caller) => transfers.resend({ caller, transfer_id })))
      .handle("received", ({ urlParams }) => answer((caller) => transfers.received({ caller, ...urlParams })))
      .handle("transfer", ({ path: { transfer_id } }) => answer((caller) => transfers.find({ caller, transfer_id })))
      .handle("accept", ({ path: { transfer_id } }) => answer((caller) => transfers.accept({ caller, transfer_id })))
      .handle("decline", ({ path: { transfer_id } }) => answer((caller) => transfers.decline({ caller, transfer_id })))
      .handle("attach", ({ path: { token } }) => answer((caller) => transfers.attach({ caller, token })))
  })
)

export const TransferInvitesHttp = HttpApiBuilder.group(
  contract.add(TransferInvitesApi),
  "transferInvites",
  Effect.fnUntraced(function* (handlers) {
    const transfers = yield* Transfers
    const limits = yield* RateLimits
    return handlers.handle("preview", ({ path, request }) =>
      Effect.zipRight(
        limits.take("invite_preview", request),
        Effect.map(transfers.preview({ token: path.token }), envelope)
      )
    )
  })
)

const newTransfer = json(NewTransfer)

/** Reads the amount in whole cents from the digits in the body, because `JSON.parse` would first convert it to a binary float. */
const amountIn = (body: string): Effect.Effect<Nano, InvalidRequest> => {
  const wrong = (field: string, rule: string) =>
    new InvalidRequest({ message: field === "" ? `the request: ${rule}` : `${field}: ${rule}`, field, rule })
  return Effect.flatMap(
    Effect.try({
      try: () => parse(body) as { readonly amount: unknown },
      // The body is known to be valid JSON, so the parser can fail only because of deep nesting or a repeated field.
      catch: (error) =>
        wrong("", error instanceof RangeError ? "must be nested less deeply" : "must not repeat a field")
    }),
    ({ amount }) =>
      isLosslessNumber(amount) ? Effect.succeed(wholeCents(amount.value)) : wrong("amount", "must be a number")
  )
}
