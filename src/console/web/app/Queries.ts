/** The query cache. Live events (`PersonLive`) and mutations invalidate cached responses. */
import { QueryClient, QueryClientProvider } from "@tanstack/react-query"
import { Refusal, SignedOut } from "./Refusal.ts"

export { QueryClientProvider }

/** Retries twice, unless the session has ended or the response has a status below 500. */
const shouldRetry = (failures: number, error: unknown): boolean =>
  failures < 2 && !(error instanceof SignedOut) && !(error instanceof Refusal && error.status < 500)

export const queries = new QueryClient({
  defaultOptions: {
    queries: { staleTime: 15_000, gcTime: 300_000, retry: shouldRetry, refetchOnWindowFocus: true },
    mutations: { retry: false }
  }
})
