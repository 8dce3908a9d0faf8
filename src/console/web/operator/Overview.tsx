/** The operator's first page: current activity, money in flight, the books and the loops. Only problems are shown in color. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { LinkProps } from "@tanstack/react-router"
import { Check, ScanSearch, TriangleAlert } from "lucide-react"
import { useState } from "react"
import type { ReactNode } from "react"
import { resultOf } from "../app/Client.ts"
import type { Schemas } from "../app/Client.ts"
import { count, duration, exactly } from "../moments.ts"
import { nano } from "../money.ts"
import { Badge } from "../parts/Badge.tsx"
import { Button } from "../parts/Button.tsx"
import { Confirm } from "../parts/Dialog.tsx"
import { Money } from "../parts/Money.tsx"
import { Facts, Page, Section } from "../parts/Page.tsx"
import { Answer, Failed } from "../parts/States.tsx"
import { Table } from "../parts/Table.tsx"
import type { Column } from "../parts/Table.tsx"
import { useNow, When } from "../parts/When.tsx"
import { useFlight, useUpstreams, useVerifications, useWork } from "./Asking.ts"
import { useFigures, useNewest } from "./OperatorLive.ts"
import type { Figures } from "./OperatorLive.ts"
import { operatorApi } from "./OperatorSession.ts"
import { operatorTexts as texts } from "../texts/operator.ts"

const t = texts.overview

const Spark = ({ values: seen }: { readonly values: ReadonlyArray<number> }) => {
  // Pad the values with zeros to a full minute.
  const values = [...Array.from({ length: Math.max(0, 60 - seen.length) }, () => 0), ...seen]
  const maximum = Math.max(0, ...values)
  const top = Math.max(1, maximum)
  const at = (value: number, index: number): string =>
    `${(index * 100) / 59},${Math.round(220 - (value / top) * 200) / 10}`
  return (
    <svg
      className="operator-spark"
      viewBox="0 0 100 24"
      preserveAspectRatio="none"
      aria-hidden
      data-still={maximum === 0 || undefined}
    >
      <polyline points={values.map(at).join(" ")} vectorEffect="non-scaling-stroke" />
    </svg>
  )
}

interface FigureProps {
  readonly name: string
  readonly value: ReactNode
  readonly below: ReactNode
  readonly isBad?: boolean
  readonly to?: NonNullable<LinkProps["to"]>
}

const Figure = ({ below, isBad = false, name, to, value }: FigureProps) => {
  const content = (
    <>
      <span className="operator-figure-name">{name}</span>
      <span className="operator-figure-value">{value}</span>
      <span className="quiet small">{below}</span>
    </>
  )
  const className = `operator-figure${isBad ? " operator-bad" : ""}`
  return to === undefined ? (
    <div className={className}>{content}</div>
  ) : (
    <Link to={to} className={className}>
      {content}
    </Link>
  )
}

/** The number of consecutive events with unsettled calls after which settlement counts as stuck. */
const stuckAfter = 10
const isStuck = (figures: ReadonlyArray<Figures>): boolean =>
  figures.length >= stuckAfter && figures.slice(-stuckAfter).every(({ unsettled }) => unsettled > 0)

const Now = () => {
  const figures = useFigures()
  const newest = useNewest()
  const { data: flight } = useFlight()
  const now = newest ?? flight
  const speed = newest?.calls_per_second
  const none = <span className="quiet">{texts.ago.none}</span>
  return (
    <section className="operator-figures" aria-label={t.figures}>
      <Figure
        name={t.callsPerSecond}
        value={speed === undefined ? none : count(speed)}
        below={<Spark values={figures.map(({ calls_per_second }) => calls_per_second)} />}
      />
      <Figure
        name={t.reserved}
        to="/operator/reservations"
        value={now === undefined ? none : <Money of={now.reserved} as="aligned" />}
        below={now === undefined ? "" : t.openCalls(count(now.open_calls))}
      />
      <Figure
        name={t.unsettled}
        isBad={newest !== undefined && isStuck(figures)}
        value={now === undefined ? none : count(now.unsettled)}
        below={t.unsettledHelp}
      />
      <Figure
        name={t.escrowed}
        value={now === undefined ? none : <Money of={now.escrowed} as="aligned" />}
        below={flight === undefined ? "" : t.transfers(count(flight.pending_transfers))}
      />
      <Figure
        name={t.owed}
        to="/operator/owed"
        value={flight === undefined ? none : <Money of={flight.owed} as="aligned" />}
        below={t.owedHelp}
      />
    </section>
  )
}

const longAgo = 2 * 86_400_000

