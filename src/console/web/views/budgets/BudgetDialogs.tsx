/** The dialogs that create, change, raise and delete a budget, for tenants and the operator. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import type { ReactNode } from "react"
import type { Schemas } from "../../app/Client.ts"
import { Confirm } from "../../parts/Dialog.tsx"
import { MoneyField, SelectField, TextField } from "../../parts/Fields.tsx"
import { FormDialog } from "../../parts/FormDialog.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { budgetTexts as texts } from "../../texts/budgets.ts"
import { units } from "./Gauges.tsx"

export type Budget = Schemas["Budget"]
export type NewBudget = Schemas["NewBudget"]

/** The form's values as typed, by request field. */
const empty = {
  name: "",
  "limit.usd": "",
  "limit.tokens": "",
  "limit.requests": "",
  "limit.concurrent": "",
  period: "month",
  mode: "refuse",
  notify_at: "80, 100",
  "applies_to.member": "",
  "applies_to.key": "",
  "applies_to.model": "",
  "applies_to.provider": "",
  "applies_to.capability": "",
  "applies_to.tag": "",
  "applies_to.end_user": "",
  scope: "everyone",
  scopeId: ""
}
export type Draft = typeof empty

export interface FieldOf {
  <K extends keyof Draft>(
    name: K
  ): { readonly name: K; readonly value: string; readonly onChange: (value: string) => void }
}

const conditions = ["model", "provider", "capability", "tag", "end_user"] as const
const conditionsAndOwners = ["member", "key", ...conditions] as const

/** Formats thresholds as percentages: `[0.5, 1]` becomes `50, 100`. */
const percentages = (thresholds: Budget["notify_at"]): string =>
  thresholds.map((share) => String(Math.round(share * 1e8) / 1e6)).join(", ")

const typedThresholds = ({ notify_at }: Draft): ReadonlyArray<number> =>
  notify_at.split(",").flatMap((typed) => {
    const text = typed.replace("%", "").trim()
    return text === "" ? [] : [Number(text) / 100]
  })

/** Matches a list of percentages up to 100, with or without percent signs. */
const percentagesPattern = String.raw`\s*((100|[0-9]{1,2}(\.[0-9]+)?)\s*%?\s*(,\s*(?=[0-9])|$))*`

const draftOf = ({ limit, mode, name, notify_at }: Budget): Draft => ({
  ...empty,
  name,
  mode,
  notify_at: percentages(notify_at),
  ...Object.fromEntries(units.map((unit) => [`limit.${unit}`, limit[unit] === undefined ? "" : String(limit[unit])]))
})

const typedLimit = (draft: Draft, unit: (typeof units)[number]): number | undefined => {
  const typed = draft[`limit.${unit}`].trim()
  return typed === "" ? undefined : Number(typed)
}

const bodyOf = (draft: Draft): NewBudget => ({
  name: draft.name.trim(),
  limit: Object.fromEntries(
    units.flatMap((unit) => {
      const most = typedLimit(draft, unit)
      return most === undefined ? [] : [[unit, most]]
    })
  ),
  period: draft.period as NewBudget["period"],
  mode: draft.mode as Budget["mode"],
  notify_at: [...typedThresholds(draft)],
  applies_to: Object.fromEntries(
    conditionsAndOwners.flatMap((name) => {
      const typed = draft[`applies_to.${name}`].trim()
      return typed === "" ? [] : [[name, typed]]
    })
  )
})

/** Builds the request body for a change. An empty field removes the limit. Thresholds are sent only if they changed. */
const changeOf = (draft: Draft, before: Draft): Schemas["BudgetChange"] => ({
  name: draft.name.trim(),
  mode: draft.mode as Budget["mode"],
  ...(draft.notify_at !== before.notify_at && { notify_at: [...typedThresholds(draft)] }),
  limit: Object.fromEntries(units.map((unit) => [unit, typedLimit(draft, unit) ?? null]))
})

const Limits = ({ field }: { readonly field: FieldOf }) => (
  <>
    <div className="form-row">
      <MoneyField {...field("limit.usd")} label={texts.units.usd} help={texts.limitHelp} />
      <TextField {...field("limit.tokens")} label={texts.units.tokens} inputMode="numeric" pattern="[0-9]+" />
    </div>
    <div className="form-row">
      <TextField {...field("limit.requests")} label={texts.units.requests} inputMode="numeric" pattern="[0-9]+" />
      <TextField {...field("limit.concurrent")} label={texts.units.concurrent} inputMode="numeric" pattern="[0-9]+" />
    </div>
  </>
)

const Mode = ({ field }: { readonly field: FieldOf }) => (
  <SelectField {...field("mode")} label={texts.mode} options={Object.entries(texts.modes)} />
)

const Thresholds = ({ field }: { readonly field: FieldOf }) => (
  <TextField
    {...field("notify_at")}
    label={texts.notices}
    help={texts.noticesHelp}
    pattern={percentagesPattern}
    behind="%"
    maxLength={100}
  />
)

