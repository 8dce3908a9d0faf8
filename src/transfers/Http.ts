import { HttpApiBuilder, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { isLosslessNumber, parse } from "lossless-json"
import { Api } from "../Api.ts"
import { Caller } from "../http/Caller.ts"
import type { CallerFacts } from "../http/Caller.ts"
import { InvalidRequest, TenantMismatch } from "../http/Problems.ts"
import { RateLimits } from "../http/RateLimits.ts"
import { isKey } from "../idempotency/Idempotency.ts"
import { IdempotencyKeyInvalid, IdempotencyKeyRequired } from "../idempotency/Problems.ts"
import { envelope } from "../kernel/Envelope.ts"
import type { TenantId } from "../kernel/Ids.ts"
import { Created } from "./Api.ts"
import { Transfers } from "./Transfers.ts"

export const TransfersHttp = HttpApiBuilder.group(
  Api,
  "transfers",
  Effect.fnUntraced(function* (handlers) {
    const transfers = yield* Transfers
    return handlers
      .handle("create", ({ headers, path, payload, request }) =>
        ofTenant(path, (caller) =>
          Effect.gen(function* () {
            const key = headers["idempotency-key"]
            if (key === undefined || key === "") return yield* new IdempotencyKeyRequired()
            if (!isKey(key)) return yield* new IdempotencyKeyInvalid()
            const literal = yield* amountIn(yield* Effect.orDie(request.text))
            const { created, transfer } = yield* transfers.create(caller, key, payload, literal)
            return yield* Effect.orDie(
              HttpServerResponse.schemaJson(Created)(envelope(transfer), { status: created ? 201 : 200 })
            )
          })
        )
      )
      .handle("sent", ({ path, urlParams }) =>
        ofTenant(path, () => Effect.map(transfers.sent(path.tenant_id, urlParams), envelope))
      )
      .handle("revoke", ({ path }) =>
        ofTenant(path, (caller) => Effect.map(transfers.revoke(caller, path.transfer_id), envelope))
      )
      .handle("resend", ({ path }) =>
        ofTenant(path, (caller) => Effect.map(transfers.resend(caller, path.transfer_id), envelope))
      )
      .handle("received", ({ urlParams }) => mine(({ account_id }) => transfers.received(account_id, urlParams)))
      .handle("transfer", ({ path }) => mine((caller) => transfers.find(caller, path.transfer_id)))
      .handle("accept", ({ path }) => mine(({ account_id }) => transfers.accept(account_id, path.transfer_id)))
      .handle("decline", ({ path }) => mine(({ account_id }) => transfers.decline(account_id, path.transfer_id)))
      .handle("attach", ({ path }) => mine(({ account_id }) => transfers.attach(account_id, path.token)))
  })
)

export const TransferInvitesHttp = HttpApiBuilder.group(
  Api,
  "transferInvites",
  Effect.fnUntraced(function* (handlers) {
    const transfers = yield* Transfers
    const limits = yield* RateLimits
    return handlers.handle("preview", ({ path, request }) =>
      Effect.zipRight(
        Effect.provideService(limits.take("invite_preview"), HttpServerRequest.HttpServerRequest, request),
        Effect.map(transfers.preview(path.token), envelope)
      )
    )
  })
)

const mine = <A, E>(answer: (caller: CallerFacts) => Effect.Effect<A, E>) =>
  Effect.map(Effect.flatMap(Caller, answer), envelope)

/** The answer for the path's tenant, which must be the token's. */
const ofTenant = <A, E>(path: { readonly tenant_id: TenantId }, answer: (caller: CallerFacts) => Effect.Effect<A, E>) =>
  Effect.flatMap(Caller, (caller): Effect.Effect<A, E | TenantMismatch> =>
    caller.tenant_id === path.tenant_id ? answer(caller) : new TenantMismatch()
  )

/** The amount as it stands in the body, digit by digit: what `JSON.parse` makes of it has been rounded to a binary number. */
const amountIn = (body: string): Effect.Effect<string, InvalidRequest> =>
  Effect.try({
    try: () => {
      const { amount } = parse(body) as { readonly amount: unknown }
      if (!isLosslessNumber(amount)) throw new Error("amount: a number")
      return amount.value
    },
    catch: (error) => new InvalidRequest({ error: error instanceof Error ? error.message : "amount: a number" })
  })
