/** The frame around the operator's views. It opens the operator's session. */
import { useLocation } from "@tanstack/react-router"
import {
  Building2,
  CalendarClock,
  ChartColumn,
  CircleGauge,
  FileDiff,
  Gauge,
  History,
  Hourglass,
  KeyRound,
  LogOut,
  MonitorSmartphone,
  Network,
  Scale,
  Search,
  Ticket,
  Undo2,
  Users
} from "lucide-react"
import { useEffect } from "react"
import { Mark } from "../app/Brand.tsx"
import { useLiveState } from "../app/Live.ts"
import { useSession } from "../app/Session.ts"
import { queries } from "../app/Queries.ts"
import { Shell } from "../app/Shell.tsx"
import { Button } from "../parts/Button.tsx"
import { Code } from "../parts/Code.tsx"
import { Failed, Loading } from "../parts/States.tsx"
import { texts as common } from "../texts.ts"
import { operatorLive } from "./OperatorLive.ts"
import { operatorSession } from "./OperatorSession.ts"
import { operatorTexts as texts } from "../texts/operator.ts"

const NoSession = () => (
  <main className="shell-alone">
    <div className="signin">
      <h1 className="row page-title">
        <Mark size={26} /> {texts.signIn}
      </h1>
      <p>{texts.signInText}</p>
      <Code of="tollgate operator" />
      <p className="quiet">{texts.ended}</p>
    </div>
  </main>
)

const nav = [
  [
    { to: "/operator", text: texts.nav.overview, icon: Gauge, isExact: true },
    { to: "/operator/find", text: texts.nav.find, icon: Search }
  ],
  [
    { to: "/operator/people", text: texts.nav.people, icon: Users },
    { to: "/operator/tenants", text: texts.nav.tenants, icon: Building2 },
    { to: "/operator/allowances", text: texts.nav.allowances, icon: CalendarClock },
    { to: "/operator/vouchers", text: texts.nav.vouchers, icon: Ticket },
    { to: "/operator/budgets", text: texts.nav.budgets, icon: CircleGauge },
    { to: "/operator/management-keys", text: texts.nav.managementKeys, icon: KeyRound }
  ],
  [
    { to: "/operator/upstreams", text: texts.nav.upstreams, icon: Network },
    { to: "/operator/costs", text: texts.nav.costs, icon: ChartColumn },
    { to: "/operator/drift", text: texts.nav.drift, icon: FileDiff },
    { to: "/operator/reconciliations", text: texts.nav.reconciliations, icon: Scale }
  ],
  [
    { to: "/operator/reservations", text: texts.nav.reservations, icon: Hourglass },
    { to: "/operator/owed", text: texts.nav.owed, icon: Undo2 }
  ],
  [
    { to: "/operator/audit", text: texts.nav.audit, icon: History },
    { to: "/operator/sessions", text: texts.nav.sessions, icon: MonitorSmartphone }
  ]
] as const

const Frame = ({ name }: { readonly name: string }) => {
  const live = useLiveState(operatorLive)
  useEffect(() => {
    operatorLive.start()
    return () => {
      operatorLive.stop()
      // The next operator must not see this data.
      queries.removeQueries({ queryKey: ["operator"] })
    }
  }, [])
  return (
    <Shell
      tone="operator"
      home="/operator"
      name={texts.title}
      nav={nav}
      live={live}
      bottom={
        <div className="stack operator-who">
          <span className="quiet small ellipsis">{texts.signedInAs(name)}</span>
          <Button icon={LogOut} onPress={() => void operatorSession.end()}>
            {texts.signOut}
          </Button>
        </div>
      }
    />
  )
}

export const OperatorShell = () => {
  const state = useSession(operatorSession)
  const hash = useLocation({ select: ({ hash }) => hash })
  useEffect(() => {
    // If the tab already shows the console, opening a link changes only the hash.
    if (state.kind === "unknown" || hash.startsWith("code=")) void operatorSession.renew()
  }, [state.kind, hash])
  if (state.kind === "none") return <NoSession />
  if (state.kind === "open") return <Frame name={state.grant.name} />
  return (
    <main className="shell-alone">
      {state.kind === "unreachable" ? (
        <Failed error={state.error} title={common.failed.reached} retry={() => void operatorSession.renew()} />
      ) : (
        <Loading lines={3} />
      )}
    </main>
  )
}
