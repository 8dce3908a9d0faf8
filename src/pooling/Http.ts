import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { answer } from "../http/Answer.ts"
import { Pooling } from "./Pooling.ts"

export const PoolingHttp = HttpApiBuilder.group(
  Api,
  "pooling",
  Effect.fnUntraced(function* (handlers) {
    const pooling = yield* Pooling
    return handlers
      .handle("sources", () => answer(pooling.sources))
      .handle("select", ({ payload }) => answer((caller) => pooling.select(caller, payload)))
      .handle("payerUsage", ({ urlParams }) => answer((caller) => pooling.usage(caller, urlParams)))
      .handle("capacity", () => answer(pooling.capacity))
  })
)
