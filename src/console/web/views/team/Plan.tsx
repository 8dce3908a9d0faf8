/** The tenant's plan and seats, and whether members may spend its balance. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useBillingAccount } from "../../app/Asking.ts"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import { count } from "../../moments.ts"
import { Badge } from "../../parts/Badge.tsx"
import type { Tone } from "../../parts/Badge.tsx"
import { Button } from "../../parts/Button.tsx"
import { Confirm } from "../../parts/Dialog.tsx"
import { FormDialog } from "../../parts/FormDialog.tsx"
import { CheckField, TextField } from "../../parts/Fields.tsx"
import { Section } from "../../parts/Page.tsx"
import { advice, Answer } from "../../parts/States.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { teamTexts } from "../../texts/team.ts"
import { changePlan, useChange, useManages, usePlan } from "./asking.ts"
import type { Plan as TenantPlan } from "./asking.ts"

const seatsDefault = 25
const tones: Readonly<Record<TenantPlan["status"], Tone>> = {
  none: "plain",
  active: "good",
  past_due: "bad",
  canceled: "plain"
}

const SeatsDialog = ({ of: plan, onClose }: { readonly of: TenantPlan; readonly onClose: () => void }) => {
  const isNew = plan.plan === "none"
  const [seats, setSeats] = useState(String(isNew ? seatsDefault : plan.seats))
  const save = useChange(changePlan, () => {
    toast(teamTexts.saved)
    onClose()
  })
  return (
    <FormDialog
      title={isNew ? teamTexts.planStart : teamTexts.planChange}
      action={isNew ? teamTexts.planStart : teamTexts.save}
      error={save.error}
      isPending={save.isPending}
      onSubmit={() => save.mutate({ plan: "team", seats: Number(seats) })}
      onClose={onClose}
    >
      <p className="quiet">{teamTexts.planText.team}</p>
      <TextField
        name="seats"
        label={teamTexts.seatsField}
        help={`${teamTexts.seatsHelp} ${teamTexts.seatsText}`}
        value={seats}
        onChange={setSeats}
        inputMode="numeric"
        isRequired
        autoFocus
      />
    </FormDialog>
  )
}

const EndDialog = ({ onClose }: { readonly onClose: () => void }) => {
  const end = useChange(changePlan, () => {
    toast(teamTexts.saved)
    onClose()
  })
  return (
    <Confirm
      title={teamTexts.planEndTitle}
      action={teamTexts.planEnd}
      isOpen
      isPending={end.isPending}
      error={end.error}
      onClose={onClose}
      onConfirm={() => end.mutate({ plan: "none" })}
    >
      {teamTexts.planEndText}
    </Confirm>
  )
}

const MemberSpend = ({ manages }: { readonly manages: boolean }) => {
  const tenant_id = tenantId()
  const { data: account } = useBillingAccount()
  const queries = useQueryClient()
  const [pressed, press] = useState<boolean>()
  const set = useMutation({
    mutationFn: (member_spend_enabled: boolean) =>
      resultOf(
        api.PATCH("/v1/tenants/{tenant_id}/billing", {
          params: { path: { tenant_id } },
          body: { member_spend_enabled }
        })
      ),
    onSuccess: () => toast(teamTexts.saved),
    onError: (error) => toast(advice(error), "bad"),
    // Wait for the refetch. Otherwise, the checkbox would briefly revert to its old value.
    onSettled: async () => {
      await Promise.all(["balance", "payers"].map((about) => queries.invalidateQueries({ queryKey: [about] })))
      press(undefined)
    }
  })
  if (account === undefined) return null
  const { member_spend_effective, member_spend_source } = account
  if (!manages) return member_spend_effective ? null : <p>{teamTexts.spendOff}</p>
  return (
    <CheckField
      label={teamTexts.spend}
      help={teamTexts.spendSource[member_spend_source]}
      value={pressed ?? member_spend_effective}
      onChange={(isOn) => {
        press(isOn)
        set.mutate(isOn)
      }}
    />
  )
}

export const Plan = () => {
  const plan = usePlan()
  const manages = useManages()
  const [open, setOpen] = useState<"seats" | "end">()
  const found = plan.data
  return (
    <Section
      title={teamTexts.plan}
      actions={
        found === undefined ? null : (
          <>
            {found.status === "none" ? null : (
              <Badge tone={tones[found.status]}>{teamTexts.planStates[found.status]}</Badge>
            )}
            {manages ? (
              <Button onPress={() => setOpen("seats")}>
                {found.plan === "none" ? teamTexts.planStart : teamTexts.planChange}
              </Button>
            ) : null}
            {manages && found.plan !== "none" ? (
              <Button kind="danger" onPress={() => setOpen("end")}>
                {teamTexts.planEnd}
              </Button>
            ) : null}
          </>
        )
      }
    >
      <Answer of={plan} lines={2}>
        {({ plan: name, seats, seats_taken }) => (
          <div className="stack">
            <p>
              <strong>{teamTexts.plans[name]}.</strong> {teamTexts.planText[name]}
            </p>
            {name === "none" ? null : (
              <div className="team-seats">
                <span className="team-bar" aria-hidden>
                  <span style={{ width: `${Math.min(100, (100 * seats_taken) / Math.max(1, seats))}%` }} />
                </span>
                <span data-tip={teamTexts.seatsText}>{teamTexts.seats(count(seats_taken), count(seats))}</span>
              </div>
            )}
            <MemberSpend manages={manages} />
          </div>
        )}
      </Answer>
      {open === "seats" && found !== undefined ? <SeatsDialog of={found} onClose={() => setOpen(undefined)} /> : null}
      {open === "end" ? <EndDialog onClose={() => setOpen(undefined)} /> : null}
    </Section>
  )
}
