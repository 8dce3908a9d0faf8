/** Going over to another tenant, in this tab. */
import type { QueryClient } from "@tanstack/react-query"
import { live } from "./PersonLive.ts"
import { personSession } from "./PersonSession.ts"

/** Fails where the person is no member of it. */
export const switchTo = async (tenant: string, queries: QueryClient): Promise<void> => {
  await personSession.renew(tenant)
  live.start()
  await queries.invalidateQueries()
}
