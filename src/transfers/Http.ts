import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { isLosslessNumber, parse } from "lossless-json"
import { Api } from "../Api.ts"
import { answer } from "../http/Answer.ts"
import { json } from "../http/Body.ts"
import { CurrentCaller } from "../http/Caller.ts"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"
import { RateLimits } from "../http/RateLimits.ts"
import { isKey } from "../idempotency/Idempotency.ts"
import { IdempotencyKeyInvalid, IdempotencyKeyRequired } from "../idempotency/Problems.ts"
import { envelope } from "../kernel/Envelope.ts"
import { Created } from "./Api.ts"
import { NewTransfer } from "./Transfer.ts"
import { Transfers } from "./Transfers.ts"

export const TransfersHttp = HttpApiBuilder.group(
  Api,
  "transfers",
  Effect.fnUntraced(function* (handlers) {
    const transfers = yield* Transfers
    return handlers
      .handleRaw("create", ({ headers, request }) =>
        Effect.gen(function* () {
          const caller = yield* CurrentCaller
          // A request that has no key is told so whatever its body says.
          const key = headers["idempotency-key"]
          if (key === undefined || key === "") return yield* new IdempotencyKeyRequired()
          if (!isKey(key)) return yield* new IdempotencyKeyInvalid()
          const body = yield* Effect.orDie(request.text)
          const { created, transfer } = yield* transfers.create(
            caller,
            key,
            yield* newTransfer(Buffer.from(body)),
            yield* amountIn(body)
          )
          return yield* Effect.orDie(
            HttpServerResponse.schemaJson(Created)(envelope(transfer), { status: created ? 201 : 200 })
          )
        })
      )
      .handle("sent", ({ urlParams }) => answer(({ tenant_id }) => transfers.sent(tenant_id, urlParams)))
      .handle("revoke", ({ path }) => answer((caller) => transfers.revoke(caller, path.transfer_id)))
      .handle("resend", ({ path }) => answer((caller) => transfers.resend(caller, path.transfer_id)))
      .handle("received", ({ urlParams }) => answer(({ account_id }) => transfers.received(account_id, urlParams)))
      .handle("transfer", ({ path }) => answer((caller) => transfers.find(caller, path.transfer_id)))
      .handle("accept", ({ path }) => answer(({ account_id }) => transfers.accept(account_id, path.transfer_id)))
      .handle("decline", ({ path }) => answer(({ account_id }) => transfers.decline(account_id, path.transfer_id)))
      .handle("attach", ({ path }) => answer(({ account_id }) => transfers.attach(account_id, path.token)))
  })
)

export const TransferInvitesHttp = HttpApiBuilder.group(
  Api,
  "transferInvites",
  Effect.fnUntraced(function* (handlers) {
    const transfers = yield* Transfers
    const limits = yield* RateLimits
    return handlers.handle("preview", ({ path, request }) =>
      Effect.zipRight(limits.take("invite_preview", request), Effect.map(transfers.preview(path.token), envelope))
    )
  })
)

const newTransfer = json(NewTransfer)

/** The amount as it stands in the body, digit by digit: what `JSON.parse` makes of it has been rounded to a binary number. */
const amountIn = (body: string): Effect.Effect<string, InvalidRequest> => {
  const wrong = (field: string, rule: string) =>
    new InvalidRequest({ message: field === "" ? `the request: ${rule}` : `${field}: ${rule}`, field, rule })
  return Effect.flatMap(
    Effect.try({
      try: () => parse(body) as { readonly amount: unknown },
      // It is JSON, so what this parser objects to is a name that stands twice with two values.
      catch: (error) => wrong("", error instanceof RangeError ? "nested less deeply" : "each field once")
    }),
    ({ amount }) => (isLosslessNumber(amount) ? Effect.succeed(amount.value) : wrong("amount", "a number"))
  )
}
