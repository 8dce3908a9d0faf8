/** Queries that several operator views share. Every query key begins with `operator`. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { resultOf } from "../app/Client.ts"
import { operatorApi } from "./OperatorSession.ts"

/** Stores the visited pages' cursors; the last one belongs to the current page. Changing `question` resets them. */
export const useCursors = (question: string) => {
  const [state, set] = useState<{ readonly question: string; readonly cursors: ReadonlyArray<string> }>({
    question,
    cursors: []
  })
  const cursors = state.question === question ? state.cursors : []
  return {
    cursor: cursors.at(-1),
    pages: (next: string | null) => ({
      onPrevious: cursors.length === 0 ? undefined : () => set({ question, cursors: cursors.slice(0, -1) }),
      onNext: next === null ? undefined : () => set({ question, cursors: [...cursors, next] })
    }),
    hasPages: (next: string | null) => cursors.length > 0 || next !== null
  }
}

export const useFlight = () =>
  useQuery({
    queryKey: ["operator", "flight"],
    queryFn: () => resultOf(operatorApi.GET("/v1/operator/flight")),
    refetchInterval: 5000
  })

export const useUpstreams = () =>
  useQuery({
    queryKey: ["operator", "upstreams"],
    queryFn: () => resultOf(operatorApi.GET("/v1/operator/upstreams")),
    refetchInterval: 5000
  })

export const useWork = () =>
  useQuery({
    queryKey: ["operator", "work"],
    queryFn: () => resultOf(operatorApi.GET("/v1/operator/loops")),
    refetchInterval: 5000
  })

export const useVerifications = () =>
  useQuery({
    queryKey: ["operator", "verify"],
    queryFn: () => resultOf(operatorApi.GET("/v1/operator/verify")),
    refetchInterval: ({ state }) => (state.data === undefined || state.data.running === null ? 30_000 : 500)
  })

export const useTenant = (tenant_id: string) =>
  useQuery({
    queryKey: ["operator", "tenant", tenant_id],
    queryFn: () => resultOf(operatorApi.GET("/v1/operator/tenants/{tenant_id}", { params: { path: { tenant_id } } }))
  })

export const useSearch = (q: string) =>
  useQuery({
    queryKey: ["operator", "search", q],
    enabled: q !== "",
    queryFn: () => resultOf(operatorApi.GET("/v1/operator/search", { params: { query: { q, limit: "20" } } })),
    placeholderData: keepPreviousData
  })
