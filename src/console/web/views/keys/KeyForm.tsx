/** The forms that create and change a key. A new key is shown only once. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { apiRoot } from "../../app/Base.ts"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { Button } from "../../parts/Button.tsx"
import { Code } from "../../parts/Code.tsx"
import { Copy } from "../../parts/Copy.tsx"
import { Dialog, DialogActions } from "../../parts/Dialog.tsx"
import { FormOf, MoneyField, SelectField, TextField } from "../../parts/Fields.tsx"
import { Section } from "../../parts/Page.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { texts } from "../../texts.ts"

type Key = Schemas["Application"]
type Period = NonNullable<Key["spending_limit_period"]>

interface Draft {
  readonly name: string
  readonly description: string
  readonly limit: string
  readonly period: Period
  readonly lastDay: string
  readonly models: string
  /** In the form `name=value`, separated by commas. */
  readonly tags: string
}

const empty: Draft = { name: "", description: "", limit: "", period: "month", lastDay: "", models: "", tags: "" }

const dayLong = 86_400_000

/** Returns the end of `lastDay` in UTC, or `null` for no expiry. */
const endOf = (lastDay: string): string | null =>
  lastDay === "" ? null : new Date(Date.parse(`${lastDay}T00:00:00Z`) + dayLong).toISOString()

const draftOf = ({
  allowed_models,
  description,
  expires_at,
  name,
  spending_limit_period,
  spending_limit_usd,
  tags
}: Key): Draft => ({
  name,
  description,
  limit: spending_limit_usd === undefined ? "" : String(spending_limit_usd),
  period: spending_limit_period ?? "month",
  lastDay: expires_at === undefined ? "" : new Date(Date.parse(expires_at) - 1).toISOString().slice(0, 10),
  models: allowed_models?.join(", ") ?? "",
  tags: tags === undefined ? "" : pairsOf(tags)
})

/** Parses the tags. Returns `null` if there are none. A pair without `=` gets an empty value, which the API rejects. */
const tagsOf = (typed: string): Readonly<Record<string, string>> | null => {
  const pairs = typed.split(",").flatMap((pair) => {
    const [name = "", ...value] = pair.split("=")
    return pair.trim() === "" ? [] : [[name.trim(), value.join("=").trim()] as const]
  })
  return pairs.length === 0 ? null : Object.fromEntries(pairs)
}

export const pairsOf = (tags: Readonly<Record<string, string>>): string =>
  Object.entries(tags)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ")

/** Builds the request body. Omits unchanged tags, because a tag's value can contain a comma. */
const bodyOf = ({ description, lastDay, limit, models, name, period, tags }: Draft, before: Draft) => {
  const allowed = models.split(/[\s,]+/).filter((model) => model !== "")
  return {
    name: name.trim(),
    description: description.trim(),
    spending_limit_usd: limit.trim() === "" ? null : Number(limit),
    ...(limit.trim() !== "" && { spending_limit_period: period }),
    expires_at: endOf(lastDay),
    allowed_models: allowed.length === 0 ? null : allowed,
    ...(tags !== before.tags && { tags: tagsOf(tags) })
  }
}

interface FormProps {
  readonly first: Draft
  readonly action: string
  readonly isPending: boolean
  readonly error: unknown
  readonly onSend: (draft: Draft) => void
  readonly onClose: () => void
}

const KeyForm = ({ action, error, first, isPending, onClose, onSend }: FormProps) => {
  const [draft, setDraft] = useState(first)
  const field = <K extends keyof Draft>(name: K) => ({
    value: draft[name],
    onChange: (value: string) => setDraft({ ...draft, [name]: value })
  })
  return (
    <FormOf
      error={error}
      onSubmit={() => onSend(draft)}
      actions={
        <DialogActions>
          <Button onPress={onClose}>{texts.app.cancel}</Button>
          <Button type="submit" kind="primary" isPending={isPending}>
            {action}
          </Button>
        </DialogActions>
      }
    >
      <TextField
        name="name"
        label={texts.keys.name}
        help={texts.keys.nameHelp}
        isRequired
        autoFocus
        maxLength={200}
        {...field("name")}
      />
      <TextField name="description" label={texts.keys.description} maxLength={1000} {...field("description")} />
      <div className="form-row">
        <MoneyField
          name="spending_limit_usd"
          label={texts.keys.limit}
          help={texts.keys.limitHelp}
          {...field("limit")}
        />
        <SelectField
          name="spending_limit_period"
          label={texts.keys.period}
          options={[
            ["month", texts.keys.periods.month],
            ["total", texts.keys.periods.total]
          ]}
          {...field("period")}
        />
      </div>
      <div className="form-row">
        <TextField
          name="expires_at"
          label={texts.keys.expires}
          help={texts.keys.expiresHelp}
          type="date"
          {...field("lastDay")}
        />
        <TextField name="allowed_models" label={texts.keys.models} help={texts.keys.modelsHelp} {...field("models")} />
      </div>
      <TextField name="tags" label={texts.keys.tags} help={texts.keys.tagsHelp} {...field("tags")} />
    </FormOf>
  )
}

