/**
 * Identifiers. They are opaque strings that begin with their kind and sort by creation time. An id consists of a prefix such as `acc_`, 10 characters
 * for the time in milliseconds and 12 random characters, in Crockford's base 32. Ids are not secret.
 *
 * Where the specification is silent:
 * - A billing account's id is its tenant's id with `bil_` instead of `ten_`. Each tenant has exactly one account, so no lookup is needed.
 */
import { Clock, Effect, Schema } from "effect"
import { at } from "./IdText.ts"
import type { Kind } from "./IdText.ts"

export { at, type Kind }

/** Generates an id with the current time. */
export const make = (kind: Kind): Effect.Effect<string> => Effect.map(Clock.currentTimeMillis, (now) => at(kind, now))

export type AccountId = typeof AccountId.Type
export const AccountId = Schema.String.pipe(Schema.brand("AccountId"))

export type TenantId = typeof TenantId.Type
export const TenantId = Schema.String.pipe(Schema.brand("TenantId"))

export type BillingAccountId = typeof BillingAccountId.Type
export const BillingAccountId = Schema.String.pipe(Schema.brand("BillingAccountId"))

export type ApplicationId = typeof ApplicationId.Type
export const ApplicationId = Schema.String.pipe(Schema.brand("ApplicationId"))

/** A run of an API key. */
export type RunId = typeof RunId.Type
export const RunId = Schema.String.pipe(Schema.brand("RunId"))

/** An admitted call. Its usage record's id has the same characters after `use_`. */
export type CallId = typeof CallId.Type
export const CallId = Schema.String.pipe(Schema.brand("CallId"))

export const usageOf = (call: string): string => `use_${call.slice(call.indexOf("_") + 1)}`

export const billingAccountOf = (tenant: string): BillingAccountId =>
  `bil_${tenant.slice(tenant.indexOf("_") + 1)}` as BillingAccountId

export const tenantOf = (billing_account: string): TenantId =>
  `ten_${billing_account.slice(billing_account.indexOf("_") + 1)}` as TenantId