const Conditions = ({ field }: { readonly field: FieldOf }) =>
  conditions.map((name) => (
    <TextField
      key={name}
      {...field(`applies_to.${name}`)}
      label={texts.condition[name]}
      maxLength={200}
      {...(name === "tag" && { help: texts.tagHelp })}
    />
  ))

export interface BudgetApi {
  readonly create: (body: NewBudget, draft: Draft) => Promise<unknown>
  readonly change: (budget_id: string, body: Schemas["BudgetChange"]) => Promise<unknown>
  readonly remove: (budget_id: string) => Promise<unknown>
  readonly raise: (budget_id: string, body: Schemas["BudgetRaise"]) => Promise<unknown>
  /** The queries to invalidate after a change. */
  readonly queryKey: ReadonlyArray<string>
}

interface DialogOf {
  readonly ways: BudgetApi
  readonly onClose: () => void
}

/** Returns a mutation that refreshes the budgets, confirms the change and closes the dialog. */
const useAct = <Variables = void,>(
  { onClose, ways }: DialogOf,
  mutationFn: (variables: Variables) => Promise<unknown>,
  said: string
) => {
  const queries = useQueryClient()
  return useMutation({
    mutationFn,
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ways.queryKey })
      toast(said)
      onClose()
    }
  })
}

const useDraft = (first: Draft): readonly [Draft, FieldOf] => {
  const [draft, set] = useState(first)
  return [draft, (name) => ({ name, value: draft[name], onChange: (value) => set({ ...draft, [name]: value }) })]
}

interface MakeProps extends DialogOf {
  readonly first?: Partial<Draft>
  /** Renders the fields that select whose calls the budget counts. */
  readonly owners: (field: FieldOf, draft: Draft) => ReactNode
}

export const MakeBudget = ({ first = {}, owners, ...of }: MakeProps) => {
  const [draft, field] = useDraft({ ...empty, ...first })
  const make = useAct(of, () => of.ways.create(bodyOf(draft), draft), texts.made(draft.name.trim()))
  return (
    <FormDialog
      title={texts.make}
      action={texts.make}
      error={make.error}
      isPending={make.isPending}
      onSubmit={() => make.mutate()}
      onClose={of.onClose}
    >
      <TextField {...field("name")} label={texts.name} isRequired autoFocus maxLength={100} />
      <Limits field={field} />
      <div className="form-row">
        <SelectField {...field("period")} label={texts.period} options={Object.entries(texts.periods)} />
        <Mode field={field} />
      </div>
      <Thresholds field={field} />
      {owners(field, draft)}
      <Conditions field={field} />
    </FormDialog>
  )
}

type DialogOfOne = DialogOf & { readonly of: Budget }

const Change = ({ of, ...dialog }: DialogOfOne) => {
  const [draft, field] = useDraft(draftOf(of))
  const change = useAct(dialog, () => dialog.ways.change(of.id, changeOf(draft, draftOf(of))), texts.saved)
  return (
    <FormDialog
      title={texts.changeTitle(of.name)}
      action={texts.save}
      error={change.error}
      isPending={change.isPending}
      onSubmit={() => change.mutate()}
      onClose={dialog.onClose}
    >
      <TextField {...field("name")} label={texts.name} isRequired autoFocus maxLength={100} />
      <Limits field={field} />
      <Mode field={field} />
      <Thresholds field={field} />
    </FormDialog>
  )
}

const dayLong = 86_400_000

const Raise = ({ of, ...dialog }: DialogOfOne) => {
  const [usd, setUsd] = useState("")
  const [lastDay, setLastDay] = useState("")
  const until = () => new Date(Date.parse(`${lastDay}T00:00:00Z`) + dayLong).toISOString()
  const raise = useAct(dialog, () => dialog.ways.raise(of.id, { usd: Number(usd), until: until() }), texts.saved)
  return (
    <FormDialog
      title={texts.raiseTitle(of.name)}
      action={texts.raise}
      error={raise.error}
      isPending={raise.isPending}
      onSubmit={() => raise.mutate()}
      onClose={dialog.onClose}
    >
      <MoneyField name="usd" label={texts.raiseBy} value={usd} onChange={setUsd} isRequired autoFocus />
      <TextField
        name="until"
        label={texts.until}
        help={texts.untilHelp}
        type="date"
        value={lastDay}
        onChange={setLastDay}
        isRequired
      />
    </FormDialog>
  )
}

const Remove = ({ of, ...dialog }: DialogOfOne) => {
  const remove = useAct(dialog, () => dialog.ways.remove(of.id), texts.deleted(of.name))
  return (
    <Confirm
      title={texts.deleteTitle(of.name)}
      action={texts.delete}
      isOpen
      isPending={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate()}
      onClose={dialog.onClose}
    >
      {texts.deleteText}
    </Confirm>
  )
}

export type Acting = { readonly kind: "change" | "raise" | "delete"; readonly budget: Budget } | undefined

const dialogs = { change: Change, raise: Raise, delete: Remove } as const

export const BudgetDialog = ({ acting, ...of }: DialogOf & { readonly acting: Acting }) => {
  if (acting === undefined) return null
  const Chosen = dialogs[acting.kind]
  return <Chosen key={acting.budget.id} of={acting.budget} {...of} />
}
