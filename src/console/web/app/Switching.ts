/** Switches this tab to another tenant. */
import type { QueryClient } from "@tanstack/react-query"
import { live } from "./PersonLive.ts"
import { personSession } from "./PersonSession.ts"

/** Fails if the person is not a member of it. */
export const switchTo = async (tenant: string, queries: QueryClient): Promise<void> => {
  await personSession.renew(tenant)
  // Wait until the previous tenant's views are unmounted; their queries would now be refused.
  await new Promise((resolve) => setTimeout(resolve))
  live.start()
  await queries.invalidateQueries()
}
