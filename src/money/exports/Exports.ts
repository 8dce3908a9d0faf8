/**
 * Exports the calls that a tenant paid for, page by page. The period's first and last ledger entries are found at the start. Each page is a separate
 * query for a range of entry numbers, so an export needs constant memory, holds no transaction, and ignores later calls.
 *
 * Where the specification is silent:
 * - Only owners and admins of the tenant may export, although every member with a token of the tenant may read the ledger and the usage. The export
 *   names all members, their addresses and their end users, including for calls that team members made in their own tenants.
 * - A tenant has one export at a time per node, and a node has 32. Further exports are rejected with 429 and 503, respectively. All exports of a node
 *   together read two pages at a time, so they leave connections to other requests.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer, Option } from "effect"
import type { Actor } from "../../kernel/Caller.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import { tagsOf } from "../../kernel/Labels.ts"
import { toDay } from "../../kernel/Moment.ts"
import { fromRow } from "../../kernel/Money.ts"
import { turn } from "../../kernel/Pieces.ts"
import type { Range } from "../../kernel/Pieces.ts"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import type { TokenDetails } from "../../kernel/TokenDetails.ts"
import { entryId, Ledger } from "../../books/ledger/Ledger.ts"
import { chargedCalls } from "../../books/ledger/rows/ChargedCalls.ts"
import type { ChargedCallRow } from "../../books/ledger/rows/ChargedCalls.ts"
import { firstEntryAt } from "../../books/ledger/rows/EntriesInOrder.ts"
import { offsetEvery } from "../../books/ledger/rows/RowLinks.ts"
import type { PriceLine } from "../../books/prices/Lines.ts"
import { PriceVersions } from "../../books/prices/PriceVersions.ts"
import { keyNames } from "../../people/tenants/KeyNames.ts"
import type { InsufficientRole } from "../../people/tenants/Problems.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import { BillingAccountNotFound } from "../billing/Problems.ts"
import type { Window } from "../usage/Window.ts"
import { csvFormat } from "./Csv.ts"
import type { ExportedCall, ExportFormat, RowFormat } from "./Export.ts"
import { focusFormat } from "./Focus.ts"
import { ExportInProgress, ExportsBusy } from "./Problems.ts"

export interface ExportsContract {
  /** Begins an export of the caller's tenant. The caller must call `close` once the export has ended or its client has disconnected. */
  readonly open: (asked: {
    readonly caller: Actor
    readonly format: ExportFormat
    readonly window: Window
  }) => Effect.Effect<OpenExport, InsufficientRole | BillingAccountNotFound | ExportInProgress | ExportsBusy>
}

export interface OpenExport {
  readonly file_name: string
  /** Reads the next page of the file, beginning with its header line. Returns `undefined` after the last page. Pages are never empty. */
  readonly next: Effect.Effect<string | undefined>
  /** Releases the tenant's export slot. Idempotent. */
  readonly close: () => void
}

export class Exports extends Context.Tag("tollgate/exports/Exports")<Exports, ExportsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Exports, make))
}

/**
 * The number of ledger entries per page. A page takes a few milliseconds and at most about 150 kB. Pages end at rows with a saved offset, because
 * ranges are read backwards from these rows.
 */
export const pageSize = offsetEvery
const nodeMax = 32
const readsMax = 2
/** The maximum number of price versions that an export holds in memory. */
const versionsMax = 1_000

const formats = { csv: csvFormat, focus: focusFormat } as const

interface Parts {
  readonly sql: SqlClient
  readonly books: Ledger["Type"]
  readonly tenants: Tenants["Type"]
  readonly versions: PriceVersions["Type"]
  readonly service_name: string
  /** Limits concurrent page reads. */
  readonly reads: Effect.Semaphore
  /** Tenants with an export in progress. */
  readonly open: Set<TenantId>
}

const make = Effect.gen(function* () {
  const parts: Parts = {
    sql: yield* SqlClient,
    books: yield* Ledger,
    tenants: yield* Tenants,
    versions: yield* PriceVersions,
    service_name: (yield* ServiceInfo).service_name,
    reads: yield* Effect.makeSemaphore(readsMax),
    open: new Set()
  }
  return { open: open(parts) } satisfies ExportsContract
})

const open = (parts: Parts): ExportsContract["open"] =>
  Effect.fn("Exports.open")(function* (request) {
    const { tenant_id: tenant } = request.caller
    yield* parts.tenants.mayManage(request.caller)
    const account = yield* parts.books.accountOfTenant(tenant)
    if (Option.isNone(account)) return yield* new BillingAccountNotFound({ tenant_id: tenant })
    if (parts.open.has(tenant)) return yield* new ExportInProgress({ tenant_id: tenant, retry_after: 5 })
    if (parts.open.size >= nodeMax) return yield* new ExportsBusy({ retry_after: 30 })
    parts.open.add(tenant)
    let isOpen = true
    const close = () => {
      if (isOpen) parts.open.delete(tenant)
      isOpen = false
    }
    const file = yield* Effect.onError(began(parts, request, account.value.entries), () => Effect.sync(close))
    return { ...file, close }
  }, Effect.uninterruptible)

