import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { envelope } from "../../kernel/Envelope.ts"
import { PricesApi } from "./Api.ts"
import { PriceList } from "../../books/prices/PriceList.ts"

export const PricesHttp = HttpApiBuilder.group(contract.add(PricesApi), "prices", (handlers) =>
  handlers.handle("list", () => Effect.map(PriceList, (prices) => envelope(prices)))
)
