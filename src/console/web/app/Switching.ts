/** Going over to another tenant, in this tab. */
import type { QueryClient } from "@tanstack/react-query"
import { live } from "./PersonLive.ts"
import { personSession } from "./PersonSession.ts"

/** Fails where the person is no member of it. */
export const switchTo = async (tenant: string, queries: QueryClient): Promise<void> => {
  await personSession.renew(tenant)
  // The views of the tenant before are gone by then: what they ask would be refused now.
  await new Promise((resolve) => setTimeout(resolve))
  live.start()
  await queries.invalidateQueries()
}
