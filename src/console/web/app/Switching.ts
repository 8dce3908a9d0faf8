/** Switches this tab to another tenant. Fails if the user does not belong to it. */
import type { QueryClient } from "@tanstack/react-query"
import { live } from "./PersonLive.ts"
import { personSession } from "./PersonSession.ts"

export const switchTo = async (tenant: string, queries: QueryClient): Promise<void> => {
  await personSession.renew(tenant)
  // Wait until the previous tenant's views are unmounted, because the service would now reject their queries.
  await new Promise((resolve) => setTimeout(resolve))
  live.start()
  await queries.invalidateQueries()
}
