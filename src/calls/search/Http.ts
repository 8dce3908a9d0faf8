import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { query } from "../../http/transport/Body.ts"
import { group, raw } from "../../http/lanes/Raw.ts"
import { json } from "../../http/transport/Reply.ts"
import type { Reply } from "../../http/transport/Reply.ts"
import { listOf, namesOf } from "../../upstream/models/Provider.ts"
import { headersOf } from "../metered/ReceiptHeaders.ts"
import { labelled } from "../metered/Routes.ts"
import { SearchApi } from "./Api.ts"
import { SearchQuery } from "./Query.ts"
import { SearchProviders } from "./Settings.ts"
import { Search } from "./Search.ts"
import type { SearchResults } from "./Search.ts"

const read = query(SearchQuery)

const search = Effect.map(Search, ({ search }) =>
  labelled((caller, inbound) =>
    Effect.flatMap(read(inbound.query()), (query) =>
      inbound.withRoom((room) => Effect.map(search({ caller, query, room, request_id: inbound.request_id }), replyOf))
    )
  )
)

export const SearchHttp = group(
  contract.add(SearchApi),
  "search",
  Effect.fnUntraced(function* (handlers) {
    const handler = raw(yield* search)
    const providers = yield* SearchProviders
    return handlers
      .handleRaw("search", handler)
      .handleRaw("toolSearch", handler)
      .handle("providers", () => Effect.succeed(namesOf(providers)))
      .handle("toolProviders", () => Effect.succeed(listOf(providers)))
  })
)

const replyOf = ({ provider, query, receipt, results }: SearchResults): Reply =>
  json(200, { query, results, provider }, headersOf(receipt))
