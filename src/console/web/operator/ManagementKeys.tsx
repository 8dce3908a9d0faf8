/** Management keys for programs. A new key has scopes and an expiry. Its value is shown only once. */
import { useQuery } from "@tanstack/react-query"
import { Ban } from "lucide-react"
import { resultOf } from "../app/Client.ts"
import type { Schemas } from "../app/Client.ts"
import { Button } from "../parts/Button.tsx"
import { CheckField, TextField } from "../parts/Fields.tsx"
import { Page } from "../parts/Page.tsx"
import { Answer, Empty } from "../parts/States.tsx"
import { Table } from "../parts/Table.tsx"
import { When } from "../parts/When.tsx"
import { operatorTexts } from "../texts/operator.ts"
import { provisionTexts } from "../texts/provision.ts"
import { useEnding } from "./Ending.tsx"
import { Maybe } from "./Lines.tsx"
import { Making } from "./Making.tsx"
import { operatorApi } from "./OperatorSession.ts"
import { endOf } from "./Provision.tsx"

const f = operatorTexts.field
const t = provisionTexts.management

type Key = Schemas["ManagementKey"]
type Scope = Key["scopes"][number]

const scopes = Object.keys(t.scopesOf) as ReadonlyArray<Scope>

/** Parses the scopes, which the draft stores as one string. */
const chosenIn = (text: string): ReadonlyArray<Scope> => scopes.filter((scope) => text.split(" ").includes(scope))

const empty: Readonly<Record<"name" | "scopes" | "lastDay", string>> = { name: "", scopes: "read", lastDay: "" }

const MakeManagementKey = () => (
  <Making
    title={t.make}
    first={empty}
    fields={(field, draft, set) => {
      const chosen = chosenIn(draft.scopes)
      const choose = (scope: Scope, is: boolean) =>
        set({ ...draft, scopes: [...chosen.filter((one) => one !== scope), ...(is ? [scope] : [])].join(" ") })
      return (
        <>
          <TextField {...field("name")} label={provisionTexts.name} isRequired autoFocus maxLength={100} />
          <fieldset className="stack operator-scopes">
            <legend className="field-label">{t.scopes}</legend>
            {scopes.map((scope) => (
              <CheckField
                key={scope}
                label={scope}
                help={t.scopesOf[scope]}
                value={chosen.includes(scope)}
                onChange={(is) => choose(scope, is)}
              />
            ))}
          </fieldset>
          <TextField {...field("lastDay")} label={t.lastDay} help={t.lastDayHelp} type="date" isRequired />
        </>
      )
    }}
    make={({ lastDay, name, scopes }) =>
      resultOf(
        operatorApi.POST("/v1/operator/management-keys", {
          body: { name: name.trim(), scopes: [...chosenIn(scopes)], expires_at: endOf(lastDay) }
        })
      )
    }
    said={({ name }) => t.made(name)}
    secret={({ management_key }) => management_key}
  />
)

const Keys = ({ onEnd, rows }: { readonly rows: ReadonlyArray<Key>; readonly onEnd: (key: Key) => void }) => (
  <Table<Key>
    caption={t.title}
    rows={rows}
    rowKey={({ id }) => id}
    columns={[
      { id: "name", title: f.name, card: "title", cell: ({ name }) => <span className="operator-strong">{name}</span> },
      { id: "key", title: f.key, cell: ({ key_prefix }) => <code>{key_prefix}…</code> },
      { id: "scopes", title: t.scopes, card: "plain", cell: ({ scopes }) => scopes.join(", ") },
      { id: "by", title: t.by, needs: "medium", cell: ({ created_by }) => created_by },
      { id: "used", title: f.lastUsed, cell: ({ last_used_at }) => <Maybe at={last_used_at} /> },
      { id: "ends", title: f.ends, cell: ({ expires_at }) => <When at={expires_at} /> },
      {
        id: "actions",
        title: f.actions,
        isActions: true,
        cell: (key) => (
          <Button kind="ghost" icon={Ban} aria-label={`${t.end}: ${key.name}`} onPress={() => onEnd(key)} />
        )
      }
    ]}
  />
)

export const ManagementKeys = () => {
  const keys = useQuery({
    queryKey: ["operator", "management-keys"],
    queryFn: async () => (await resultOf(operatorApi.GET("/v1/operator/management-keys"))).keys
  })
  const [end, dialog] = useEnding<Key>({
    title: ({ name }) => t.endTitle(name),
    text: t.endText,
    action: t.end,
    end: ({ id }) =>
      resultOf(operatorApi.DELETE("/v1/operator/management-keys/{key_id}", { params: { path: { key_id: id } } }))
  })
  return (
    <Page title={t.title} lead={t.lead} actions={<MakeManagementKey />}>
      <Answer of={keys} lines={5}>
        {(rows) => (rows.length === 0 ? <Empty title={t.none}>{t.noneText}</Empty> : <Keys rows={rows} onEnd={end} />)}
      </Answer>
      {dialog}
    </Page>
  )
}
