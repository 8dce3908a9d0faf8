import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { storable } from "../../http/lanes/Answer.ts"
import { envelope } from "../../kernel/Envelope.ts"
import { ReconciliationsApi } from "./Api.ts"
import { Reconciliations } from "./Reconciliations.ts"

const answered = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.map(storable(effect), (result) => envelope(result))

export const ReconciliationsHttp = HttpApiBuilder.group(
  contract.add(ReconciliationsApi),
  "reconciliations",
  Effect.fnUntraced(function* (handlers) {
    const { differences, find, list, period, vendors } = yield* Reconciliations
    return handlers
      .handle("reconciliations", ({ urlParams }) =>
        answered(Effect.map(Effect.all([vendors, list(urlParams)]), ([vendors, found]) => ({ vendors, ...found })))
      )
      .handle("period", ({ path, urlParams }) => answered(period({ ...path, ...urlParams })))
      .handle("differences", ({ path, urlParams }) => answered(differences({ ...path, ...urlParams })))
      .handle("reconciliation", ({ path }) => answered(find(path.vendor, path.day)))
  })
)
