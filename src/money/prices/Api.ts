/** The public route that shows the credit of a new account. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Envelope } from "../../kernel/Envelope.ts"
import { Usd } from "../../kernel/Money.ts"

export const Prices = Schema.Struct({
  default_new_credits: Usd,
  default_registration_credits: Usd
}).annotations({ identifier: "Prices" })

export class PricesApi extends HttpApiGroup.make("prices").add(
  HttpApiEndpoint.get("list", "/v1/prices")
    .addSuccess(Envelope(Prices))
    .annotate(OpenApi.Summary, "Get the credit that a new account receives")
) {}
