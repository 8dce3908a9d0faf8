/** Compares a vendor's invoice (CSV) with the recorded charges, by day and model. */
import { useMutation } from "@tanstack/react-query"
import { FileUp } from "lucide-react"
import { useState } from "react"
import { resultOf } from "../app/Client.ts"
import type { Schemas } from "../app/Client.ts"
import { bookDay, bookDays, count } from "../moments.ts"
import { nano } from "../money.ts"
import { Button } from "../parts/Button.tsx"
import { FormOf, TextField } from "../parts/Fields.tsx"
import { Money } from "../parts/Money.tsx"
import { Page, Section } from "../parts/Page.tsx"
import { Table } from "../parts/Table.tsx"
import { operatorApi } from "./OperatorSession.ts"
import { Signed } from "./Signed.tsx"
import { operatorTexts as texts } from "../texts/operator.ts"

const t = texts.drift

type Drift = Schemas["OperatorDrift"]
type Row = Drift["rows"][number] & { readonly isTotal?: boolean }

const Rows = ({ of }: { readonly of: Drift }) => {
  const total: Row = {
    ...of.totals,
    day: of.from,
    model: texts.costs.total,
    requests: of.rows.reduce((sum, { requests }) => sum + requests, 0),
    quantity: null,
    isTotal: true
  }
  return (
    <Table<Row>
      caption={t.result}
      rows={[total, ...of.rows]}
      rowKey={({ day, isTotal = false, model }) => `${isTotal} ${day} ${model}`}
      isTotal={({ isTotal = false }) => isTotal}
      columns={[
        {
          id: "model",
          title: texts.field.model,
          card: "title",
          cell: ({ model }) => model
        },
        {
          id: "day",
          title: texts.field.day,
          card: "plain",
          cell: ({ day, isTotal = false }) => (isTotal && of.from !== of.to ? bookDays(of.from, of.to) : bookDay(day))
        },
        {
          id: "requests",
          title: texts.field.requests,
          align: "end",
          needs: "medium",
          cell: ({ requests }) => count(requests)
        },
        ...(of.columns.quantity === null
          ? []
          : [
              {
                id: "quantity",
                title: t.quantity,
                align: "end" as const,
                needs: "medium" as const,
                cell: ({ quantity }: Row) => quantity ?? ""
              }
            ]),
        { id: "theirs", title: t.theirs, align: "end", cell: ({ theirs }) => <Money of={theirs} as="aligned" /> },
        { id: "ours", title: t.ours, align: "end", cell: ({ ours }) => <Money of={ours} as="aligned" /> },
        {
          id: "difference",
          title: t.difference,
          align: "end",
          card: "figure",
          cell: ({ difference }) => <Signed of={nano(difference)} isTrouble />
        }
      ]}
    />
  )
}

const BadLines = ({ of }: { readonly of: Drift }) => (
  <Section title={t.bad} lead={t.badLead(count(of.bad_lines_total))}>
    <Table
      caption={t.bad}
      rows={of.bad_lines}
      rowKey={({ line }) => String(line)}
      columns={[
        { id: "line", title: t.line, cell: ({ line }) => count(line) },
        { id: "why", title: t.why, card: "title", cell: ({ why }) => why }
      ]}
    />
  </Section>
)

const Result = ({ of }: { readonly of: Drift }) => (
  <>
    <Section title={t.result} lead={t.columns(of.columns.day, of.columns.model, of.columns.amount)}>
      <Rows of={of} />
      {of.truncated ? <p className="quiet">{t.truncated}</p> : null}
    </Section>
    {of.bad_lines.length === 0 ? null : <BadLines of={of} />}
  </>
)

export const Drift = () => {
  const [provider, setProvider] = useState("")
  const [csv, setCsv] = useState("")
  const compare = useMutation({
    mutationFn: () =>
      resultOf(
        operatorApi.POST("/v1/operator/drift", {
          params: { query: provider.trim() === "" ? {} : { provider: provider.trim() } },
          body: csv,
          bodySerializer: (text) => text,
          headers: { "content-type": "text/csv" }
        })
      )
  })
  return (
    <Page title={t.title} lead={t.lead}>
      <FormOf
        error={compare.error}
        onSubmit={() => compare.mutate()}
        actions={
          <div className="row">
            <Button type="submit" kind="primary" isPending={compare.isPending} isDisabled={csv.trim() === ""}>
              {t.compare}
            </Button>
          </div>
        }
      >
        <div className="operator-drift-text">
          <TextField name="csv" label={t.paste} help={t.pasteHelp} lines={8} value={csv} onChange={setCsv} />
          <label className="operator-drift-file">
            <span className="button button-plain">
              <FileUp size={15} strokeWidth={1.75} aria-hidden /> {t.file}
            </span>
            <input
              type="file"
              accept=".csv,text/csv,text/plain"
              onChange={({ target }) => {
                const file = target.files?.[0]
                // Reset the input. Otherwise, the user could not choose the same file again.
                void file?.text().then((text) => {
                  setCsv(text)
                  target.value = ""
                })
              }}
            />
          </label>
        </div>
        <div className="operator-drift-provider">
          <TextField
            name="provider"
            label={t.provider}
            help={t.providerHelp}
            value={provider}
            onChange={setProvider}
            maxLength={100}
          />
        </div>
      </FormOf>
      {compare.data === undefined ? null : <Result of={compare.data} />}
    </Page>
  )
}