const began = Effect.fnUntraced(function* (
  parts: Parts,
  { caller: { tenant_id }, format, window }: Parameters<ExportsContract["open"]>[0],
  entries: number
) {
  const account = billingAccountOf(tenant_id)
  const range = yield* rangeOf(parts.sql, account, window, entries)
  const tenant_name = (yield* parts.tenants.nameOf(tenant_id)) ?? account
  const rows = formats[format]({ billing_account_id: account, tenant_name, service_name: parts.service_name })
  return { file_name: fileNameOf(format, tenant_id, window), next: pagesOf(parts, account, range, rows) }
})

/** Finds the period's entry numbers. `entries` is the total entry count. */
const rangeOf = Effect.fnUntraced(function* (sql: SqlClient, account: string, { end, start }: Window, entries: number) {
  const from = start === null ? 1 : yield* firstEntryAt(sql, account, start)
  const to = end === null ? entries + 1 : yield* firstEntryAt(sql, account, end)
  return { from, to: Math.max(from, to) } satisfies Range
}, Effect.orDie)

const fileNameOf = (format: ExportFormat, tenant: TenantId, { end, start }: Window): string => {
  const days = [start, end].flatMap((at) => (at === null ? [] : [toDay(at)]))
  return [format === "focus" ? "focus" : "usage", tenant.replaceAll(/[^\w-]/g, ""), ...days].join("_") + ".csv"
}

/** Returns an effect that reads the next page each time it runs. */
const pagesOf = (
  parts: Parts,
  account: string,
  { from, to }: Range,
  { header, rows }: RowFormat
): OpenExport["next"] => {
  const lines = linesFrom(parts)
  let at = from
  let text = header
  return Effect.gen(function* () {
    do {
      if (at >= to) break
      yield* turn
      const range = { from: at, to: Math.min(to, (Math.floor((at - 1) / pageSize) + 1) * pageSize + 1) }
      const found = yield* parts.reads.withPermits(1)(Effect.orDie(chargedCalls(parts.sql, account, range)))
      for (const call of yield* withNames(parts, account, found, lines)) text += rows(call)
      at = range.to
    } while (text === "")
    const page = text
    text = ""
    return page === "" ? undefined : page
  })
}

type LinesOf = (version: string) => Effect.Effect<ReadonlyArray<PriceLine>>

/** Reads price versions and caches them for the rest of the export. */
const linesFrom = ({ versions }: Parts): LinesOf => {
  const known = new Map<string, ReadonlyArray<PriceLine>>()
  return (version) => {
    const found = version === "" ? [] : known.get(version)
    if (found !== undefined) return Effect.succeed(found)
    return Effect.map(versions.find(version), (lines = []) => {
      if (known.size >= versionsMax) known.clear()
      known.set(version, lines)
      return lines
    })
  }
}

/** Adds the caller and key names, and the price lines. */
const withNames = Effect.fnUntraced(function* (
  { sql, tenants }: Parts,
  billing_account_id: string,
  rows: ReadonlyArray<ChargedCallRow>,
  linesOf: LinesOf
) {
  if (rows.length === 0) return []
  const accounts = yield* tenants.named([...new Set(rows.map(({ account_id }) => account_id as AccountId))])
  const callers = new Map<string, (typeof accounts)[number]>(accounts.map((account) => [account.id, account]))
  const keys = yield* keyNames(sql, [...new Set(rows.map(({ application_id }) => application_id))])
  const prices = new Map<string, ReadonlyArray<PriceLine>>()
  for (const version of new Set(rows.map(({ price }) => price))) prices.set(version, yield* linesOf(version))
  return rows.map((row): ExportedCall => ({
    ...row,
    entry_id: entryId({ billing_account_id, number: row.number }),
    charge: fromRow(row.charge),
    uncollected: fromRow(row.uncollected),
    token_details: row.token_details === null ? undefined : (JSON.parse(row.token_details) as TokenDetails),
    tags: row.tags === "" ? "" : JSON.stringify(tagsOf(row.tags)),
    success: row.success === 1,
    request_id: row.request_id ?? "",
    account_name: callers.get(row.account_id)?.name ?? "",
    account_email: callers.get(row.account_id)?.email ?? "",
    application_name: keys.get(row.application_id) ?? "",
    lines: prices.get(row.price) ?? []
  }))
})
