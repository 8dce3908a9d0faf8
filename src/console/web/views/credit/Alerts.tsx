/** Low-balance alerts: their thresholds, their state, and the addresses that receive emails. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useBillingAccount } from "../../app/Asking.ts"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { exact, nano, usd } from "../../money.ts"
import type { Usd } from "../../money.ts"
import { Badge } from "../../parts/Badge.tsx"
import type { Tone } from "../../parts/Badge.tsx"
import { Button } from "../../parts/Button.tsx"
import { FormDialog } from "../../parts/FormDialog.tsx"
import { CheckField, MoneyField, TextField } from "../../parts/Fields.tsx"
import { Facts, Section } from "../../parts/Page.tsx"
import { Answer } from "../../parts/States.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { creditTexts } from "../../texts/credit.ts"
import { reloadKey, useManages, useReload } from "./asking.ts"
import type { Reload } from "./asking.ts"

type State = "on" | "below" | "off"
const tones: Readonly<Record<State, Tone>> = { on: "good", below: "warn", off: "plain" }

const stateOf = ({ enabled, warn_threshold_usd }: Reload["alerts"], available: bigint | undefined): State => {
  if (!enabled || warn_threshold_usd === null || warn_threshold_usd === undefined) return "off"
  return available !== undefined && available < nano(warn_threshold_usd) ? "below" : "on"
}

interface WordsProps {
  readonly of: Reload["alerts"]
  /** Whether an alert was sent. The balance must rise before the next one. */
  readonly isWarned: boolean
  readonly available: bigint | undefined
  readonly emails: ReadonlyArray<string>
}

const AlertSummary = ({ available, emails, isWarned, of: alerts }: WordsProps) => {
  const state = stateOf(alerts, available)
  if (state === "off") return <p>{creditTexts.alertsOff}</p>
  const warn: Usd = alerts.warn_threshold_usd!
  const rearm = alerts.rearm_threshold_usd ?? warn
  const left = available === undefined ? undefined : available - nano(warn)
  const next = left === undefined || left < 0n ? undefined : creditTexts.reloadNextIdle(exact(usd(left)))
  return (
    <div className="stack">
      <p>
        {creditTexts.alertsRule(exact(warn))} {nano(rearm) > nano(warn) ? creditTexts.alertsRearm(exact(rearm)) : ""}
      </p>
      <Facts
        of={[
          [
            creditTexts.reloadNext,
            isWarned
              ? creditTexts.alertsBelow(exact(warn), exact(rearm))
              : (next ?? creditTexts.alertsUnsent(exact(warn)))
          ],
          [creditTexts.emails, emails.length === 0 ? creditTexts.emailsNone : emails.join(", ")]
        ]}
      />
    </div>
  )
}

interface SettingsProps {
  readonly of: Reload
  readonly emails: ReadonlyArray<string>
  readonly onClose: () => void
}

const amountOf = (text: string): number | null => (text.trim() === "" ? null : Number(text))
const textOf = (amount: Usd | null | undefined): string =>
  amount === null || amount === undefined ? "" : usd(nano(amount))

/** Saves the alerts and the billing emails. The request repeats the auto-reload settings, because they share a resource with the alerts. */
const useSave = (of: Reload, onDone: () => void) => {
  const tenant_id = tenantId()
  const queries = useQueryClient()
  const params = { path: { tenant_id } }
  return useMutation({
    mutationFn: async (change: { readonly alerts: Reload["alerts"]; readonly billing_emails: Array<string> }) => {
      const { amount_credits, enabled, payment_method_id, threshold_usd } = of.auto_reload
      const auto_reload = { amount_credits, enabled, payment_method_id, threshold_usd }
      const body: Schemas["AutoReloadChange"] = { auto_reload, alerts: change.alerts }
      await resultOf(
        api.PATCH("/v1/tenants/{tenant_id}/billing", { params, body: { billing_emails: change.billing_emails } })
      )
      return resultOf(api.PUT("/v1/tenants/{tenant_id}/billing/auto-reload", { params, body }))
    },
    onSuccess: (changed) => {
      queries.setQueryData(reloadKey(tenant_id), changed)
      void queries.invalidateQueries({ queryKey: ["balance"] })
      toast(creditTexts.saved)
      onDone()
    }
  })
}

const Settings = ({ emails: before, of, onClose }: SettingsProps) => {
  const [enabled, setEnabled] = useState(true)
  const [warn, setWarn] = useState(textOf(of.alerts.warn_threshold_usd) || "5")
  const [rearm, setRearm] = useState(textOf(of.alerts.rearm_threshold_usd))
  const [emails, setEmails] = useState(before.join(", "))
  const save = useSave(of, onClose)
  const submit = (): void =>
    save.mutate({
      alerts: { enabled, warn_threshold_usd: amountOf(warn), rearm_threshold_usd: amountOf(rearm) },
      billing_emails: emails.split(/[\s,;]+/).filter((one) => one !== "")
    })
  return (
    <FormDialog
      title={creditTexts.alerts}
      action={creditTexts.save}
      error={save.error}
      isPending={save.isPending}
      onSubmit={submit}
      onClose={onClose}
    >
      <CheckField label={creditTexts.alertsEnabled} value={enabled} onChange={setEnabled} />
      <div className="form-row">
        <MoneyField
          name="alerts.warn_threshold_usd"
          label={creditTexts.warn}
          value={warn}
          onChange={setWarn}
          isRequired={enabled}
          autoFocus
        />
        <MoneyField
          name="alerts.rearm_threshold_usd"
          label={creditTexts.rearm}
          help={creditTexts.rearmHelp}
          value={rearm}
          onChange={setRearm}
        />
      </div>
      <TextField
        name="billing_emails"
        label={creditTexts.emails}
        help={creditTexts.emailsHelp}
        value={emails}
        onChange={setEmails}
      />
    </FormDialog>
  )
}

export const Alerts = () => {
  const reload = useReload()
  const { data: account } = useBillingAccount()
  const manages = useManages()
  const [isOpen, setOpen] = useState(false)
  const available = account === undefined ? undefined : nano(account.credits)
  const state = reload.data === undefined ? undefined : stateOf(reload.data.alerts, available)
  const emails = account?.billing_emails ?? []
  return (
    <Section
      title={creditTexts.alerts}
      actions={
        <>
          {state === undefined ? null : <Badge tone={tones[state]}>{creditTexts.alertsStates[state]}</Badge>}
          {manages === true && state !== undefined && account !== undefined ? (
            <Button onPress={() => setOpen(true)}>
              {state === "off" ? creditTexts.alertsOn : creditTexts.alertsChange}
            </Button>
          ) : null}
        </>
      }
    >
      <Answer of={reload} lines={3}>
        {({ alerts, alerts_warned }) => (
          <AlertSummary of={alerts} isWarned={alerts_warned} available={available} emails={emails} />
        )}
      </Answer>
      {isOpen && reload.data !== undefined ? (
        <Settings of={reload.data} emails={emails} onClose={() => setOpen(false)} />
      ) : null}
    </Section>
  )
}
