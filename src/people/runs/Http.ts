import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { answer } from "../../http/lanes/Answer.ts"
import { RunsApi } from "./Api.ts"
import { BudgetedRuns } from "./BudgetedRuns.ts"

export const RunsHttp = HttpApiBuilder.group(
  contract.add(RunsApi),
  "runs",
  Effect.fnUntraced(function* (handlers) {
    const runs = yield* BudgetedRuns
    return handlers
      .handle("create", ({ payload }) => answer((caller) => runs.create({ caller, run: payload })))
      .handle("list", ({ urlParams }) => answer((caller) => runs.list({ caller, ...urlParams })))
      .handle("run", ({ path }) => answer((caller) => runs.find({ caller, ...path })))
      .handle("end", ({ path }) => answer((caller) => runs.end({ caller, ...path })))
  })
)
