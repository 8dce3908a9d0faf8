import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { CurrentCaller } from "../../http/lanes/Caller.ts"
import { paged } from "../../http/transport/Paged.ts"
import { ExportsApi } from "./Api.ts"
import { Exports } from "./Exports.ts"
import { exportOf } from "./Query.ts"

export const ExportsHttp = HttpApiBuilder.group(
  contract.add(ExportsApi),
  "exports",
  Effect.fnUntraced(function* (handlers) {
    const exports = yield* Exports
    return handlers.handleRaw("export", ({ request, urlParams }) =>
      Effect.gen(function* () {
        const caller = yield* CurrentCaller
        const { close, file_name, next } = yield* exports.open({ caller, ...(yield* exportOf(urlParams)) })
        return yield* paged(request, headersOf(file_name), next, close)
      }).pipe(Effect.uninterruptible)
    )
  })
)

const headersOf = (file_name: string) => ({
  "content-type": "text/csv; charset=utf-8",
  "content-disposition": `attachment; filename="${file_name}"`,
  "cache-control": "no-store",
  "x-content-type-options": "nosniff"
})