/** Returns a sample call with the key in three languages. */
const firstCall = (key: string) => ({
  curl: `curl ${apiRoot}/v1/chat/completions \\
  -H "Authorization: Bearer ${key}" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "auto", "messages": [{"role": "user", "content": "Hello"}]}'`,
  typescript: `import OpenAI from "openai"

const client = new OpenAI({ baseURL: "${apiRoot}/v1", apiKey: "${key}" })
const answer = await client.chat.completions.create({
  model: "auto",
  messages: [{ role: "user", content: "Hello" }]
})
console.log(answer.choices[0].message.content)`,
  python: `from openai import OpenAI

client = OpenAI(base_url="${apiRoot}/v1", api_key="${key}")
answer = client.chat.completions.create(
    model="auto",
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`
})

const NewKey = ({ apiKey, onClose }: { readonly apiKey: string; readonly onClose: () => void }) => (
  <>
    <p>{texts.keys.madeText}</p>
    <div className="keys-made">
      <code data-testid="api-key">{apiKey}</code>
      <Copy text={apiKey} label={texts.keys.copyKey} kind="primary" />
    </div>
    <Section title={texts.keys.tryIt}>
      <Code of={firstCall(apiKey)} />
    </Section>
    <DialogActions>
      <Button onPress={onClose}>{texts.keys.understood}</Button>
    </DialogActions>
  </>
)

interface MakeProps {
  readonly isOpen: boolean
  readonly onClose: () => void
}

const Make = ({ onClose }: Pick<MakeProps, "onClose">) => {
  const tenant_id = tenantId()
  const queries = useQueryClient()
  const make = useMutation({
    mutationFn: (draft: Draft) =>
      resultOf(
        api.POST("/v1/tenants/{tenant_id}/applications", {
          params: { path: { tenant_id } },
          body: bodyOf(draft, empty)
        })
      ),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["keys"] }),
    // Remove the key from the cache when the dialog closes.
    gcTime: 0
  })
  return (
    <Dialog
      title={make.data === undefined ? texts.keys.make : texts.keys.madeTitle}
      isOpen
      stays={make.data !== undefined}
      wide={make.data !== undefined}
      onClose={onClose}
    >
      {make.data === undefined ? (
        <KeyForm
          first={empty}
          action={texts.keys.make}
          isPending={make.isPending}
          error={make.error}
          onSend={make.mutate}
          onClose={onClose}
        />
      ) : (
        <NewKey apiKey={make.data.api_key} onClose={onClose} />
      )}
    </Dialog>
  )
}

/** Renders the dialog that creates a key. Its form is empty each time it opens. */
export const MakeKey = ({ isOpen, onClose }: MakeProps) => (isOpen ? <Make onClose={onClose} /> : null)

const Change = ({ of, onClose }: { readonly of: Key; readonly onClose: () => void }) => {
  const tenant_id = tenantId()
  const queries = useQueryClient()
  const change = useMutation({
    mutationFn: (draft: Draft) =>
      resultOf(
        api.PATCH("/v1/tenants/{tenant_id}/applications/{application_id}", {
          params: { path: { tenant_id, application_id: of.id } },
          body: bodyOf(draft, draftOf(of))
        })
      ),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["keys"] })
      toast(texts.keys.saved)
      onClose()
    }
  })
  return (
    <Dialog title={texts.keys.changeTitle(of.name)} isOpen onClose={onClose}>
      <KeyForm
        first={draftOf(of)}
        action={texts.keys.save}
        isPending={change.isPending}
        error={change.error}
        onSend={change.mutate}
        onClose={onClose}
      />
    </Dialog>
  )
}

export const ChangeKey = ({ of, onClose }: { readonly of: Key | undefined; readonly onClose: () => void }) =>
  of === undefined ? null : <Change key={of.id} of={of} onClose={onClose} />