interface Trouble {
  readonly text: string
  readonly to?: NonNullable<LinkProps["to"]>
}

/** Returns the current problems, or `undefined` while data is loading. Problems that users notice come first. */
const useTroubles = (): ReadonlyArray<Trouble> | undefined => {
  const figures = useFigures()
  const newest = useNewest()
  const now = useNow()
  const { data: work } = useWork()
  const { data: upstreams } = useUpstreams()
  const { data: books } = useVerifications()
  if (work === undefined || upstreams === undefined || books === undefined) return undefined
  const loops = newest?.loops ?? work.loops
  const unserved = upstreams.models.filter(({ serving }) => serving === null).map(({ model }) => model)
  const { last, last_held } = books
  const isOverdue = last !== null && last_held !== null && now - Date.parse(last_held.at) > longAgo
  return [
    ...(unserved.length === 0
      ? []
      : [{ text: t.modelTrouble(unserved.join(", ")), to: "/operator/upstreams" as const }]),
    ...upstreams.upstreams.flatMap(({ failures_in_a_row, name, state }) =>
      state === "failing"
        ? [{ text: t.upstreamTrouble(name, count(failures_in_a_row)), to: "/operator/upstreams" as const }]
        : []
    ),
    ...(newest !== undefined && isStuck(figures) ? [{ text: t.unsettledTrouble(count(newest.unsettled)) }] : []),
    ...(last !== null && last.findings > 0 ? [{ text: t.findings(count(last.findings)) }] : []),
    ...(isOverdue ? [{ text: t.verifiedLongAgo }] : []),
    ...loops.flatMap(({ loop, trouble }) => (trouble === null ? [] : [{ text: t.loopTrouble(loop, trouble) }]))
  ]
}

const Troubles = () => {
  const troubles = useTroubles()
  // An empty line keeps the content below from jumping.
  if (troubles === undefined) return <p className="small">{"\u00a0"}</p>
  if (troubles.length === 0) {
    return (
      <p className="row quiet small operator-calm">
        <Check size={14} aria-hidden /> {t.quiet}
      </p>
    )
  }
  return (
    <section className="operator-troubles" aria-label={t.attention}>
      {troubles.map(({ text, to }) => (
        <p key={text} className="operator-trouble">
          <TriangleAlert size={15} aria-hidden /> {to === undefined ? text : <Link to={to}>{text}</Link>}
        </p>
      ))}
    </section>
  )
}

interface Age {
  readonly name: string
  readonly calls: number
  readonly amount: bigint
  readonly isOld: boolean
}

const unitsOf = [
  [86_400, "day"],
  [3600, "hour"],
  [60, "minute"],
  [1, "second"]
] as const

/** Formats seconds in the largest unit that divides them, such as "10 min". */
const span = (seconds: number): string => {
  const [unit, name] = unitsOf.find(([unit]) => seconds >= unit && seconds % unit === 0) ?? [1, "second"]
  return new Intl.NumberFormat(undefined, { style: "unit", unit: name, unitDisplay: "short" }).format(seconds / unit)
}

const between = (from: number, to: number | null): string =>
  to === null ? `\u2265 ${span(from)}` : from === 0 ? `< ${span(to)}` : `${span(from)} \u2013 ${span(to)}`

interface AgesProps {
  readonly title: string
  readonly unit: string
  readonly rows: ReadonlyArray<Age>
}

