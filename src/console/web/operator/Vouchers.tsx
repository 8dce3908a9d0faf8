/** Vouchers. The operator can create and revoke codes. A code is shown only once. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { Ban } from "lucide-react"
import { resultOf } from "../app/Client.ts"
import type { Schemas } from "../app/Client.ts"
import { count } from "../moments.ts"
import { Button } from "../parts/Button.tsx"
import { MoneyField, TextField } from "../parts/Fields.tsx"
import { Money } from "../parts/Money.tsx"
import { Page } from "../parts/Page.tsx"
import { Answer, Empty } from "../parts/States.tsx"
import { Pages, Table } from "../parts/Table.tsx"
import { operatorTexts } from "../texts/operator.ts"
import { provisionTexts } from "../texts/provision.ts"
import { decimal, serializer } from "./amounts.ts"
import { useCursors } from "./Asking.ts"
import { useEnding } from "./Ending.tsx"
import { Maybe } from "./Lines.tsx"
import { Making } from "./Making.tsx"
import { operatorApi } from "./OperatorSession.ts"
import { endOf } from "./Provision.tsx"

const f = operatorTexts.field
const t = provisionTexts.vouchers

type Voucher = Schemas["Voucher"]

const MakeVouchers = () => (
  <Making
    title={t.make}
    first={{ amount: "", uses: "1", count: "1", note: "", lastDay: "" }}
    fields={(field) => (
      <>
        <div className="form-row">
          <MoneyField {...field("amount")} label={t.amount} isRequired autoFocus maxLength={24} />
          <TextField {...field("count")} label={t.count} inputMode="numeric" pattern="[0-9]+" isRequired />
          <TextField
            {...field("uses")}
            label={t.usesMax}
            help={t.usesHelp}
            inputMode="numeric"
            pattern="[0-9]+"
            isRequired
          />
        </div>
        <TextField {...field("note")} label={t.note} help={t.noteHelp} maxLength={200} />
        <TextField {...field("lastDay")} label={t.lastDay} help={provisionTexts.keys.lastDayHelp} type="date" />
      </>
    )}
    make={(draft) => {
      const typed = decimal(draft.amount)
      const body = {
        amount_usd: Number(typed),
        uses: Number(draft.uses),
        count: Number(draft.count),
        ...(draft.note.trim() !== "" && { description: draft.note.trim() }),
        ...(draft.lastDay !== "" && { expires_at: endOf(draft.lastDay) })
      }
      return resultOf(
        operatorApi.POST("/v1/operator/vouchers", { body, bodySerializer: serializer({ amount_usd: typed }) })
      )
    }}
    said={({ vouchers }) => t.made(vouchers.length)}
    secret={({ vouchers }) => vouchers.map(({ code }) => code).join("\n")}
  />
)

const Lines = ({ onEnd, rows }: { readonly rows: ReadonlyArray<Voucher>; readonly onEnd: (row: Voucher) => void }) => (
  <Table<Voucher>
    caption={t.title}
    rows={rows}
    rowKey={({ id }) => id}
    columns={[
      { id: "code", title: t.code, card: "title", cell: ({ code_prefix }) => <code>{code_prefix}…</code> },
      { id: "note", title: t.note, card: "plain", cell: ({ description }) => description },
      { id: "uses", title: t.uses, cell: ({ uses, uses_max }) => t.of(count(uses), count(uses_max)) },
      { id: "status", title: f.status, cell: ({ status }) => t.states[status] },
      { id: "ends", title: f.ends, needs: "medium", cell: ({ expires_at }) => <Maybe at={expires_at} /> },
      {
        id: "amount",
        title: t.amount,
        align: "end",
        card: "figure",
        cell: ({ amount_usd }) => <Money of={amount_usd} as="aligned" />
      },
      {
        id: "actions",
        title: f.actions,
        isActions: true,
        cell: (row) =>
          row.status === "active" ? (
            <Button kind="ghost" icon={Ban} aria-label={`${t.end}: ${row.code_prefix}`} onPress={() => onEnd(row)} />
          ) : null
      }
    ]}
  />
)

export const Vouchers = () => {
  const { cursor, hasPages, pages } = useCursors("vouchers")
  const vouchers = useQuery({
    queryKey: ["operator", "vouchers", cursor],
    queryFn: () =>
      resultOf(
        operatorApi.GET("/v1/operator/vouchers", {
          params: { query: { limit: "25", ...(cursor !== undefined && { before: cursor }) } }
        })
      ),
    placeholderData: keepPreviousData
  })
  const [end, dialog] = useEnding<Voucher>({
    title: ({ code_prefix }) => t.endTitle(code_prefix),
    text: t.endText,
    action: t.end,
    end: ({ id }) =>
      resultOf(operatorApi.DELETE("/v1/operator/vouchers/{voucher_id}", { params: { path: { voucher_id: id } } }))
  })
  return (
    <Page title={t.title} lead={t.lead} actions={<MakeVouchers />}>
      <Answer of={vouchers} lines={6}>
        {({ next, records }) =>
          records.length === 0 ? (
            <Empty title={t.none} />
          ) : (
            <>
              <Lines rows={records} onEnd={end} />
              {hasPages(next) ? <Pages {...pages(next)} /> : null}
            </>
          )
        }
      </Answer>
      {dialog}
    </Page>
  )
}
