/**
 * Issues receipts, which prove that a ledger entry is in the charge log (`books/log`), and proofs that a balance is in the total of a
 * day.
 *
 * Where the specification is silent:
 * - A receipt shows the payer's balance, so only the paying tenant can get it. If another tenant paid, the tenant that made the call cannot get it.
 * - An API key of the paying tenant can also get the receipt, because a 402 already shows that balance to the key.
 * - The log's entry bundles are not served, because leaves are private. Tiles and checkpoints are public.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer } from "effect"
import type { Caller } from "../../kernel/Caller.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import * as Entries from "../../books/ledger/rows/EntriesInOrder.ts"
import { ChargeLog } from "../../books/log/ChargeLog.ts"
import { Liabilities } from "../../books/log/Liabilities.ts"
import { LogSettings } from "../../books/log/Settings.ts"
import { UsageNotFound } from "../usage/Problems.ts"
import {
  EntryNotFound,
  LiabilitiesNotFound,
  NoBalanceThen,
  NotInLog,
  NothingCharged,
  PaidByAnother
} from "./Problems.ts"
import type { LiabilityProof, LiabilityStatement, LogKeys, Receipt } from "./Receipt.ts"

export interface ReceiptsContract {
  /** Returns the receipt for a charge to the tenant that paid it. */
  readonly ofCharge: (asked: {
    readonly caller: Pick<Caller, "tenant_id">
    readonly usage_id: string
  }) => Effect.Effect<Receipt, NotInLog | NothingCharged | PaidByAnother | UsageNotFound>
  /** Returns the receipt for one of a tenant's ledger entries, by its number. */
  readonly ofEntry: (asked: {
    readonly tenant_id: TenantId
    readonly number: number
  }) => Effect.Effect<Receipt, EntryNotFound | NotInLog>
  /** Returns the verifier keys of the log and of the configured witnesses. */
  readonly keys: Effect.Effect<LogKeys>
  /** Returns the signed total of all balances at the end of a day, or of the newest day that has one. */
  readonly liabilities: (day: string | undefined) => Effect.Effect<LiabilityStatement, LiabilitiesNotFound>
  /** Returns the proof that a tenant's balance is in that total. */
  readonly liability: (asked: {
    readonly tenant_id: TenantId
    readonly day?: string | undefined
  }) => Effect.Effect<LiabilityProof, LiabilitiesNotFound | NoBalanceThen>
}

export class Receipts extends Context.Tag("tollgate/receipts/Receipts")<Receipts, ReceiptsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Receipts, make))
}

/** The recommended delay before a retry, in seconds. By then, the entry is usually in the log. */
const retryAfter = 2

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const log = yield* ChargeLog
  const liabilities = yield* Liabilities
  const { witnesses } = yield* LogSettings

  const receiptOf = Effect.fnUntraced(function* (entry: Entries.LoggedEntry) {
    const receipt = yield* log.receipt(entry)
    return receipt ?? (yield* new NotInLog({ retry_after: retryAfter }))
  })

  const ofCharge: ReceiptsContract["ofCharge"] = Effect.fn("Receipts.ofCharge")(function* ({ caller, usage_id }) {
    const call = yield* Effect.orDie(Entries.paidCall(sql, usage_id))
    if (call === undefined) return yield* new UsageNotFound({ usage_id })
    if (call.billing_source_tenant_id !== caller.tenant_id) {
      return yield* call.tenant_id === caller.tenant_id ? new PaidByAnother() : new UsageNotFound({ usage_id })
    }
    const entry = yield* Effect.orDie(Entries.entryOfCharge(sql, call))
    return yield* entry === undefined ? new NothingCharged({ usage_id }) : receiptOf(entry)
  })

  const ofEntry: ReceiptsContract["ofEntry"] = Effect.fn("Receipts.ofEntry")(function* ({ number, tenant_id }) {
    const isNumber = Number.isSafeInteger(number) && number > 0
    const entry = isNumber
      ? yield* Effect.orDie(Entries.entryNumbered(sql, billingAccountOf(tenant_id), number))
      : undefined
    return yield* entry === undefined ? new EntryNotFound() : receiptOf(entry)
  })

  const keys = Effect.map(log.keys, (keys): LogKeys => ({
    keys,
    witnesses: witnesses.map(({ key, verifier }) => ({ name: key.name, key: verifier }))
  }))

  const stated: ReceiptsContract["liabilities"] = Effect.fn("Receipts.liabilities")(function* (day) {
    const found = yield* liabilities.statement(day)
    return found ?? (yield* new LiabilitiesNotFound())
  })

  const liability: ReceiptsContract["liability"] = Effect.fn("Receipts.liability")(function* ({ day, tenant_id }) {
    const proof = yield* liabilities.proof(billingAccountOf(tenant_id), yield* stated(day))
    return proof ?? (yield* new NoBalanceThen())
  })

  return { ofCharge, ofEntry, keys, liabilities: stated, liability } satisfies ReceiptsContract
})
