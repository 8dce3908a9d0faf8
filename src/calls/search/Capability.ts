/** The search capability. */
import { Effect } from "effect"
import { SearchHttp } from "./Http.ts"
import * as tool from "./Settings.ts"
import { Search } from "./Search.ts"

export const capability = {
  handlers: SearchHttp,
  layer: Search.layer,
  names: Effect.map(tool.SearchProviders, (list) => list.map(({ id }) => id)),
  tool
}
