/** The cache of what was asked. A view asks by a hook; events of `PersonLive` and what a view changes make answers old. */
import { QueryClient, QueryClientProvider } from "@tanstack/react-query"
import { Refusal, SignedOut } from "./Refusal.ts"

export { QueryClientProvider }

/** A refusal stays one; what did not come through is asked again, twice. */
const isWorthAnother = (failures: number, error: unknown): boolean =>
  failures < 2 && !(error instanceof SignedOut) && !(error instanceof Refusal && error.status < 500)

export const queries = new QueryClient({
  defaultOptions: {
    queries: { staleTime: 15_000, gcTime: 300_000, retry: isWorthAnother, refetchOnWindowFocus: true },
    mutations: { retry: false }
  }
})
