/** The operator's actions. Each dialog explains what will happen, asks for a reason for the audit log, and reports the result. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { Check } from "lucide-react"
import { useState } from "react"
import type { ReactNode } from "react"
import { responseBody, resultOf } from "../app/Client.ts"
import { exact } from "../money.ts"
import { Button, ButtonLink } from "../parts/Button.tsx"
import { Dialog, DialogActions } from "../parts/Dialog.tsx"
import { CheckField, FormOf, MoneyField, TextField } from "../parts/Fields.tsx"
import { texts as common } from "../texts.ts"
import { decimal, serializer } from "./amounts.ts"
import { operatorApi } from "./OperatorSession.ts"
import { operatorTexts as texts } from "../texts/operator.ts"

interface Named {
  readonly id: string
  readonly name: string
}

export type Act =
  | { readonly kind: "grant" | "purchase" | "suspendTenant" | "activateTenant"; readonly of: Named }
  | { readonly kind: "suspendPerson" | "activatePerson" | "endSignIns"; readonly of: Named }
  | { readonly kind: "revokeKey" | "endSession"; readonly of: Named }
  | { readonly kind: "deletePasskey"; readonly of: Named; readonly account_id: string }

interface Draft {
  readonly amount: string
  readonly reference: string
  readonly description: string
  readonly reason: string
  readonly passkeys: boolean
}

/** Returns a random reference for one form. Resubmitting the form reuses it. */
const freshReference = (): string =>
  `console-${[...crypto.getRandomValues(new Uint8Array(6))].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`

type TextOf = Exclude<keyof Draft, "passkeys">

interface Wording {
  readonly title: string
  readonly text: string
  readonly action: string
  readonly isDangerous: boolean
}

const t = texts.act

const wordingOf = ({ kind, of: { name } }: Act, amount: string): Wording => {
  switch (kind) {
    case "grant":
      return { title: t.grantTitle(name), text: t.grantText, action: t.grantDo(amount), isDangerous: false }
    case "purchase":
      return { title: t.purchaseTitle(name), text: t.purchaseText, action: t.purchaseDo(amount), isDangerous: false }
    case "suspendTenant":
      return { title: t.suspendTenantTitle(name), text: t.suspendTenantText, action: t.suspend, isDangerous: true }
    case "activateTenant":
      return { title: t.activateTenantTitle(name), text: t.activateTenantText, action: t.activate, isDangerous: false }
    case "suspendPerson":
      return { title: t.suspendPersonTitle(name), text: t.suspendPersonText, action: t.suspend, isDangerous: true }
    case "activatePerson":
      return { title: t.activatePersonTitle(name), text: t.activatePersonText, action: t.activate, isDangerous: false }
    case "revokeKey":
      return { title: t.revokeTitle(name), text: t.revokeText, action: t.revoke, isDangerous: true }
    case "endSignIns":
      return { title: t.endSignInsTitle(name), text: t.endSignInsText, action: t.endSignIns, isDangerous: true }
    case "deletePasskey":
      return {
        title: t.deletePasskeyTitle(name),
        text: t.deletePasskeyText,
        action: t.deletePasskey,
        isDangerous: true
      }
    case "endSession":
      return { title: t.endSessionTitle(name), text: t.endSessionText, action: t.endSession, isDangerous: true }
  }
}

const isCredit = ({ kind }: Act): boolean => kind === "grant" || kind === "purchase"

const credit = async (kind: "grant" | "purchase", { id, name }: Named, draft: Draft): Promise<string> => {
  const typed = decimal(draft.amount)
  const { description, reason, reference } = trimmed(draft)
  const body = {
    amount: Number(typed),
    reference: reference ?? "",
    ...(description !== undefined && { description }),
    ...(reason !== undefined && { reason })
  }
  const options = { params: { path: { tenant_id: id } }, body, bodySerializer: serializer({ amount: typed }) }
  const { balance, done } = await resultOf(
    kind === "grant"
      ? operatorApi.POST("/v1/operator/tenants/{tenant_id}/grants", options)
      : operatorApi.POST("/v1/operator/tenants/{tenant_id}/purchases", options)
  )
  if (!done) return t.before(body.reference, exact(balance))
  return (kind === "grant" ? t.granted : t.purchased)(exact(typed), name, exact(balance))
}

const trimmed = (draft: Draft): { readonly [K in TextOf]: string | undefined } => {
  const of = (text: string): string | undefined => text.trim() || undefined
  return {
    amount: of(draft.amount),
    reference: of(draft.reference),
    description: of(draft.description),
    reason: of(draft.reason)
  }
}

const statusText = (name: string, status: string, changed: boolean): string =>
  changed ? (status === "suspended" ? t.suspended : t.activated)(name) : t.unchanged(name, status)

