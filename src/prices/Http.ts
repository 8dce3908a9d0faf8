import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { envelope } from "../kernel/Envelope.ts"
import { PriceList } from "./PriceList.ts"

export const PricesHttp = HttpApiBuilder.group(Api, "prices", (handlers) =>
  handlers.handle("list", () => Effect.map(PriceList, (prices) => envelope(prices)))
)
