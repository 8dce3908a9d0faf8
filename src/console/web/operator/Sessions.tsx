/** Lists all operators' open sessions and unused links, each with a button that ends it. */
import { useQuery } from "@tanstack/react-query"
import { LogOut } from "lucide-react"
import { resultOf } from "../app/Client.ts"
import type { Schemas } from "../app/Client.ts"
import { Badge } from "../parts/Badge.tsx"
import { Button } from "../parts/Button.tsx"
import { Page } from "../parts/Page.tsx"
import { Answer } from "../parts/States.tsx"
import { Table } from "../parts/Table.tsx"
import { When } from "../parts/When.tsx"
import { useAct } from "./Acts.tsx"
import { Maybe } from "./Lines.tsx"
import { operatorApi } from "./OperatorSession.ts"
import { operatorTexts as texts } from "../texts/operator.ts"

const t = texts.sessions
const f = texts.field

export const Sessions = () => {
  const [act, dialog] = useAct()
  const sessions = useQuery({
    queryKey: ["operator", "sessions"],
    queryFn: async () => (await resultOf(operatorApi.GET("/v1/operator/sessions"))).sessions
  })
  return (
    <Page title={t.title} lead={t.lead}>
      <Answer of={sessions} lines={5}>
        {(rows) => (
          <Table<Schemas["OperatorSession"]>
            caption={t.title}
            rows={rows}
            rowKey={({ id }) => id}
            columns={[
              {
                id: "name",
                title: f.name,
                card: "title",
                cell: ({ current, name }) => (
                  <span className="row">
                    <span className="operator-strong">{name}</span> {current ? <Badge>{t.current}</Badge> : null}
                  </span>
                )
              },
              { id: "kind", title: t.kind, card: "plain", cell: ({ kind }) => t.kinds[kind] },
              { id: "id", title: f.id, needs: "wide", cell: ({ id }) => <code className="quiet">{id}</code> },
              { id: "made", title: t.made, needs: "medium", cell: ({ created_at }) => <When at={created_at} /> },
              { id: "signed", title: t.signedIn, cell: ({ signed_in_at }) => <Maybe at={signed_in_at} /> },
              { id: "ends", title: f.ends, cell: ({ expires_at }) => <When at={expires_at} /> },
              {
                id: "actions",
                title: f.actions,
                isActions: true,
                cell: (session) => (
                  <Button
                    kind="ghost"
                    icon={LogOut}
                    aria-label={`${texts.act.endSession}: ${session.name}`}
                    onPress={() => act({ kind: "endSession", of: session })}
                  />
                )
              }
            ]}
          />
        )}
      </Answer>
      {dialog}
    </Page>
  )
}