/** Performs the action. Resolves to a sentence about the result. */
const performAction = async (act: Act, draft: Draft): Promise<string> => {
  const { id, name } = act.of
  const { reason: given } = trimmed(draft)
  const reason = given === undefined ? {} : { reason: given }
  const tenant = { params: { path: { tenant_id: id } }, body: reason }
  const person = { params: { path: { account_id: id } }, body: reason }
  switch (act.kind) {
    case "grant":
    case "purchase":
      return credit(act.kind, act.of, draft)
    case "suspendTenant": {
      const answer = await resultOf(operatorApi.POST("/v1/operator/tenants/{tenant_id}/suspend", tenant))
      return statusText(name, answer.status, answer.changed)
    }
    case "activateTenant": {
      const answer = await resultOf(operatorApi.POST("/v1/operator/tenants/{tenant_id}/activate", tenant))
      return statusText(name, answer.status, answer.changed)
    }
    case "suspendPerson": {
      const answer = await resultOf(operatorApi.POST("/v1/operator/people/{account_id}/suspend", person))
      return statusText(name, answer.status, answer.changed)
    }
    case "activatePerson": {
      const answer = await resultOf(operatorApi.POST("/v1/operator/people/{account_id}/activate", person))
      return statusText(name, answer.status, answer.changed)
    }
    case "revokeKey": {
      const params = { path: { application_id: id }, query: reason }
      const { revoked } = await resultOf(operatorApi.DELETE("/v1/operator/keys/{application_id}", { params }))
      return (revoked ? t.revoked : t.notRevoked)(name)
    }
    case "endSignIns": {
      const query = { ...reason, ...(draft.passkeys && { passkeys: "true" as const }) }
      const params = { path: { account_id: id }, query }
      const { ended, passkeys_deleted, passkeys_left } = await resultOf(
        operatorApi.DELETE("/v1/operator/people/{account_id}/sign-ins", { params })
      )
      return t.endedSignIns(ended, name) + t.passkeysGone(passkeys_deleted, passkeys_left)
    }
    case "deletePasskey": {
      const params = { path: { account_id: act.account_id, passkey_id: id }, query: reason }
      await resultOf(operatorApi.DELETE("/v1/operator/people/{account_id}/passkeys/{passkey_id}", { params }))
      return t.deletedPasskey(name)
    }
    case "endSession": {
      const params = { path: { session_id: id } }
      const { result } = await responseBody(operatorApi.DELETE("/v1/operator/sessions/{session_id}", { params }))
      return result.ended ? t.endedSession : t.notEndedSession
    }
  }
}

const Done = ({ onClose, text }: { readonly text: string; readonly onClose: () => void }) => (
  <div className="stack">
    <p className="operator-done" role="status">
      <Check size={18} aria-hidden /> <span>{text}</span>
    </p>
    <DialogActions>
      <ButtonLink to="/operator/audit" kind="ghost">
        {texts.nav.audit}
      </ButtonLink>
      <Button kind="primary" onPress={onClose} autoFocus>
        {common.app.done}
      </Button>
    </DialogActions>
  </div>
)

const Form = ({ act, onClose }: { readonly act: Act; readonly onClose: () => void }) => {
  const queries = useQueryClient()
  const [draft, setDraft] = useState<Draft>(() => ({
    amount: "",
    reference: freshReference(),
    description: "",
    reason: "",
    passkeys: false
  }))
  const doing = useMutation({
    mutationFn: () => performAction(act, draft),
    onSettled: () => queries.invalidateQueries({ queryKey: ["operator"] })
  })
  const field = (name: TextOf) => ({
    name,
    value: draft[name],
    onChange: (value: string) => setDraft({ ...draft, [name]: value }),
    maxLength: 200
  })
  const { action, isDangerous, text } = wordingOf(act, exact(decimal(draft.amount)))
  if (doing.data !== undefined) return <Done text={doing.data} onClose={onClose} />
  return (
    <FormOf
      error={doing.error}
      onSubmit={() => doing.mutate()}
      actions={
        <DialogActions>
          <Button onPress={onClose}>{common.app.cancel}</Button>
          <Button type="submit" kind={isDangerous ? "danger" : "primary"} isPending={doing.isPending}>
            {action}
          </Button>
        </DialogActions>
      }
    >
      <p className="quiet">
        {text}
        <br />
        <code>{act.of.id}</code>
      </p>
      {isCredit(act) ? (
        <>
          <div className="form-row">
            <MoneyField {...field("amount")} label={t.amount} isRequired autoFocus maxLength={24} />
            <TextField {...field("reference")} label={t.reference} help={t.referenceHelp} isRequired />
          </div>
          <TextField {...field("description")} label={t.description} help={t.descriptionHelp} />
        </>
      ) : null}
      {act.kind === "endSignIns" ? (
        <CheckField
          label={t.endPasskeys}
          help={t.endPasskeysHelp}
          value={draft.passkeys}
          onChange={(passkeys) => setDraft({ ...draft, passkeys })}
        />
      ) : null}
      {act.kind === "endSession" ? null : (
        <TextField {...field("reason")} label={t.reason} help={t.reasonHelp} autoFocus={!isCredit(act)} />
      )}
    </FormOf>
  )
}

export const ActDialog = ({ act, onClose }: { readonly act: Act | undefined; readonly onClose: () => void }) => (
  <Dialog title={act === undefined ? "" : wordingOf(act, "").title} isOpen={act !== undefined} onClose={onClose}>
    {act === undefined ? null : <Form key={`${act.kind} ${act.of.id}`} act={act} onClose={onClose} />}
  </Dialog>
)

/** Returns a function that opens the dialog for an action, and the dialog itself. */
export const useAct = (): readonly [act: (act: Act) => void, dialog: ReactNode] => {
  const [act, setAct] = useState<Act>()
  return [setAct, <ActDialog key="act" act={act} onClose={() => setAct(undefined)} />]
}
