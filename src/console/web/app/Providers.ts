/** Loads the service's name and sign-in methods. */
import { useQuery } from "@tanstack/react-query"
import { consoleUrl } from "./Base.ts"
import { fetchResponse, refusalOf } from "./Refusal.ts"

interface Providers {
  readonly service_name: string
  readonly providers: ReadonlyArray<{ readonly id: string; readonly name: string }>
  readonly passkeys: boolean
  readonly sandbox: boolean
}

export const useProviders = () =>
  useQuery({
    queryKey: ["providers"],
    staleTime: Infinity,
    queryFn: async (): Promise<Providers> => {
      const response = await fetchResponse(consoleUrl("providers"))
      if (!response.ok) throw await refusalOf(response)
      return ((await response.json()) as { result: Providers }).result
    }
  })
