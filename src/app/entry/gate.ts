/** `tollgate/gate`: admission. A metered call runs inside `meter` and cannot spend more than its payer's balance. */
import { Layer } from "effect"
import { Gate } from "../../books/gate/Gate.ts"
import { PriceFactors } from "../../books/prices/PriceFactors.ts"
import { PriceVersions } from "../../books/prices/PriceVersions.ts"
import "./contracts.ts"

export { Gate, PriceVersions }
export { failure } from "../../books/gate/Gate.ts"
export type { Admission, Claim, Measured, Metered, Receipt } from "../../books/gate/Gate.ts"
export { ownOf, Payers } from "../../books/gate/Payers.ts"
export { BudgetExceeded, InsufficientCredits, ModelNotAllowed, RateLimitReached } from "../../books/gate/Problems.ts"
export type { RatesAt } from "../../books/gate/RateHeaders.ts"
export { capabilities } from "../../kernel/Capabilities.ts"
export type { Capability } from "../../kernel/Capabilities.ts"
export { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
export { billed, priced } from "../../books/prices/Lines.ts"
export type { Billed, Figures, PriceLine, Quantity } from "../../books/prices/Lines.ts"
export { charge } from "../../kernel/Price.ts"
export type { UnitPrice } from "../../kernel/Price.ts"
export type { Caller } from "../../kernel/Caller.ts"
export { AccountId, ApplicationId, TenantId } from "../../kernel/Ids.ts"

/** Admission, and the price versions that charges refer to. Requires a database and `Payers`. `Payers` decides who pays for a call. */
export const layer = Layer.mergeAll(Gate.layer, PriceVersions.layer, PriceFactors.layerNone)

/** The loop of `layer`. It releases the reservations of processes that have stopped. */
export const layerJobs = Gate.layerJobs
