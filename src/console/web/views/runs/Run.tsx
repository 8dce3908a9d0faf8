/** Shows a run: its limits, its spending by model, its child runs, and its calls. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { getRouteApi, Link } from "@tanstack/react-router"
import { useState } from "react"
import { useKeys } from "../../app/Asking.ts"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { count } from "../../moments.ts"
import { Button, ButtonLink } from "../../parts/Button.tsx"
import { Confirm } from "../../parts/Dialog.tsx"
import { Money } from "../../parts/Money.tsx"
import { Facts, Page, Section } from "../../parts/Page.tsx"
import { Answer } from "../../parts/States.tsx"
import { Table } from "../../parts/Table.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { useNow, When } from "../../parts/When.tsx"
import { runTexts as texts } from "../../texts/budgets.ts"
import { Gauges } from "../budgets/Gauges.tsx"
import { CallDialog } from "../usage/CallDialog.tsx"
import { CallTable } from "../usage/CallTable.tsx"
import { RunTable, State, stateOf } from "./Runs.tsx"

type Details = Schemas["RunDetails"]
const route = getRouteApi("/person/runs/$run_id")

const About = ({ of }: { readonly of: Details }) => {
  const { data: keys } = useKeys()
  const key = keys?.records.find(({ id }) => id === of.application_id)?.name ?? of.application_id
  const tags = Object.entries(of.tags).map(([name, value]) => `${name}=${value}`)
  return (
    <Section title={texts.about}>
      <Facts
        of={[
          [texts.state, <State key="state" of={of} />],
          [texts.limits, <Gauges key="limits" of={of} />],
          [texts.key, key],
          ...(of.parent === null
            ? []
            : [
                [
                  texts.parent,
                  <Link key="parent" to="/runs/$run_id" params={{ run_id: of.parent }}>
                    {of.parent}
                  </Link>
                ] as const
              ]),
          [texts.created, <When key="created" at={of.created_at} as="moment" />],
          [texts.expires, <When key="expires" at={of.expires_at} as="moment" />],
          ...(of.ended_at === null ? [] : [[texts.ended, <When key="ended" at={of.ended_at} as="moment" />] as const]),
          [texts.models, of.models?.join(", ") ?? texts.allModels],
          ...(tags.length === 0 ? [] : [[texts.tags, tags.join(", ")] as const]),
          [texts.id, <code key="id">{of.id}</code>]
        ]}
      />
    </Section>
  )
}

const ByModel = ({ of }: { readonly of: Details["by_model"] }) => (
  <Section title={texts.byModel} lead={texts.byModelLead}>
    {of.length === 0 ? (
      <p className="quiet">{texts.noModels}</p>
    ) : (
      <Table
        caption={texts.byModel}
        rows={of}
        rowKey={({ model }) => model}
        columns={[
          { id: "model", title: texts.model, card: "title", cell: ({ model }) => model },
          { id: "requests", title: texts.requests, align: "end", cell: ({ requests }) => count(requests) },
          {
            id: "tokens",
            title: texts.tokens,
            align: "end",
            cell: ({ completion_tokens, prompt_tokens }) => count(prompt_tokens + completion_tokens)
          },
          {
            id: "cost",
            title: texts.cost,
            align: "end",
            card: "figure",
            cell: ({ cost_usd }) => <Money of={cost_usd} as="aligned" />
          }
        ]}
      />
    )}
  </Section>
)

const Children = ({ of }: { readonly of: Details["children"] }) => (
  <Section title={texts.children}>
    {of.length === 0 ? <p className="quiet">{texts.noChildren}</p> : <RunTable caption={texts.children} runs={of} />}
  </Section>
)

const shownMax = 25

const Calls = ({ of }: { readonly of: Details }) => {
  const tenant_id = tenantId()
  const [opened, open] = useState<string>()
  const calls = useQuery({
    queryKey: ["usage", tenant_id, "run", of.id],
    queryFn: () =>
      resultOf(
        api.GET("/v1/tenants/{tenant_id}/usage", {
          params: {
            path: { tenant_id },
            query: { run: of.id, start_date: of.created_at, per_page: String(shownMax) }
          }
        })
      )
  })
  return (
    <Section
      title={texts.calls}
      actions={
        <ButtonLink to="/usage" search={{ run: of.id, window: "quarter" }}>
          {texts.allCalls}
        </ButtonLink>
      }
    >
      <Answer of={calls}>
        {({ records }) =>
          records.length === 0 ? (
            <p className="quiet">{texts.noCalls}</p>
          ) : (
            <CallTable calls={records} onOpen={({ id }) => open(id)} />
          )
        }
      </Answer>
      <CallDialog id={opened} onClose={() => open(undefined)} />
    </Section>
  )
}

const End = ({ of }: { readonly of: Details }) => {
  const queries = useQueryClient()
  const [isAsking, ask] = useState(false)
  const end = useMutation({
    mutationFn: () => resultOf(api.DELETE("/v1/runs/{run_id}", { params: { path: { run_id: of.id } } })),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["runs"] })
      toast(texts.endedNow)
      ask(false)
    }
  })
  if (stateOf(of, useNow()) !== "open") return null
  return (
    <>
      <Button kind="danger" onPress={() => ask(true)}>
        {texts.end}
      </Button>
      <Confirm
        title={texts.endTitle(of.name || texts.unnamed)}
        action={texts.end}
        isOpen={isAsking}
        isPending={end.isPending}
        error={end.error}
        onConfirm={() => end.mutate()}
        onClose={() => ask(false)}
      >
        {texts.endText}
      </Confirm>
    </>
  )
}

export const Run = () => {
  const { run_id } = route.useParams()
  const run = useQuery({
    queryKey: ["runs", tenantId(), "one", run_id],
    queryFn: () => resultOf(api.GET("/v1/runs/{run_id}", { params: { path: { run_id } } }))
  })
  return (
    <Page
      title={run.data?.name || texts.unnamed}
      actions={run.data === undefined ? null : <End key={run_id} of={run.data} />}
    >
      <Answer of={run} lines={8}>
        {(of) => (
          <>
            <About of={of} />
            <ByModel of={of.by_model} />
            <Children of={of.children} />
            <Calls key={of.id} of={of} />
          </>
        )}
      </Answer>
    </Page>
  )
}
