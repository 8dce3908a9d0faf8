// Makes a charge through our writer. Like the gate, it first reserves and then settles.
import { Effect } from "effect"
import type { CallOutcome } from "../../src/books/ledger/rules/Transaction.ts"
import type { WriterContract } from "../../src/books/ledger/write/Writer.ts"
import type { Line } from "./store.ts"

/**
 * Builds the admission that the gate would pass for a line. All calls of a line must pass the same object, because the writer uses it as the cache
 * key for their shared data.
 */
const admissionOf = ({ account, application, endpoint, model, person, provider, tenant, ...labels }: Line) => ({
  sources: [{ billing_account_id: account, tenant_id: tenant, kind: "own", why: "own" }] as const,
  facts: {
    account_id: person,
    tenant_id: tenant,
    application_id: application,
    usage_type: "inference",
    endpoint,
    model,
    provider,
    ...labels
  } as const
})

export interface Charging {
  /** The call's id, followed by the index of its line in `lines`. */
  readonly call: string
  readonly line: number
  readonly bound: bigint
  readonly outcome: CallOutcome
  /** Called with the balance after the charge, in nano-USD. */
  readonly onCharged: (balance: bigint) => void
}

export const chargesAt = (writer: WriterContract, lines: ReadonlyArray<Line>, run: string) => {
  const admissions = lines.map(admissionOf)
  return ({ bound, call, line, onCharged, outcome }: Charging) => {
    const { facts, sources } = admissions[line]!
    const reserve = { _tag: "Reserve", call, sources, least: bound, most: bound, run, facts } as const
    const settle = { _tag: "Settle", call, outcome } as const
    const settled = writer.submit({ postings: [settle], statements: [] })
    return Effect.map(
      Effect.flatMap(writer.submit({ postings: [reserve], statements: [] }), () => settled),
      ([result]) => {
        if (result._tag === "Settled") onCharged(result.balance)
      }
    )
  }
}