/** Shows one bar per age bucket, relative to the largest amount. */
const Ages = ({ rows, title, unit }: AgesProps) => {
  const top = rows.reduce((most, { amount }) => (amount > most ? amount : most), 0n)
  const none = <span className="quiet">{texts.ago.none}</span>
  return (
    <table className="operator-ages">
      <thead>
        <tr>
          <th scope="col">{title}</th>
          <th scope="col" aria-hidden />
          <th scope="col">{unit}</th>
          <th scope="col">{texts.field.amount}</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ amount, calls, isOld, name }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td className="operator-bar" aria-hidden data-old={isOld || undefined}>
              {/* Thousandths are precise enough for a bar. */}
              <span style={{ width: top === 0n ? 0 : `${Number((amount * 1000n) / top) / 10}%` }} />
            </td>
            <td>{calls === 0 ? none : count(calls)}</td>
            <td>{amount === 0n ? none : <Money of={amount} as="aligned" focusable />}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

const hour = 3600
const month = 30

const InFlight = () => {
  const flight = useFlight()
  return (
    <Section title={t.flight}>
      <Answer of={flight} lines={8}>
        {({ ages, escrow_ages }) => (
          <div className="operator-columns">
            <Ages
              title={t.reservationsByAge}
              unit={t.calls}
              rows={ages.map(({ amount, calls, from_seconds, to_seconds }) => ({
                name: between(from_seconds, to_seconds),
                calls,
                amount: nano(amount),
                isOld: from_seconds >= hour
              }))}
            />
            <Ages
              title={t.escrowByAge}
              unit={texts.find.transfers}
              rows={escrow_ages.map(({ amount, from_days, to_days, transfers }) => ({
                name: between(from_days * 86_400, to_days === null ? null : to_days * 86_400),
                calls: transfers,
                amount: nano(amount),
                isOld: from_days >= month
              }))}
            />
          </div>
        )}
      </Answer>
    </Section>
  )
}

type Run = Schemas["OperatorVerification"]

const kindOf = ({ whole }: Run): string => (whole ? t.whole : t.part)
const outcomeOf = ({ findings }: Run): string => (findings === 0 ? t.noFindings : t.findingsOf(count(findings)))

const Recent = ({ runs }: { readonly runs: ReadonlyArray<Run> }) => (
  <div className="operator-recent">
    <div className="operator-runs" role="img" aria-label={`${t.recent}: ${runs.map(outcomeOf).join(", ")}`}>
      {runs.toReversed().map((run) => (
        <span
          key={`${run.at} ${run.entry}`}
          data-bad={run.findings > 0 || undefined}
          data-whole={run.whole || undefined}
          data-tip={`${exactly(run.at)}: ${kindOf(run)}, ${outcomeOf(run)}`}
        />
      ))}
    </div>
    <p className="quiet small" aria-hidden>
      {t.recent}
    </p>
  </div>
)

const BooksFacts = ({ of }: { readonly of: Schemas["OperatorVerifications"] }) => {
  const { behind, last, last_held } = of
  const never = <span>{t.never}</span>
  return (
    <Facts
      of={[
        [
          t.held,
          last_held === null ? (
            never
          ) : (
            <>
              <When at={last_held.at} /> <span className="quiet">· {kindOf(last_held)}</span>
            </>
          )
        ],
        ...(last_held === null ? [] : [[t.read, t.readTo(count(last_held.entry), count(last_held.record))] as const]),
        [t.behind, t.behindBy(count(behind.entries), count(behind.records))],
        [
          t.last,
          last === null ? (
            never
          ) : (
            <>
              <When at={last.at} />{" "}
              {last.findings === 0 ? (
                <span className="quiet">
                  · {t.noFindings} · {duration(last.millis)}
                </span>
              ) : (
                <Badge tone="bad">{outcomeOf(last)}</Badge>
              )}
            </>
          )
        ]
      ]}
    />
  )
}

const Progress = ({ of: { of, rows } }: { readonly of: { readonly rows: number; readonly of: number } }) => (
  <label className="operator-progress">
    <span className="small">{t.verifying(count(rows), count(of))}</span>
    <progress value={of === 0 ? 0 : Math.min(rows, of)} max={Math.max(1, of)} />
  </label>
)

const Books = () => {
  const books = useVerifications()
  const queries = useQueryClient()
  const [isAsking, setAsking] = useState(false)
  const verify = useMutation({
    mutationFn: (whole: boolean) => resultOf(operatorApi.POST("/v1/operator/verify", { body: { whole } })),
    onSuccess: (of) => {
      queries.setQueryData(["operator", "verify"], of)
      setAsking(false)
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["operator", "verify"] })
  })
  const isRunning = books.data === undefined || books.data.running !== null
  return (
    <Section
      title={t.books}
      actions={
        <>
          <Button kind="ghost" isDisabled={isRunning} onPress={() => verify.mutate(false)}>
            {t.verify}
          </Button>
          <Button kind="ghost" isDisabled={isRunning} onPress={() => setAsking(true)}>
            {t.verifyWhole}
          </Button>
        </>
      }
    >
      <Answer of={books} lines={5}>
        {(of) => (
          <div className="stack">
            {of.running === null ? null : <Progress of={of.running} />}
            <BooksFacts of={of} />
            {of.recent.length === 0 ? null : <Recent runs={of.recent} />}
            {of.found.length === 0 ? null : (
              <ul className="operator-findings" aria-label={t.foundTitle}>
                {of.found.map(({ check, message }, index) => (
                  <li key={index}>
                    <Badge tone="bad">{check}</Badge> {message}
                  </li>
                ))}
              </ul>
            )}
          </div>
        )}
      </Answer>
      {verify.error === null || isAsking ? null : <Failed error={verify.error} />}
      <Confirm
        title={t.verifyWholeTitle}
        action={t.verifyWhole}
        isOpen={isAsking}
        isPending={verify.isPending}
        error={verify.error}
        onConfirm={() => verify.mutate(true)}
        onClose={() => setAsking(false)}
      >
        {t.verifyWholeText}
      </Confirm>
    </Section>
  )
}

