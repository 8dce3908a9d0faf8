/** Queries and mutations for media jobs: submit, list, poll until settled, fetch the result, and cancel. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { useEffect, useRef, useState } from "react"
import { apiRoot } from "../../app/Base.ts"
import { api, responseBody, tenantId } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { Refusal } from "../../app/Refusal.ts"
import { sendCall } from "./runs.ts"

export type Job = Schemas["MediaJobEntry"]
export type MediaBody = Schemas["MediaRequest"]

export const perPage = 12

export const useJobs = (page: number) =>
  useQuery({
    queryKey: ["media", tenantId(), "jobs", page],
    queryFn: () =>
      responseBody(
        api.GET("/v1/tools/media/jobs", { params: { query: { page: String(page), per_page: String(perPage) } } })
      ),
    placeholderData: keepPreviousData
  })

/** Returns a mutation that submits a job. If no response arrives, a retry with the same body reuses the Idempotency-Key. */
export const useSubmit = (onSubmitted: (job: Schemas["MediaSubmitted"]) => void) => {
  const queries = useQueryClient()
  const tenant = tenantId()
  const key = useRef<{ readonly of: string; readonly key: string }>(undefined)
  return useMutation({
    mutationFn: (body: MediaBody) => {
      const of = JSON.stringify(body)
      if (key.current?.of !== of) key.current = { of, key: crypto.randomUUID() }
      const header = { "Idempotency-Key": key.current.key }
      return responseBody(api.POST("/v1/tools/media/generate", { params: { header }, body }))
    },
    onSuccess: (job) => {
      key.current = undefined
      queries.setQueryData(["media-quote", job.request_id], job.cost_usd)
      void queries.invalidateQueries({ queryKey: ["media", tenant, "jobs"] })
      onSubmitted(job)
    },
    onError: (error) => {
      if (error instanceof Refusal) key.current = undefined
    }
  })
}

/** Returns the job's quote, if known. A settled job reports its charge instead, so the quote is cached before settlement. */
export const useQuote = ({ cost_usd, request_id, settled }: Job): Job["cost_usd"] | undefined => {
  const queries = useQueryClient()
  const { data } = useQuery({
    queryKey: ["media-quote", request_id],
    queryFn: () => cost_usd,
    enabled: false,
    gcTime: Infinity
  })
  useEffect(() => {
    if (!settled) queries.setQueryData(["media-quote", request_id], cost_usd)
  }, [queries, settled, request_id, cost_usd])
  return data
}

/** Returns the delay before a job's next poll, in milliseconds. */
const pollDelay = (looks: number): number => Math.min(15_000, 700 * 1.35 ** looks)

const isOpen = ({ settled, status }: Pick<Job, "settled" | "status">): boolean => !settled && status !== "CANCELLED"

/** Polls a job until it is settled or cancelled. Returns its latest state. */
export const useStatus = (job: Job) => {
  const queries = useQueryClient()
  const tenant = tenantId()
  const wasOpen = isOpen(job)
  const status = useQuery({
    queryKey: ["media", tenant, "status", job.request_id],
    enabled: wasOpen,
    queryFn: () =>
      responseBody(api.GET("/v1/tools/media/status", { params: { query: { request_id: job.request_id } } })),
    refetchInterval: ({ state: { data, dataUpdateCount } }) =>
      data !== undefined && !isOpen(data) ? false : pollDelay(dataUpdateCount)
  })
  const isNowSettled = status.data !== undefined && !isOpen(status.data)
  useEffect(() => {
    if (!wasOpen || !isNowSettled) return
    for (const queryKey of [["media", tenant, "jobs"], ["balance"], ["ledger"]]) {
      void queries.invalidateQueries({ queryKey })
    }
  }, [queries, tenant, wasOpen, isNowSettled])
  return status.data ?? job
}

/** Fetches the job's result. The vendor's URLs in it are temporary. */
export const useResult = ({ request_id }: Job, isDone: boolean) =>
  useQuery({
    queryKey: ["media-result", request_id],
    enabled: isDone,
    staleTime: 300_000,
    queryFn: () => responseBody(api.GET("/v1/tools/media/result", { params: { query: { request_id } } }))
  })

/** The maximum number of concurrent downloads. The service allows four per user. */
const downloadsMax = 3
let running = 0
const waiting: Array<() => void> = []

const acquireSlot = async (): Promise<() => void> => {
  if (running >= downloadsMax) await new Promise<void>((resolve) => waiting.push(resolve))
  running++
  return () => {
    running--
    waiting.shift()?.()
  }
}

const contentOf = async (request_id: string, index: number, signal: AbortSignal): Promise<Blob> => {
  const done = await acquireSlot()
  try {
    const query = new URLSearchParams({ request_id, index: String(index) })
    const request = new Request(`${apiRoot}/v1/tools/media/content?${query.toString()}`, {
      credentials: "omit",
      signal
    })
    return (await sendCall(request, (response) => response.blob())).output
  } finally {
    done()
  }
}

/** Fetches a generated file through the service. `url` is an object URL of this page. */
export const useContent = (request_id: string, index: number, isWanted: boolean) => {
  const content = useQuery({
    queryKey: ["media-content", request_id, index],
    enabled: isWanted,
    staleTime: Infinity,
    queryFn: ({ signal }) => contentOf(request_id, index, signal)
  })
  const [url, setUrl] = useState<string>()
  const { data } = content
  useEffect(() => {
    if (data === undefined) return
    const made = URL.createObjectURL(data)
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [data])
  return { url, isLoading: content.isFetching, isGone: content.error !== null }
}

export const useCancel = () => {
  const queries = useQueryClient()
  const tenant = tenantId()
  return useMutation({
    mutationFn: ({ request_id }: Job) => responseBody(api.POST("/v1/tools/media/cancel", { body: { request_id } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["media", tenant] })
  })
}
