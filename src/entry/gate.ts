/** `tollgate/gate`: admission. A call that costs something runs inside `meter`, and cannot spend what is not there. */
export { failure, Gate } from "../gate/Gate.ts"
export type { Admission, Claim, Measured, Metered, Receipt } from "../gate/Gate.ts"
export { ownOf, Payers } from "../gate/Payers.ts"
export { InsufficientCredits } from "../gate/Problems.ts"
export { PriceVersions, priced } from "../prices/PriceVersions.ts"
export type { PriceLine } from "../prices/PriceVersions.ts"
export { charge } from "../kernel/Price.ts"
export type { UnitPrice } from "../kernel/Price.ts"
