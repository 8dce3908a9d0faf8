/** `tollgate/gate`: admission. A call that costs something runs inside `meter`, and cannot spend what is not there. */
import { Layer } from "effect"
import { Gate } from "../../books/gate/Gate.ts"
import { PriceVersions } from "../../books/prices/PriceVersions.ts"
import "./contracts.ts"

export { Gate, PriceVersions }
export { failure } from "../../books/gate/Gate.ts"
export type { Admission, Claim, Measured, Metered, Receipt } from "../../books/gate/Gate.ts"
export { ownOf, Payers } from "../../books/gate/Payers.ts"
export { InsufficientCredits, ModelNotAllowed } from "../../books/gate/Problems.ts"
export { BooksUnavailable } from "../../books/ledger/Problems.ts"
export { billed, priced } from "../../books/prices/Lines.ts"
export type { Billed, Figures, PriceLine, Quantity } from "../../books/prices/Lines.ts"
export { charge } from "../../kernel/Price.ts"
export type { UnitPrice } from "../../kernel/Price.ts"
export type { Caller } from "../../kernel/Caller.ts"
export { AccountId, ApplicationId, TenantId } from "../../kernel/Ids.ts"

/** Admission, and the versions of prices that charges name. Needs a database, and `Payers`: who pays a call. */
export const layer = Layer.mergeAll(Gate.layer, PriceVersions.layer)

/** The loop of `layer`: reservations that ended processes left are released. */
export const layerJobs = Gate.layerJobs
