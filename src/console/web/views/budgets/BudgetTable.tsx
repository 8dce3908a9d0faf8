/** A table of budgets with bars and actions. */
import { ArrowUpFromLine, Pencil, Trash2 } from "lucide-react"
import { percent } from "../../moments.ts"
import { nano } from "../../money.ts"
import { Badge } from "../../parts/Badge.tsx"
import { Button } from "../../parts/Button.tsx"
import { Money } from "../../parts/Money.tsx"
import { Table } from "../../parts/Table.tsx"
import type { Column } from "../../parts/Table.tsx"
import { When } from "../../parts/When.tsx"
import { budgetTexts as texts } from "../../texts/budgets.ts"
import type { Acting, Budget } from "./BudgetDialogs.tsx"
import { Gauges } from "./Gauges.tsx"

type Condition = keyof Budget["applies_to"]

/** Returns the display name of a condition's value. Only members and keys have names; other values are returned unchanged. */
export type NameOf = (condition: Condition, value: string) => string

const AppliesTo = ({ nameOf, of }: { readonly of: Budget; readonly nameOf: NameOf }) => {
  const conditions = Object.entries(of.applies_to) as ReadonlyArray<readonly [Condition, string]>
  if (conditions.length === 0) return <span className="quiet">{texts.everything}</span>
  return (
    <span className="budgets-lines">
      {conditions.map(([condition, value]) => (
        <span key={condition}>
          <span className="quiet">{texts.condition[condition]}</span> {nameOf(condition, value)}
        </span>
      ))}
    </span>
  )
}

const Renews = ({ of }: { readonly of: Budget }) => (
  <span className="budgets-lines">
    {of.renews_at === null ? <span className="quiet">{texts.never}</span> : <When at={of.renews_at} as="moment" />}
    {of.raises.map(({ created_at, until, usd }) => (
      <span key={`${created_at} ${until}`} className="small">
        <Badge tone="accent">{texts.raised}</Badge> +<Money of={usd} /> → <When at={until} as="day" />
      </span>
    ))}
  </span>
)

const Notices = ({ at }: { readonly at: Budget["notify_at"] }) =>
  at.length === 0 ? <span className="quiet">{texts.noNotices}</span> : at.map(percent).join(", ")

export const raisedOf = ({ raises }: Budget): bigint => raises.reduce((sum, { usd }) => sum + nano(usd), 0n)

interface BudgetTableProps<B extends Budget> {
  readonly budgets: ReadonlyArray<B>
  readonly nameOf: NameOf
  readonly canEdit: (budget: B) => boolean
  readonly act: (acting: Acting) => void
  /** A column after the name. */
  readonly extra?: Column<B>
}

const actions = [
  ["raise", ArrowUpFromLine],
  ["change", Pencil],
  ["delete", Trash2]
] as const

const columnsOf = <B extends Budget>({
  act,
  canEdit,
  extra,
  nameOf
}: BudgetTableProps<B>): ReadonlyArray<Column<B>> => [
  {
    id: "name",
    title: texts.name,
    card: "title",
    cell: ({ by_operator, name }) => (
      <span className="budgets-lines">
        {name}
        {by_operator && extra === undefined ? <span className="quiet small">{texts.byOperator}</span> : null}
      </span>
    )
  },
  ...(extra === undefined ? [] : [extra]),
  { id: "applies", title: texts.appliesTo, cell: (budget) => <AppliesTo of={budget} nameOf={nameOf} /> },
  { id: "used", title: texts.used, cell: (budget) => <Gauges of={budget} raised={raisedOf(budget)} /> },
  { id: "period", title: texts.period, needs: "medium", cell: ({ period }) => texts.periods[period] },
  { id: "mode", title: texts.mode, needs: "wide", cell: ({ mode }) => texts.modes[mode] },
  { id: "notices", title: texts.notices, needs: "wide", cell: ({ notify_at }) => <Notices at={notify_at} /> },
  { id: "renews", title: texts.renews, cell: (budget) => <Renews of={budget} /> },
  {
    id: "actions",
    title: texts.actions,
    isActions: true,
    cell: (budget) =>
      canEdit(budget)
        ? actions
            .filter(([kind]) => kind !== "raise" || budget.limit.usd !== undefined)
            .map(([kind, icon]) => (
              <Button
                key={kind}
                kind="ghost"
                icon={icon}
                aria-label={`${texts[kind]}: ${budget.name}`}
                onPress={() => act({ kind, budget })}
              />
            ))
        : null
  }
]

export const BudgetTable = <B extends Budget>(props: BudgetTableProps<B>) => (
  <Table caption={texts.title} columns={columnsOf(props)} rows={props.budgets} rowKey={({ id }) => id} />
)
