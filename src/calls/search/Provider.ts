/** The supported search vendors, and the query prices. */
import type { UnitPrice } from "../../kernel/Price.ts"
import { brave } from "../../upstream/search/Brave.ts"
import type { SearchVendor } from "../../upstream/search/SearchVendor.ts"
import { tavily } from "../../upstream/search/Tavily.ts"
import type { SearchProvider } from "./Settings.ts"

/** The supported vendors, by their names in the configuration. */
export const searchVendors = { tavily, brave } as const satisfies Record<string, SearchVendor>
export type SearchVendorName = keyof typeof searchVendors

/** Returns the price at each depth, because a vendor can bill one query as several. */
export const pricesByDepth = (vendor: SearchVendorName, price: UnitPrice): Readonly<Record<string, UnitPrice>> =>
  Object.fromEntries(
    Object.entries(searchVendors[vendor].queries_by_depth).map(([depth, queries]) => [
      depth,
      (price * BigInt(queries)) as UnitPrice
    ])
  )

export const defaultDepth = "basic"

/** Returns a query's price. An unknown depth costs as much as the most expensive one, because the provider may accept it at an unknown price. */
export const priceOf = ({ price, price_by_depth }: SearchProvider, depth: string): UnitPrice => {
  if (Object.hasOwn(price_by_depth, depth)) return price_by_depth[depth]!
  if (depth === defaultDepth) return price
  return Object.values(price_by_depth).reduce((dearest, one) => (one > dearest ? one : dearest), price)
}
