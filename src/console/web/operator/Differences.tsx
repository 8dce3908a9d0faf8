/** Lists the differences between a vendor's bill and the metered calls, down to the call if the vendor lists calls. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { FileSearch, X } from "lucide-react"
import { useState } from "react"
import { resultOf } from "../app/Client.ts"
import type { Schemas } from "../app/Client.ts"
import { bookDay, count } from "../moments.ts"
import { nano } from "../money.ts"
import { Button } from "../parts/Button.tsx"
import { Choice } from "../parts/Choice.tsx"
import { Section } from "../parts/Page.tsx"
import { Answer, Empty } from "../parts/States.tsx"
import { Pages, Table } from "../parts/Table.tsx"
import type { Column } from "../parts/Table.tsx"
import { reconciliationTexts as t } from "../texts/reconciliations.ts"
import { inWords, texts as common } from "../texts.ts"
import { operatorTexts } from "../texts/operator.ts"
import { CallDialog } from "../views/usage/CallDialog.tsx"
import { useCursors } from "./Asking.ts"
import { explain } from "./Lines.tsx"
import { operatorApi } from "./OperatorSession.ts"
import type { Cause, CauseSum } from "./reconciled.ts"
import { Signed } from "./Signed.tsx"

type Difference = Schemas["ReconciledDifference"]

interface DifferencesQuery {
  readonly vendor: string
  readonly from: string
  readonly to: string
  readonly cause: Cause | undefined
  readonly model: string | undefined
}

const perPage = 25

const useDifferences = ({ cause, from, model, to, vendor }: DifferencesQuery) => {
  const cursors = useCursors(JSON.stringify([vendor, from, to, cause, model]))
  const { cursor } = cursors
  const page = useQuery({
    queryKey: ["operator", "differences", vendor, from, to, cause, model, cursor],
    queryFn: () =>
      resultOf(
        operatorApi.GET("/v1/operator/reconciliations/{vendor}/differences", {
          params: {
            path: { vendor },
            query: {
              from,
              to,
              limit: String(perPage),
              ...(cause !== undefined && { cause }),
              ...(model !== undefined && { model }),
              ...(cursor !== undefined && { before: cursor })
            }
          }
        })
      ),
    placeholderData: keepPreviousData
  })
  return { cursors, page }
}

const columns: ReadonlyArray<Column<Difference>> = [
  {
    id: "model",
    title: operatorTexts.field.model,
    card: "title",
    cell: ({ model, vendor_request }) => (
      <span className="operator-lines">
        <span className="operator-strong">{model}</span>
        {vendor_request === null ? null : (
          <code className="quiet small" data-tip={t.vendorRequest}>
            {vendor_request}
          </code>
        )}
      </span>
    )
  },
  { id: "day", title: operatorTexts.field.day, card: "plain", cell: ({ day }) => bookDay(day) },
  {
    id: "cause",
    title: t.cause,
    card: "plain",
    cell: ({ cause, note }) => (
      <span className="operator-lines">
        {t.causes[cause].name}
        {note === null ? null : <span className="quiet small">{note}</span>}
      </span>
    )
  },
  { id: "kind", title: t.kind, needs: "medium", cell: ({ kind }) => (kind === "all" ? t.allKinds : inWords(kind)) },
  {
    id: "quantity",
    title: t.quantity,
    align: "end",
    needs: "medium",
    cell: ({ quantity }) =>
      quantity === null ? <span className="quiet">{operatorTexts.ago.none}</span> : count(quantity)
  },
  {
    id: "amount",
    title: t.difference,
    align: "end",
    card: "figure",
    cell: ({ amount, cause }) => <Signed of={nano(amount)} isTrouble={cause !== "rounding"} />
  }
]

const Rows = ({ isStale, rows }: { readonly rows: ReadonlyArray<Difference>; readonly isStale: boolean }) => {
  const [opened, open] = useState<string>()
  const actions: Column<Difference> = {
    id: "actions",
    title: operatorTexts.field.actions,
    isActions: true,
    cell: ({ usage_id }) =>
      usage_id === null ? null : (
        <Button kind="ghost" icon={FileSearch} aria-label={t.openCall(usage_id)} onPress={() => open(usage_id)} />
      )
  }
  const keys = new Map(rows.map((row, index) => [row, String(index)]))
  return (
    <>
      <Table<Difference>
        caption={t.differences}
        isStale={isStale}
        rows={rows}
        rowKey={(row) => keys.get(row)!}
        columns={rows.some(({ usage_id }) => usage_id !== null) ? [...columns, actions] : columns}
      />
      <CallDialog id={opened} explain={explain} onClose={() => open(undefined)} />
    </>
  )
}

interface DifferencesProps {
  readonly asked: DifferencesQuery
  /** The causes that occur, for the filter. */
  readonly causes: ReadonlyArray<CauseSum>
  readonly change: (change: { readonly cause?: Cause | undefined; readonly model?: string | undefined }) => void
}

export const Differences = ({ asked, causes, change }: DifferencesProps) => {
  const { cursors, page } = useDifferences(asked)
  const { cause, model } = asked
  return (
    <Section
      title={t.differences}
      lead={t.differencesLead}
      actions={
        <>
          {model === undefined ? null : (
            <Button
              icon={X}
              aria-label={common.usage.without(`${operatorTexts.field.model}: ${model}`)}
              onPress={() => change({ model: undefined })}
            >
              {model}
            </Button>
          )}
          <Choice
            label={t.cause}
            value={cause ?? "all"}
            options={[
              ["all", common.app.all] as const,
              ...causes.map(({ cause }) => [cause, t.causes[cause].name] as const)
            ]}
            onChange={(one) => change({ cause: one === "all" ? undefined : one })}
          />
        </>
      }
    >
      <Answer of={page} lines={8}>
        {({ next, records }) => (
          <>
            {records.length === 0 ? (
              <Empty title={next === null ? t.noDifferences : t.noneHere} />
            ) : (
              <Rows rows={records} isStale={page.isPlaceholderData} />
            )}
            {cursors.hasPages(next) ? <Pages {...cursors.pages(next)} /> : null}
          </>
        )}
      </Answer>
    </Section>
  )
}
