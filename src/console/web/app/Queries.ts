/** The cache of queries. Views query with hooks; events of `PersonLive` and changes by views invalidate answers. */
import { QueryClient, QueryClientProvider } from "@tanstack/react-query"
import { Refusal, SignedOut } from "./Refusal.ts"

export { QueryClientProvider }

/** A refusal is final. Network failures are retried twice. */
const isWorthAnother = (failures: number, error: unknown): boolean =>
  failures < 2 && !(error instanceof SignedOut) && !(error instanceof Refusal && error.status < 500)

export const queries = new QueryClient({
  defaultOptions: {
    queries: { staleTime: 15_000, gcTime: 300_000, retry: isWorthAnother, refetchOnWindowFocus: true },
    mutations: { retry: false }
  }
})
