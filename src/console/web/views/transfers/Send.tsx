/** The form that sends credit. The user enters an amount and a recipient, then reviews the transfer. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useBillingAccount } from "../../app/Asking.ts"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { day } from "../../moments.ts"
import { exact, nano, usd } from "../../money.ts"
import { Button } from "../../parts/Button.tsx"
import { Choice } from "../../parts/Choice.tsx"
import { Dialog, DialogActions } from "../../parts/Dialog.tsx"
import { FormOf, MoneyField, SelectField, TextField } from "../../parts/Fields.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { texts } from "../../texts.ts"
import { transfersTexts } from "../../texts/transfers.ts"
import type { Transfer } from "./asking.ts"

const words = transfersTexts.form
const messageMax = 280
const cent = 10_000_000n
/** The recipient's time to accept, in milliseconds. */
const life = 30 * 86_400_000

type Kind = Transfer["kind"]

interface Draft {
  readonly amount: string
  readonly email: string
  readonly kind: Kind
  readonly reason: string
  readonly message: string
}

const empty: Draft = { amount: "", email: "", kind: "gift", reason: "", message: "" }

/** Rounds to the cent, half up, like the service. */
const rounded = (amount: string): bigint => ((nano(amount) + cent / 2n) / cent) * cent

const bodyOf = ({ amount, email, kind, message, reason }: Draft): Schemas["NewTransfer"] => ({
  amount: Number(amount),
  recipient_email: email.trim(),
  kind,
  ...(kind === "gift" && reason !== "" && { reason }),
  ...(kind === "gift" && message.trim() !== "" && { message: message.trim() })
})

const Giftable = () => {
  const { data: account } = useBillingAccount()
  if (account === undefined) return null
  const giftable = nano(account.giftable_credits)
  const granted = nano(account.credits) - giftable
  return (
    <p className="quiet small">
      {giftable === 0n ? words.noneGiftable : words.giftable(exact(account.giftable_credits))}{" "}
      {granted > 0n ? words.granted(exact(usd(granted))) : ""}
    </p>
  )
}

interface FormProps {
  readonly draft: Draft
  readonly onChange: (draft: Draft) => void
  readonly onReview: () => void
  readonly onClose: () => void
  readonly error: unknown
}

const Form = ({ draft, error, onChange, onClose, onReview }: FormProps) => {
  const set =
    (name: keyof Draft) =>
    (value: string): void =>
      onChange({ ...draft, [name]: value })
  return (
    <FormOf
      onSubmit={onReview}
      error={error}
      actions={
        <DialogActions>
          <Button onPress={onClose}>{texts.app.cancel}</Button>
          <Button kind="primary" type="submit">
            {words.review}
          </Button>
        </DialogActions>
      }
    >
      <div className="stack">
        <MoneyField
          name="amount"
          label={words.amount}
          value={draft.amount}
          onChange={set("amount")}
          isRequired
          autoFocus
          placeholder="5.00"
        />
        <Giftable />
      </div>
      <TextField
        name="recipient_email"
        type="email"
        label={words.email}
        help={words.emailHelp}
        value={draft.email}
        onChange={set("email")}
        isRequired
      />
      <div className="stack">
        <Choice
          label={words.kind}
          options={(["gift", "transfer"] as const).map((kind) => [kind, transfersTexts.kinds[kind]] as const)}
          value={draft.kind}
          onChange={set("kind")}
        />
        <p className="quiet small">{words.kindHelp[draft.kind]}</p>
      </div>
      {draft.kind === "transfer" ? null : (
        <>
          <SelectField
            name="reason"
            label={words.reason}
            value={draft.reason}
            onChange={set("reason")}
            options={[["", words.noReason], ...Object.entries(transfersTexts.reasons)]}
          />
          <TextField
            name="message"
            label={words.message}
            help={words.messageHelp(messageMax - [...draft.message].length)}
            value={draft.message}
            onChange={set("message")}
            lines={3}
          />
        </>
      )}
    </FormOf>
  )
}

const Review = ({ draft: { amount, email } }: { readonly draft: Draft }) => {
  const { data: account } = useBillingAccount()
  const sum = rounded(amount)
  const left = account === undefined ? 0n : nano(account.credits) - sum
  return (
    <ol className="transfers-steps">
      <li>{words.steps.held(exact(usd(sum)), exact(usd(left < 0n ? 0n : left)))}</li>
      <li>{words.steps.letter(email.trim())}</li>
      <li>{words.steps.until(day(Date.now() + life))}</li>
      <li>{words.steps.back}</li>
    </ol>
  )
}

interface SendProps {
  readonly onClose: () => void
  readonly onSent: (transfer: Transfer) => void
}

export const Send = ({ onClose, onSent }: SendProps) => {
  const tenant_id = tenantId()
  const queries = useQueryClient()
  const [draft, setDraft] = useState(empty)
  /** The idempotency key of the transfer under review, so that a second submission sends nothing. */
  const [key, setKey] = useState<string>()
  const send = useMutation({
    mutationFn: (idempotency: string) =>
      resultOf(
        api.POST("/v1/tenants/{tenant_id}/billing/transfers", {
          params: { path: { tenant_id }, header: { "Idempotency-Key": idempotency } },
          body: bodyOf(draft)
        })
      ),
    onSuccess: (transfer) => {
      for (const about of ["transfers", "balance", "ledger"]) void queries.invalidateQueries({ queryKey: [about] })
      toast(words.done(exact(transfer.amount), transfer.recipient_email))
      onSent(transfer)
    },
    // Return to the form, because the error can concern one of its fields.
    onError: () => setKey(undefined)
  })
  if (key === undefined) {
    return (
      <Dialog title={words.title} isOpen onClose={onClose}>
        <Form
          draft={draft}
          onChange={setDraft}
          onClose={onClose}
          onReview={() => setKey(crypto.randomUUID())}
          error={send.error}
        />
      </Dialog>
    )
  }
  return (
    <Dialog title={words.reviewTitle} isOpen onClose={onClose}>
      <Review draft={draft} />
      <DialogActions>
        <Button autoFocus isDisabled={send.isPending} onPress={() => setKey(undefined)}>
          {words.change}
        </Button>
        <Button kind="primary" isPending={send.isPending} onPress={() => send.mutate(key)}>
          {words.send(exact(usd(rounded(draft.amount))))}
        </Button>
      </DialogActions>
    </Dialog>
  )
}
