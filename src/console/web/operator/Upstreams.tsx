/** Shows the upstreams with their requests per minute, and each model's current upstream. */
import { Network } from "lucide-react"
import type { Schemas } from "../app/Client.ts"
import { count, duration, time } from "../moments.ts"
import { Badge } from "../parts/Badge.tsx"
import { Facts, Page, Section } from "../parts/Page.tsx"
import { Answer, Empty } from "../parts/States.tsx"
import { Table } from "../parts/Table.tsx"
import { useUpstreams } from "./Asking.ts"
import { Maybe } from "./Lines.tsx"
import { operatorTexts as texts } from "../texts/operator.ts"

const t = texts.upstreams

type Upstream = Schemas["OperatorUpstream"]

/** Plots requests as one column per minute. Failures are colored. */
const Minutes = ({ of: { minutes, name } }: { readonly of: Upstream }) => {
  const top = Math.max(1, ...minutes.map(({ requests }) => requests))
  const descriptions = minutes.map(({ at, failures, requests }) => t.minute(time(at), count(requests), count(failures)))
  return (
    <>
      <div className="operator-minutes" role="img" aria-label={`${t.minutes(name)}. ${descriptions.join(". ")}`}>
        {minutes.map(({ at, failures, requests }, index) => (
          <div key={at} className="operator-minute" data-tip={descriptions[index]}>
            {failures === 0 ? null : (
              <span className="operator-minute-bad" style={{ height: `${(failures * 100) / top}%` }} />
            )}
            <span style={{ height: `${((requests - failures) * 100) / top}%` }} />
          </div>
        ))}
      </div>
      <p className="operator-scale" aria-hidden>
        <span>{t.first}</span>
        <span>{t.most(count(top))}</span>
        <span>{t.now}</span>
      </p>
    </>
  )
}

const State = ({ of: { cooling_until, failures_in_a_row, state } }: { readonly of: Upstream }) =>
  cooling_until !== null ? (
    <Badge tone="bad">{t.coolingUntil(time(cooling_until))}</Badge>
  ) : state === "failing" ? (
    <Badge tone="bad">
      {t.states.failing} · {t.inARow(count(failures_in_a_row))}
    </Badge>
  ) : (
    <span className="quiet small">{t.states[state]}</span>
  )

/** Formats the nonzero response counts: `200 × 2xx · 3 × 5xx`. */
const responseCounts = ({ requests }: Upstream): string => {
  const some = (["2xx", "4xx", "5xx", "unreachable"] as const).filter((kind) => requests[kind] > 0)
  return some.length === 0
    ? texts.ago.none
    : some
        .map((kind) => `${count(requests[kind])}\u00a0\u00d7\u00a0${kind === "unreachable" ? t.unreachable : kind}`)
        .join(" \u00b7 ")
}

type Models = Schemas["OperatorUpstreams"]["models"]

const modelNamesMax = 5

/** Lists the models that can use this upstream, even if a preferred upstream currently serves them. */
const servedBy = (name: string, models: Models): string => {
  const served = models.filter(({ upstreams }) => upstreams.includes(name)).map(({ model }) => model)
  const named = served.slice(0, modelNamesMax).join(", ")
  return served.length <= modelNamesMax ? named : `${named} ${t.more(count(served.length - modelNamesMax))}`
}

/** Shows the models and the protocols. Upstreams for search and media serve no listed models, so they show neither. */
const Serves = ({ models, of: { name, speaks } }: { readonly of: Upstream; readonly models: Models }) => {
  const served = servedBy(name, models)
  return served === "" ? (
    <span className="quiet">{texts.ago.none}</span>
  ) : (
    <span>
      {served} <span className="quiet">· {speaks.join(", ")}</span>
    </span>
  )
}

const Health = ({ models, of }: { readonly of: Upstream; readonly models: Models }) => (
  <article className="operator-upstream" aria-label={of.name}>
    <header className="row between">
      <h3>{of.name}</h3>
      <State of={of} />
    </header>
    <Minutes of={of} />
    <Facts
      of={[
        [t.requests, responseCounts(of)],
        [
          t.latency,
          of.latency_ms === null ? texts.ago.none : t.p(duration(of.latency_ms.p50), duration(of.latency_ms.p95))
        ],
        [t.lastSuccess, <Maybe key="success" at={of.last_success_at} />],
        [
          t.lastFailure,
          <span key="failure">
            <Maybe at={of.last_failure_at} />{" "}
            {of.last_failure === null ? null : (
              <span className="quiet">· {of.last_failures.map(({ kind }) => t.failures[kind]).join(", ")}</span>
            )}
          </span>
        ],
        ...(servedBy(of.name, models) === ""
          ? []
          : [[t.serves, <Serves key="serves" of={of} models={models} />] as const])
      ]}
    />
  </article>
)

