import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { answer } from "../../http/lanes/Answer.ts"
import { windowOf } from "../usage/Query.ts"
import { PoolingApi } from "./Api.ts"
import { Pooling } from "./Pooling.ts"

export const PoolingHttp = HttpApiBuilder.group(
  contract.add(PoolingApi),
  "pooling",
  Effect.fnUntraced(function* (handlers) {
    const pooling = yield* Pooling
    return handlers
      .handle("sources", () => answer(pooling.sources))
      .handle("select", ({ payload }) => answer((caller) => pooling.select({ caller, selection: payload })))
      .handle("payerUsage", ({ urlParams }) =>
        answer((caller) => Effect.flatMap(windowOf(urlParams), (window) => pooling.usage({ caller, window })))
      )
      .handle("capacity", () => answer(pooling.capacity))
  })
)
