/** Auto-reload: its rule, state, next step and settings form. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useBillingAccount } from "../../app/Asking.ts"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import { Refusal } from "../../app/Refusal.ts"
import { dayAndTime, time } from "../../moments.ts"
import { exact, nano, usd } from "../../money.ts"
import { Badge } from "../../parts/Badge.tsx"
import type { Tone } from "../../parts/Badge.tsx"
import { Button } from "../../parts/Button.tsx"
import { FormDialog } from "../../parts/FormDialog.tsx"
import { CheckField, MoneyField, SelectField, TextField } from "../../parts/Fields.tsx"
import { Facts, Section } from "../../parts/Page.tsx"
import { advice, Answer } from "../../parts/States.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { When } from "../../parts/When.tsx"
import { creditTexts } from "../../texts/credit.ts"
import { isUnconfigured, methodName, reloadKey, useManages, useMethods, useReload } from "./asking.ts"
import type { Reload } from "./asking.ts"

const tones: Readonly<Record<Reload["auto_reload"]["state"], Tone>> = {
  idle: "good",
  cooldown: "good",
  in_flight: "accent",
  failed: "bad",
  disabled: "plain"
}

/** Returns whether auto-reload was turned off automatically. */
const isPaused = ({ disabled_reason, enabled }: Reload["auto_reload"]): boolean => !enabled && disabled_reason !== null

/** Describes the next step. Returns `undefined` if the user has turned auto-reload off or the next step is not known yet. */
const nextOf = (settings: Reload["auto_reload"], available: bigint | undefined): string | undefined => {
  const { failures, free_at, state, threshold_usd } = settings
  if (isPaused(settings)) return creditTexts.reloadNextPaused
  switch (state) {
    case "disabled":
      return undefined
    case "in_flight":
      return creditTexts.reloadNextFlight
    case "failed":
      return creditTexts.reloadNextFailed(failures, free_at === null ? undefined : time(free_at))
    case "cooldown":
      return free_at === null ? undefined : creditTexts.reloadNextCooldown(time(free_at))
    default: {
      if (available === undefined) return undefined
      const left = available - nano(threshold_usd)
      return left < 0n ? creditTexts.reloadNextBelow : creditTexts.reloadNextIdle(exact(usd(left)))
    }
  }
}

/** Explains an error, with its reason or the time of the next possible charge, if known. */
const chargeAdvice = (error: unknown): string => {
  if (!(error instanceof Refusal)) return advice(error)
  const { free_at, reason } = error.details
  if (typeof reason === "string") return `${advice(error)} ${reason}`
  return typeof free_at === "string" ? `${advice(error)} ${creditTexts.reloadFree(dayAndTime(free_at))}` : advice(error)
}

const useCharge = () => {
  const tenant_id = tenantId()
  const queries = useQueryClient()
  return useMutation({
    mutationFn: () =>
      resultOf(api.POST("/v1/tenants/{tenant_id}/billing/auto-reload/charge", { params: { path: { tenant_id } } })),
    onSuccess: (changed) => {
      queries.setQueryData(reloadKey(tenant_id), changed)
      toast(changed.auto_reload.state === "in_flight" ? creditTexts.reloadAsked : creditTexts.reloadCharged)
    },
    onSettled: () => {
      for (const about of ["reload", "balance", "ledger"]) void queries.invalidateQueries({ queryKey: [about] })
    }
  })
}

const ReloadSummary = ({ of: { auto_reload } }: { readonly of: Reload }) => {
  const { data: account } = useBillingAccount()
  const { data: methods } = useMethods()
  const { amount_credits, last_charged_at, last_error, payment_method_id, threshold_usd } = auto_reload
  const method = methods?.find(({ id }) => id === payment_method_id)
  const next = nextOf(auto_reload, account === undefined ? undefined : nano(account.credits))
  const isOff = !auto_reload.enabled && !isPaused(auto_reload) && auto_reload.state === "disabled"
  return (
    <div className="stack">
      <p>
        {isOff
          ? creditTexts.reloadOff
          : creditTexts.reloadRule(
              exact(amount_credits),
              exact(threshold_usd),
              method === undefined ? (payment_method_id ?? "") : methodName(method)
            )}
      </p>
      <Facts
        of={[
          ...(next === undefined ? [] : [[creditTexts.reloadNext, next] as const]),
          ...(last_error === null ? [] : [[creditTexts.reloadLastError, last_error] as const]),
          ...(isOff && last_charged_at === null
            ? []
            : [
                [
                  creditTexts.reloadLast,
                  last_charged_at === null ? creditTexts.reloadNever : <When at={last_charged_at} />
                ] as const
              ])
        ]}
      />
    </div>
  )
}