const Invariants = () => {
  const look = useMutation({ mutationFn: () => resultOf(operatorApi.POST("/v1/operator/invariants")) })
  const of = look.data
  return (
    <Section
      title={t.invariants}
      lead={
        of === undefined
          ? t.invariantsLead
          : t.looked(count(of.checks.filter(({ holds }) => holds).length), count(of.checks.length), duration(of.millis))
      }
      actions={
        <Button kind="ghost" icon={ScanSearch} isPending={look.isPending} onPress={() => look.mutate()}>
          {t.look}
        </Button>
      }
    >
      {look.error !== null ? (
        <Failed error={look.error} retry={() => look.mutate()} />
      ) : of === undefined ? (
        <p className="quiet">{t.notLooked}</p>
      ) : (
        <ul className="operator-checks">
          {of.checks.map(({ findings, holds, name }) => (
            <li key={name} className="operator-check">
              <span>{name}</span>
              {holds ? (
                <span className="row quiet small">
                  <Check size={13} aria-hidden /> {t.holds}
                </span>
              ) : (
                <Badge tone="bad">{t.broken}</Badge>
              )}
              {findings.length === 0 ? null : (
                <ul className="operator-findings">
                  {findings.map((finding, index) => (
                    <li key={index}>{finding}</li>
                  ))}
                </ul>
              )}
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}

type Work = Schemas["OperatorWork"]

const OtherFacts = ({ of: { jobs, node, outbox } }: { readonly of: Work }) => (
  <Facts
    of={[
      ...(node === null
        ? []
        : [
            [
              t.node,
              `${node.name}, ${node.leads ? t.leads : node.leader === null ? t.noLeader : t.follows(node.leader)}`
            ] as const
          ]),
      ...jobs.map(
        ({ count: waiting, oldest_at, status }) =>
          [
            t.jobs(status),
            <span key={status}>
              {count(waiting)}{" "}
              <span className="quiet">
                · {t.oldest} <When at={oldest_at} />
              </span>
            </span>
          ] as const
      ),
      [
        t.outbox,
        <span key="outbox">
          {count(outbox.waiting)}
          {outbox.oldest_at === null ? null : (
            <span className="quiet">
              {" "}
              · {t.oldest} <When at={outbox.oldest_at} />
            </span>
          )}
        </span>
      ]
    ]}
  />
)

const loopColumns: ReadonlyArray<Column<Work["loops"][number]>> = [
  {
    id: "loop",
    title: t.loop,
    card: "title",
    cell: ({ loop }) => <span className="operator-strong">{loop}</span>
  },
  {
    id: "does",
    title: t.does,
    card: "plain",
    needs: "medium",
    cell: ({ loop }) => <span className="quiet">{t.loopsDo[loop]}</span>
  },
  {
    id: "last",
    title: t.lastTurn,
    cell: ({ last_turn_at }) =>
      last_turn_at === null ? <span className="quiet">{texts.ago.none}</span> : <When at={last_turn_at} />
  },
  {
    id: "next",
    title: t.nextTurn,
    cell: ({ next_turn_at, running }) =>
      running ? (
        t.running
      ) : next_turn_at === null ? (
        <span className="quiet">{t.woken}</span>
      ) : (
        <When at={next_turn_at} />
      )
  },
  {
    id: "trouble",
    title: t.trouble,
    cell: ({ trouble }) =>
      trouble === null ? <span className="quiet">{texts.ago.none}</span> : <Badge tone="bad">{trouble}</Badge>
  },
  {
    id: "failures",
    title: t.failedTurns,
    align: "end",
    cell: ({ failures }) =>
      failures === 0 ? (
        <span className="quiet">{texts.ago.none}</span>
      ) : (
        <span data-tip={t.failedTurnsHelp}>{count(failures)}</span>
      )
  }
]

const Loops = () => {
  const work = useWork()
  return (
    <Section title={t.loops}>
      <Answer of={work} lines={8}>
        {(of) => (
          <div className="stack">
            <Table caption={t.loops} rows={of.loops} rowKey={({ loop }) => loop} columns={loopColumns} />
            <OtherFacts of={of} />
          </div>
        )}
      </Answer>
    </Section>
  )
}

export const Overview = () => (
  <Page title={texts.nav.overview}>
    <div className="stack">
      <Now />
      <Troubles />
    </div>
    <InFlight />
    <div className="operator-columns">
      <Books />
      <Invariants />
    </div>
    <Loops />
  </Page>
)
