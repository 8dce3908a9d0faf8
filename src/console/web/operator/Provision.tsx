/** Forms that create people, tenants and keys. */
import { resultOf } from "../app/Client.ts"
import type { Schemas } from "../app/Client.ts"
import { MoneyField, SelectField, TextField } from "../parts/Fields.tsx"
import { provisionTexts as texts } from "../texts/provision.ts"
import { decimal, serializer } from "./amounts.ts"
import { Making } from "./Making.tsx"
import type { FieldOf } from "./Making.tsx"
import { operatorApi } from "./OperatorSession.ts"

const dayLong = 86_400_000

/** Returns the end of `lastDay` in UTC, as an ISO string. */
export const endOf = (lastDay: string): string => new Date(Date.parse(`${lastDay}T00:00:00Z`) + dayLong).toISOString()

const nonEmpty = (text: string): string | undefined => text.trim() || undefined

interface Allowing {
  readonly allowance: string
  readonly period: string
}

const periods = (["month", "week"] as const).map((period) => [period, texts.periods[period]] as const)
export const periodOf = (text: string): "week" | "month" => (text === "week" ? "week" : "month")

const AllowanceFields = ({ field }: { readonly field: FieldOf<Allowing> }) => (
  <div className="form-row">
    <MoneyField {...field("allowance")} label={texts.allowance} help={texts.allowanceHelp} maxLength={24} />
    <SelectField {...field("period")} label={texts.period} options={periods} />
  </div>
)

/** Returns the request options for the allowance, or none if no amount was entered. The serializer preserves the amount's digits. */
const allowanceOf = ({ allowance, period }: Allowing) => {
  if (nonEmpty(allowance) === undefined) return {}
  const typed = decimal(allowance)
  const terms = { amount_usd: Number(typed), period: periodOf(period), rollover: "none" as const }
  return { body: { allowance: terms }, bodySerializer: serializer({ amount_usd: typed }) }
}

const noAllowance: Allowing = { allowance: "", period: "month" }

export const MakePerson = () => (
  <Making
    title={texts.people.make}
    first={{ email: "", name: "", team: "", ...noAllowance }}
    fields={(field) => (
      <>
        <TextField {...field("email")} label={texts.email} type="email" isRequired autoFocus maxLength={254} />
        <TextField {...field("name")} label={texts.name} maxLength={100} />
        <TextField {...field("team")} label={texts.people.team} help={texts.people.teamHelp} maxLength={200} />
        <AllowanceFields field={field} />
      </>
    )}
    make={(draft) => {
      const { body, ...rest } = allowanceOf(draft)
      const [name, team_external_id] = [nonEmpty(draft.name), nonEmpty(draft.team)]
      return resultOf(
        operatorApi.POST("/v1/operator/people", {
          body: {
            email: draft.email.trim(),
            ...(name !== undefined && { name }),
            ...(team_external_id !== undefined && { team_external_id }),
            ...body
          },
          ...rest
        })
      )
    }}
    said={({ created, name }) => (created ? texts.people.made(name) : texts.people.known(name))}
  />
)

export const InvitePerson = () => (
  <Making
    title={texts.people.invite}
    first={{ email: "", name: "" }}
    fields={(field) => (
      <>
        <TextField {...field("email")} label={texts.email} type="email" isRequired autoFocus maxLength={254} />
        <TextField {...field("name")} label={texts.name} maxLength={100} />
      </>
    )}
    make={({ email, name }) => {
      const named = nonEmpty(name)
      const body = { email: email.trim(), ...(named !== undefined && { name: named }) }
      return resultOf(operatorApi.POST("/v1/operator/invites", { body }))
    }}
    said={({ email }) => texts.people.invited(email)}
  />
)

export const MakeTenant = () => (
  <Making
    title={texts.tenants.make}
    first={{ name: "", owner: "", external_id: "", ...noAllowance }}
    fields={(field) => (
      <>
        <TextField {...field("name")} label={texts.name} isRequired autoFocus maxLength={100} />
        <TextField
          {...field("owner")}
          label={texts.tenants.owner}
          help={texts.tenants.ownerHelp}
          type="email"
          isRequired
          maxLength={254}
        />
        <TextField
          {...field("external_id")}
          label={texts.tenants.externalId}
          help={texts.tenants.externalIdHelp}
          maxLength={200}
        />
        <AllowanceFields field={field} />
      </>
    )}
    make={(draft) => {
      const { body: allowance, ...rest } = allowanceOf(draft)
      const body = { name: draft.name.trim(), owner_email: draft.owner.trim(), ...allowance }
      const external_id = nonEmpty(draft.external_id)
      const path = "/v1/operator/tenants/by-external-id/{external_id}"
      return resultOf(
        external_id === undefined
          ? operatorApi.POST("/v1/operator/tenants", { body, ...rest })
          : operatorApi.PUT(path, { params: { path: { external_id } }, body, ...rest })
      )
    }}
    said={({ id, name }) => texts.tenants.made(name, id)}
  />
)

/** Creates a new external id, so that the provisioning route always creates a key. */
const freshId = (): string => `console ${crypto.randomUUID()}`

const keyOf = (draft: Readonly<Record<"name" | "limit" | "period" | "models" | "lastDay", string>>) => {
  const models = draft.models.split(/[\s,]+/).filter((model) => model !== "")
  const typed = decimal(draft.limit)
  return {
    body: {
      name: draft.name.trim(),
      ...(nonEmpty(draft.limit) !== undefined && {
        spending_limit_usd: Number(typed),
        spending_limit_period: draft.period === "total" ? ("total" as const) : ("month" as const)
      }),
      ...(models.length > 0 && { allowed_models: models }),
      ...(draft.lastDay !== "" && { expires_at: endOf(draft.lastDay) })
    },
    bodySerializer: serializer({ spending_limit_usd: typed })
  }
}

export const MakeKey = ({ tenant_id }: { readonly tenant_id: string }) => (
  <Making
    title={texts.keys.make}
    first={{ name: "", limit: "", period: "month", models: "", lastDay: "" }}
    fields={(field) => (
      <>
        <TextField {...field("name")} label={texts.name} isRequired autoFocus maxLength={200} />
        <div className="form-row">
          <MoneyField {...field("limit")} label={texts.keys.limit} help={texts.keys.limitHelp} maxLength={24} />
          <SelectField
            {...field("period")}
            label={texts.period}
            options={(["month", "total"] as const).map((period) => [period, texts.keys.periods[period]])}
          />
        </div>
        <div className="form-row">
          <TextField {...field("models")} label={texts.keys.models} help={texts.keys.modelsHelp} />
          <TextField {...field("lastDay")} label={texts.keys.lastDay} help={texts.keys.lastDayHelp} type="date" />
        </div>
      </>
    )}
    make={(draft): Promise<Schemas["ProvisionedKey"]> => {
      const { body, bodySerializer } = keyOf(draft)
      return resultOf(
        operatorApi.PUT("/v1/operator/keys/by-external-id/{external_id}", {
          params: { path: { external_id: freshId() } },
          body: { tenant_id, ...body },
          bodySerializer
        })
      )
    }}
    said={({ name }) => texts.keys.made(name)}
    secret={({ api_key }) => api_key}
  />
)
