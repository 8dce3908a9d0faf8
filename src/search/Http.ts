import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { raw } from "../http/Raw.ts"
import { listOf, namesOf } from "../upstream/Provider.ts"
import { SearchProviders } from "./Provider.ts"
import { Search } from "./Search.ts"

export const SearchHttp = HttpApiBuilder.group(
  Api,
  "search",
  Effect.fnUntraced(function* (handlers) {
    const { search } = yield* Search
    const providers = yield* SearchProviders
    return handlers
      .handleRaw("search", raw(search))
      .handleRaw("toolSearch", raw(search))
      .handle("providers", () => Effect.succeed(namesOf(providers)))
      .handle("toolProviders", () => Effect.succeed(listOf(providers)))
  })
)
