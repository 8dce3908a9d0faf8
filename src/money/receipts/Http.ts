import { HttpApiBuilder } from "@effect/platform"
import type { HttpServerRequest } from "@effect/platform"
import { Effect } from "effect"
import { gzipSync } from "node:zlib"
import { contract } from "../../http/contract/Contract.ts"
import { CurrentCaller } from "../../http/lanes/Caller.ts"
import { encodingsOf } from "../../http/transport/Encodings.ts"
import { RateLimits } from "../../http/transport/RateLimits.ts"
import * as Reply from "../../http/transport/Reply.ts"
import { ReceiptsApi } from "./Api.ts"
import type { Receipt } from "./Receipt.ts"
import { Receipts } from "./Receipts.ts"

/** Compresses a receipt for a client that accepts gzip. Base64 takes a third more bytes than the hashes and signatures that it encodes. */
const sentTo = (request: HttpServerRequest.HttpServerRequest) => (receipt: Receipt) => {
  const plain = Reply.json(200, receipt, { vary: "Accept-Encoding" })
  if (!encodingsOf(request).includes("gzip")) return Reply.toResponse(plain)
  const body = gzipSync(plain.body as string)
  return Reply.toResponse({ ...plain, headers: { ...plain.headers, "content-encoding": "gzip" }, body })
}

export const ReceiptsHttp = HttpApiBuilder.group(
  contract.add(ReceiptsApi),
  "receipts",
  Effect.fnUntraced(function* (handlers) {
    const receipts = yield* Receipts
    const limits = yield* RateLimits
    return handlers
      .handle("ofCharge", ({ path, request }) =>
        Effect.flatMap(CurrentCaller, (caller) =>
          Effect.map(receipts.ofCharge({ caller, usage_id: path.usage_id }), sentTo(request))
        )
      )
      .handle("ofEntry", ({ path, request }) =>
        Effect.flatMap(CurrentCaller, ({ tenant_id }) => {
          const number = /^\d+$/.test(path.number) ? Number(path.number) : 0
          return Effect.map(receipts.ofEntry({ tenant_id, number }), sentTo(request))
        })
      )
      .handle("keys", () => receipts.keys)
      .handle("liabilities", ({ request, urlParams }) =>
        Effect.zipRight(limits.take("log", request), receipts.liabilities(urlParams.day))
      )
      .handle("liability", ({ request, urlParams }) =>
        limits.take("log", request).pipe(
          Effect.zipRight(CurrentCaller),
          Effect.flatMap(({ tenant_id }) => receipts.liability({ tenant_id, day: urlParams.day }))
        )
      )
  })
)
