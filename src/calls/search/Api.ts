/** Endpoints for web search, and the lists of search providers. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Example, Metered } from "../../http/contract/Documented.ts"
import { GateRefusal } from "../../books/gate/Problems.ts"
import { Fast, NoHead } from "../../http/contract/Annotations.ts"
import { Busy } from "../../kernel/Busy.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { KeyOrToken } from "../../people/credentials/Security.ts"
import { UpstreamRefusal } from "../../upstream/wire/Problems.ts"
import { ProviderList, ProviderNames } from "../../upstream/models/Provider.ts"
import { SearchAnswer, SearchQuery } from "./Query.ts"

const search = <const Name extends string>(name: Name, path: `/${string}`) =>
  HttpApiEndpoint.get(name, path)
    .setUrlParams(SearchQuery)
    .addSuccess(SearchAnswer)
    .addError(InvalidRequest)
    .addError(GateRefusal)
    .addError(UpstreamRefusal)
    .addError(Busy)
    .annotate(NoHead, true)
    .annotate(Example, { query: { query: "why is the sky blue", max_results: 5 } })
    .annotate(Metered, { charge_known: true, says_record: true })
    .annotate(OpenApi.Summary, "Search the web; each query costs the provider's price")

export class SearchApi extends HttpApiGroup.make("search")
  .add(search("search", "/v1/search").annotate(Fast, true))
  .add(search("toolSearch", "/v1/tools/search"))
  .add(
    HttpApiEndpoint.get("providers", "/v1/search/providers")
      .addSuccess(ProviderNames)
      .annotate(OpenApi.Summary, "List the names of the search providers")
  )
  .add(
    HttpApiEndpoint.get("toolProviders", "/v1/tools/search/providers")
      .addSuccess(ProviderList)
      .annotate(OpenApi.Summary, "List the search providers with descriptions")
  )
  .middleware(KeyOrToken) {}