interface SettingsProps {
  readonly of: Reload
  readonly onClose: () => void
}

const useSettingsForm = ({ of: { alerts, auto_reload }, onClose }: SettingsProps) => {
  const tenant_id = tenantId()
  const queries = useQueryClient()
  const methods = useMethods()
  const [enabled, setEnabled] = useState(true)
  const [threshold, setThreshold] = useState(usd(nano(auto_reload.threshold_usd)))
  const [amount, setAmount] = useState(String(auto_reload.amount_credits))
  const [chosen, setMethod] = useState<string>()
  // Defaults to the first method. The methods may load after the form opens.
  const method = chosen ?? auto_reload.payment_method_id ?? methods.data?.[0]?.id ?? ""
  const save = useMutation({
    mutationFn: () =>
      resultOf(
        api.PUT("/v1/tenants/{tenant_id}/billing/auto-reload", {
          params: { path: { tenant_id } },
          body: {
            auto_reload: {
              enabled,
              threshold_usd: Number(threshold),
              amount_credits: Number(amount),
              payment_method_id: method === "" ? null : method
            },
            alerts
          }
        })
      ),
    onSuccess: (changed) => {
      queries.setQueryData(reloadKey(tenant_id), changed)
      toast(creditTexts.saved)
      onClose()
    }
  })
  return { amount, enabled, method, methods, save, setAmount, setEnabled, setMethod, setThreshold, threshold }
}

const Settings = (props: SettingsProps) => {
  const { amount, enabled, method, methods, save, setAmount, setEnabled, setMethod, setThreshold, threshold } =
    useSettingsForm(props)
  const { onClose } = props
  return (
    <FormDialog
      title={creditTexts.reload}
      action={creditTexts.save}
      error={save.error}
      isPending={save.isPending}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <CheckField label={creditTexts.reloadEnabled} value={enabled} onChange={setEnabled} />
      <div className="form-row">
        <MoneyField
          name="auto_reload.threshold_usd"
          label={creditTexts.threshold}
          help={creditTexts.thresholdHelp}
          value={threshold}
          onChange={setThreshold}
          isRequired
          autoFocus
        />
        <TextField
          name="auto_reload.amount_credits"
          label={creditTexts.amount}
          help={creditTexts.amountHelp}
          value={amount}
          onChange={setAmount}
          inputMode="numeric"
          before="$"
          behind="USD"
          isRequired
        />
      </div>
      <SelectField
        name="auto_reload.payment_method_id"
        label={creditTexts.method}
        value={method}
        onChange={setMethod}
        options={[
          ["", creditTexts.methodChoose],
          ...(methods.data ?? []).map((one) => [one.id, methodName(one)] as const)
        ]}
        {...(methods.data?.length === 0 && { help: creditTexts.methodsNoneText })}
      />
    </FormDialog>
  )
}

export const AutoReload = () => {
  const reload = useReload()
  const methods = useMethods()
  const manages = useManages() === true && !isUnconfigured(methods.error)
  const [isOpen, setOpen] = useState(false)
  const charge = useCharge()
  const settings = reload.data?.auto_reload
  const paused = settings !== undefined && isPaused(settings)
  const change = paused
    ? creditTexts.reloadAgain
    : settings?.enabled === true
      ? creditTexts.reloadChange
      : creditTexts.reloadOn
  return (
    <Section
      title={creditTexts.reload}
      actions={
        <>
          {settings === undefined ? null : (
            <Badge tone={paused ? "bad" : tones[settings.state]}>
              {paused ? creditTexts.reloadPaused : creditTexts.reloadStates[settings.state]}
            </Badge>
          )}
          {manages && settings?.enabled === true ? (
            <Button isPending={charge.isPending} onPress={() => charge.mutate()}>
              {creditTexts.reloadNow}
            </Button>
          ) : null}
          {manages && settings !== undefined ? (
            <Button kind={paused ? "primary" : "plain"} onPress={() => setOpen(true)}>
              {change}
            </Button>
          ) : null}
        </>
      }
    >
      <Answer of={reload} lines={3}>
        {(found) => <ReloadSummary of={found} />}
      </Answer>
      {charge.error === null ? null : (
        <p className="field-error" role="alert">
          {chargeAdvice(charge.error)}
        </p>
      )}
      {isOpen && reload.data !== undefined ? <Settings of={reload.data} onClose={() => setOpen(false)} /> : null}
    </Section>
  )
}
