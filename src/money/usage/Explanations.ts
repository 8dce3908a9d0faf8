/** Explains a charge by recomputing it from the record and its price version. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer } from "effect"
import type { Caller } from "../../kernel/Caller.ts"
import { fromRow, toDecimal } from "../../kernel/Money.ts"
import * as Price from "../../kernel/Price.ts"
import type { UnitPrice } from "../../kernel/Price.ts"
import { withDimensions } from "../../books/ledger/rows/Dimensions.ts"
import type { Why } from "../../books/ledger/rules/Transaction.ts"
import { because } from "./Explanation.ts"
import type { Explanation } from "./Explanation.ts"
import { billed, priced, unitWords } from "../../books/prices/Lines.ts"
import type { Billed, PriceLine } from "../../books/prices/Lines.ts"
import { PriceVersions } from "../../books/prices/PriceVersions.ts"
import { detailsOf, labelsOf } from "./Records.ts"
import { UsageNotFound } from "./Problems.ts"

export interface ExplanationsContract {
  /** Explains a charge. If `caller` is present, its tenant must have made or paid for the call. The operator omits `caller`. */
  readonly of: (asked: {
    readonly caller?: Pick<Caller, "tenant_id">
    readonly usage_id: string
  }) => Effect.Effect<Explanation, UsageNotFound>
}

export class Explanations extends Context.Tag("tollgate/usage/Explanations")<Explanations, ExplanationsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Explanations, make))
}

interface Row {
  readonly id: string
  readonly at: number
  readonly tenant_id: string
  readonly endpoint: string
  readonly model: string
  readonly provider: string
  readonly success: number
  readonly error_type: string | null
  readonly usage_source: string
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly units: number
  readonly cost: string
  readonly uncollected: string
  readonly reserved: string
  readonly billing_account_id: string
  readonly billing_source_tenant_id: string
  readonly billing_source_kind: "own" | "team"
  readonly billing_source_why: Why | null
  readonly price: string | null
  readonly token_details: string | null
  readonly tags: string
  readonly end_user: string
  readonly run_id: string
  readonly budgets: string | null
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const versions = yield* PriceVersions

  const of: ExplanationsContract["of"] = Effect.fn("Explanations.of")(function* ({ caller, usage_id }) {
    const [row] = yield* Effect.orDie(
      sql<Row>`SELECT r.id, r.at, r.tenant_id, d.endpoint, d.model, d.provider, r.success, r.error_type, r.usage_source,
          r.prompt_tokens, r.completion_tokens, r.units, CAST(r.cost AS TEXT) AS cost,
          CAST(r.uncollected AS TEXT) AS uncollected, CAST(r.reserved AS TEXT) AS reserved, d.billing_account_id,
          d.billing_source_tenant_id, d.billing_source_kind, NULLIF(d.billing_source_why, '') AS billing_source_why,
          NULLIF(d.price, '') AS price, r.token_details, d.tags, d.end_user, d.run_id, r.budgets
        FROM tollgate_usage_records r ${sql.literal(withDimensions)} WHERE r.id = ${usage_id}`
    )
    if (row === undefined) return yield* new UsageNotFound({ usage_id })
    if (caller !== undefined && ![row.tenant_id, row.billing_source_tenant_id].includes(caller.tenant_id)) {
      return yield* new UsageNotFound({ usage_id })
    }
    const lines = row.price === null ? undefined : yield* versions.find(row.price)
    return explain(row, row.price, lines ?? [])
  })

  return { of } satisfies ExplanationsContract
})

const explain = (row: Row, version: string | null, lines: ReadonlyArray<PriceLine>): Explanation => {
  const charged = fromRow(row.cost)
  const uncollected = fromRow(row.uncollected)
  // A failed call is free unless the provider reported usage before the failure.
  const free = row.success === 0 && charged === 0n && uncollected === 0n
  const figures = { ...row, requests: 1, token_details: detailsOf(row) }
  const computed = free || version === null ? charged + uncollected : priced(lines, figures)
  const paid = `${toDecimal(charged)} USD was charged to the ${row.billing_source_kind === "own" ? "caller's own" : "team's"} account`
  const why = row.billing_source_why
  return {
    usage_id: row.id,
    timestamp: row.at,
    endpoint: row.endpoint,
    model: row.model,
    provider: row.provider,
    ...labelsOf(row),
    success: row.success === 1,
    error_type: row.error_type,
    usage_source: row.usage_source,
    price:
      version === null
        ? null
        : {
            version,
            ...(lines[0]?.factors !== undefined && { factors: lines[0].factors }),
            lines: billed(lines, figures).filter(isWorthALine).map(lineOf)
          },
    computed_usd: computed,
    reserved_usd: fromRow(row.reserved),
    charged_usd: charged,
    uncollected_usd: uncollected,
    payer: {
      billing_account_id: row.billing_account_id,
      tenant_id: row.billing_source_tenant_id,
      kind: row.billing_source_kind,
      why,
      because: why === null ? "" : because[why]
    },
    summary: free
      ? `The call failed (${row.error_type ?? "unknown reason"}), and failed calls cost nothing.`
      : `${paid}${why === null ? "" : `, since ${because[why]}`}.` +
        (uncollected === 0n ? "" : ` ${toDecimal(uncollected)} USD more was due, but the balance did not cover it.`) +
        (row.usage_source === "estimated"
          ? " The provider's figures were missing or implausible, so these figures are estimates."
          : "")
  }
}

const totals: ReadonlySet<string> = new Set(["prompt_tokens", "completion_tokens", "units", "requests"])

/** Returns whether to show a line. Separately billed units appear only if the call used any. */
const isWorthALine = ({ line, units }: Billed): boolean => units > 0 || totals.has(line.quantity)

const lineOf = ({ line, price, units }: Billed) => ({
  quantity: units,
  unit: unitWords[line.quantity] ?? line.unit,
  ...(line.above !== undefined && { above_prompt_tokens: line.above }),
  unit_price_usd: Price.toDecimal(price),
  amount_usd: Price.toDecimal((BigInt(units) * price) as UnitPrice)
})
