/** The live events of the user's tenant, and the query topics that each event invalidates. */
import type { QueryClient } from "@tanstack/react-query"
import { Live } from "./Live.ts"
import { personSession } from "./PersonSession.ts"

export const live = new Live("/v1/events", personSession)

const staleBy: Readonly<Record<string, ReadonlyArray<string>>> = {
  call: ["usage", "keys", "budgets", "runs"],
  balance: ["balance", "ledger", "reload", "payers"],
  notification: ["notifications", "transfers", "reload", "team"],
  reset: [
    "usage",
    "balance",
    "ledger",
    "keys",
    "budgets",
    "runs",
    "notifications",
    "transfers",
    "reload",
    "payers",
    "team"
  ]
}

/** The minimum interval between invalidations, in milliseconds. Hundreds of events can arrive per second. */
const invalidationInterval = 1000

export const keepFresh = (queries: QueryClient): (() => void) => {
  const stale = new Set<string>()
  let timer: ReturnType<typeof setTimeout> | undefined
  const refresh = (): void => {
    timer = undefined
    const names = [...stale]
    stale.clear()
    for (const name of names) void queries.invalidateQueries({ queryKey: [name] })
  }
  return live.on(({ type }) => {
    for (const name of staleBy[type] ?? []) stale.add(name)
    if (stale.size > 0) timer ??= setTimeout(refresh, invalidationInterval)
  })
}