/** Returns whether the upstream has received requests recently, is failing, or is in cooldown. */
const isActive = ({ cooling_until, minutes, state }: Upstream): boolean =>
  state === "failing" || cooling_until !== null || minutes.some(({ requests }) => requests > 0)

/** Puts failing upstreams first. The others remain in the configured order. */
const byTrouble = (a: Upstream, b: Upstream): number => Number(b.state === "failing") - Number(a.state === "failing")

const IdleUpstreams = ({ models, rows }: { readonly rows: ReadonlyArray<Upstream>; readonly models: Models }) =>
  rows.length === 0 ? null : (
    <Section title={t.unasked}>
      <Table<Upstream>
        caption={t.unasked}
        rows={rows}
        rowKey={({ name }) => name}
        columns={[
          {
            id: "name",
            title: texts.field.name,
            card: "title",
            cell: ({ name }) => <span className="operator-strong">{name}</span>
          },
          {
            id: "serves",
            title: t.serves,
            cell: (of) => <Serves of={of} models={models} />
          },
          { id: "success", title: t.lastSuccess, cell: ({ last_success_at }) => <Maybe at={last_success_at} /> },
          { id: "failure", title: t.lastFailure, cell: ({ last_failure_at }) => <Maybe at={last_failure_at} /> }
        ]}
      />
    </Section>
  )

type Decision = Schemas["OperatorRoutingDecision"]

/** Formats the attempts: `a failed · b answered`. An attempt with a fallback model also shows that model. */
const attemptsOf = ({ attempts, model }: Decision): string =>
  attempts
    .map((one) => `${one.upstream}${one.model === model ? "" : ` (${one.model})`} ${t.outcomes[one.outcome]}`)
    .join(" \u00b7 ")

const Decisions = ({ rows }: { readonly rows: ReadonlyArray<Decision> }) => (
  <Section title={t.decisions} lead={t.decisionsLead}>
    {rows.length === 0 ? (
      <Empty title={t.noDecisions} />
    ) : (
      <Table<Decision>
        caption={t.decisions}
        rows={rows}
        rowKey={({ at, request_id }) => `${at} ${request_id ?? ""}`}
        columns={[
          {
            id: "model",
            title: texts.field.model,
            card: "title",
            cell: ({ model }) => <span className="operator-strong">{model}</span>
          },
          { id: "asked", title: t.asked, cell: attemptsOf },
          { id: "why", title: t.why, cell: ({ reason }) => t.reasons[reason] },
          { id: "at", title: texts.field.at, cell: ({ at }) => <Maybe at={at} /> }
        ]}
      />
    )}
  </Section>
)

const ModelTable = ({ rows }: { readonly rows: Models }) => (
  <Section title={t.models} lead={t.modelsLead}>
    {rows.length === 0 ? (
      <Empty title={t.noModels} />
    ) : (
      <Table
        caption={t.models}
        rows={rows}
        rowKey={({ model }) => model}
        columns={[
          {
            id: "model",
            title: texts.field.model,
            card: "title",
            cell: ({ model }) => <span className="operator-strong">{model}</span>
          },
          {
            id: "order",
            title: t.order,
            card: "plain",
            cell: ({ serving, upstreams }) => (
              <span className="operator-order">
                {upstreams.map((name) => (
                  <span key={name}>
                    {name === serving ? <strong>{name}</strong> : <span className="quiet">{name}</span>}
                    {name === serving ? <span className="sr-only"> ({t.serving})</span> : null}
                  </span>
                ))}
              </span>
            )
          },
          {
            id: "state",
            title: texts.field.status,
            align: "end",
            cell: ({ serving, upstreams }) =>
              serving === null ? (
                <Badge tone="bad">{t.states.failing}</Badge>
              ) : serving === upstreams[0] ? (
                <span className="quiet">{t.states.ok}</span>
              ) : (
                <Badge tone="warn">
                  {serving} {t.serving}
                </Badge>
              )
          }
        ]}
      />
    )}
  </Section>
)

export const Upstreams = () => {
  const upstreams = useUpstreams()
  const node = upstreams.data?.node ?? null
  return (
    <Page title={t.title} lead={node === null ? t.lead : `${t.lead}, ${t.node(node)}`}>
      <Answer of={upstreams} lines={8}>
        {({ decisions, models, upstreams }) =>
          upstreams.length === 0 ? (
            <Empty icon={Network} title={t.none}>
              {t.noneText}
            </Empty>
          ) : (
            <>
              <div className="operator-upstreams">
                {upstreams
                  .filter(isActive)
                  .toSorted(byTrouble)
                  .map((one) => (
                    <Health key={one.name} of={one} models={models} />
                  ))}
              </div>
              <IdleUpstreams rows={upstreams.filter((one) => !isActive(one))} models={models} />
              <ModelTable rows={models} />
              <Decisions rows={decisions} />
            </>
          )
        }
      </Answer>
    </Page>
  )
}
