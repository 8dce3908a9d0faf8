/** A table of calls. */
import { Badge } from "../../parts/Badge.tsx"
import { Money } from "../../parts/Money.tsx"
import { Table } from "../../parts/Table.tsx"
import type { Column, Sorting } from "../../parts/Table.tsx"
import { When } from "../../parts/When.tsx"
import type { Schemas } from "../../app/Client.ts"
import { nano } from "../../money.ts"
import { count, duration } from "../../moments.ts"
import { inWords, texts } from "../../texts.ts"

export type Call = Schemas["UsageRecord"]
export type CallSort = "timestamp" | "cost" | "total_tokens" | "latency"

const State = ({ of }: { readonly of: Call }) =>
  of.success ? (
    of.uncollected !== undefined && nano(of.uncollected) > 0n ? (
      <Badge tone="warn">{texts.usage.uncollected}</Badge>
    ) : (
      <span className="quiet table-usual">{texts.usage.ok}</span>
    )
  ) : (
    <Badge tone="bad">{inWords(of.error_type ?? texts.usage.failed)}</Badge>
  )

const tokensOf = ({ completion_tokens, prompt_tokens, total_tokens }: Call) =>
  total_tokens === 0 ? (
    <span className="quiet">{"\u2013"}</span>
  ) : (
    <span data-tip={`${texts.usage.promptCompletion}: ${count(prompt_tokens)} + ${count(completion_tokens)}`}>
      {count(total_tokens)}
    </span>
  )

const columns: ReadonlyArray<Column<Call, CallSort>> = [
  {
    id: "when",
    title: texts.usage.when,
    card: "plain",
    sort: "timestamp",
    cell: ({ timestamp }) => <When at={timestamp} as="moment" />
  },
  {
    id: "model",
    title: texts.usage.model,
    card: "title",
    cell: ({ model }) => <span className="call-model">{model}</span>
  },
  {
    id: "endpoint",
    title: texts.usage.endpoint,
    card: "plain",
    needs: "medium",
    cell: ({ endpoint }) => <span className="quiet">{endpoint}</span>
  },
  { id: "state", title: texts.usage.state, card: "plain", cell: (row) => <State of={row} /> },
  { id: "tokens", title: texts.usage.tokens, align: "end", needs: "medium", sort: "total_tokens", cell: tokensOf },
  {
    id: "latency",
    title: texts.usage.latency,
    align: "end",
    card: "plain",
    needs: "medium",
    sort: "latency",
    cell: ({ latency }) => duration(latency)
  },
  {
    id: "cost",
    title: texts.usage.cost,
    align: "end",
    card: "figure",
    sort: "cost",
    cell: ({ cost }) => <Money of={cost} as="aligned" />
  }
]

interface CallTableProps {
  readonly calls: ReadonlyArray<Call>
  readonly onOpen: (call: Call) => void
  readonly sorting?: Sorting<CallSort>
  readonly onSort?: (sorting: Sorting<CallSort>) => void
  readonly isStale?: boolean
}

export const CallTable = ({ calls, ...props }: CallTableProps) => (
  <Table caption={texts.usage.records} columns={columns} rows={calls} rowKey={({ id }) => id} {...props} />
)
