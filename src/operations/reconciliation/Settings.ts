/** Reads `reconciliation` in the configuration: the vendors with bills to compare with the metered calls. */
import { Context, Effect, Layer, Schema } from "effect"
import type { Redacted } from "effect"
import { Address, NonEmpty, secretOf } from "../../kernel/Setting.ts"
import { billingApiNames, billingApis } from "../../upstream/billing/Vendors.ts"
import type { BillingApiName } from "../../upstream/billing/Vendors.ts"

const Vendor = Schema.Struct({
  /** The billing API. Without an API, bills must be passed as files. */
  api: Schema.optional(Schema.Literal(...billingApiNames)),
  /** The environment variable that contains the admin key, required by the API. */
  key_env: Schema.optional(NonEmpty),
  /** The API's address. Defaults to the vendor's own. */
  base_url: Schema.optional(Address),
  /** The upstreams that this vendor bills. Defaults to the upstream with the vendor's name. */
  upstreams: Schema.optional(Schema.Array(NonEmpty)),
  /** The names of models on the bill, mapped to those in requests to the upstream. Required only for names that cannot be matched. */
  models: Schema.optionalWith(Schema.Record({ key: NonEmpty, value: NonEmpty }), { default: () => ({}) })
}).pipe(
  Schema.filter(({ api, key_env }) =>
    (api === undefined) === (key_env === undefined) ? undefined : "api and key_env must be set together"
  )
)

export const fields = {
  reconciliation: Schema.optionalWith(Schema.Record({ key: NonEmpty, value: Vendor }), { default: () => ({}) })
}

export interface BillingVendor {
  readonly name: string
  readonly api: BillingApiName | undefined
  readonly key: Redacted.Redacted | undefined
  readonly base_url: string
  readonly upstreams: ReadonlySet<string>
  readonly models: Readonly<Record<string, string>>
}

/** The configured vendors. There are none by default. */
export class BillingVendors extends Context.Reference<BillingVendors>()("tollgate/reconciliation/BillingVendors", {
  defaultValue: (): ReadonlyArray<BillingVendor> => []
}) {}

/** Provides the vendors. Fails if the environment variable for an admin key is not set. */
export const layer = ({ reconciliation }: { readonly reconciliation: Readonly<Record<string, typeof Vendor.Type>> }) =>
  Layer.effect(
    BillingVendors,
    Effect.forEach(Object.entries(reconciliation), ([name, { api, base_url, key_env, models, upstreams }]) =>
      Effect.map(secretOf(`reconciliation.${name}.key_env`, key_env), (key): BillingVendor => ({
        name,
        api,
        key,
        base_url: base_url ?? (api === undefined ? "" : billingApis[api].base_url),
        upstreams: new Set(upstreams ?? [name]),
        models
      }))
    )
  )
