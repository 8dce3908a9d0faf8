/** The frame around the views of a signed-in user: tenant, navigation and account. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { Link, useNavigate } from "@tanstack/react-router"
import {
  ArrowLeftRight,
  Bell,
  BookOpen,
  ChartColumn,
  ChevronsUpDown,
  CreditCard,
  Gauge,
  House,
  KeyRound,
  LogOut,
  MessageSquareText,
  UserRound,
  Users
} from "lucide-react"
import { useEffect } from "react"
import { Menu } from "../parts/Menu.tsx"
import { toast } from "../parts/Toasts.tsx"
import { advice } from "../parts/States.tsx"
import { texts } from "../texts.ts"
import { useMe, useMembership, useMemberships } from "./Asking.ts"
import { apiRoot } from "./Base.ts"
import { api, resultOf, tenantId } from "./Client.ts"
import { useLiveState } from "./Live.ts"
import { keepFresh, live } from "./PersonLive.ts"
import { personSession } from "./PersonSession.ts"
import { useProviders } from "./Providers.ts"
import { useSession } from "./Session.ts"
import { Shell } from "./Shell.tsx"
import type { NavEntry } from "./Shell.tsx"
import { switchTo } from "./Switching.ts"
import { setTheme, themes, useTheme } from "./Theme.ts"

const initial = (name: string): string => [...name.trim()][0]?.toUpperCase() ?? "?"

const Tenants = () => {
  const { data: memberships } = useMemberships()
  const current = useMembership()
  const queries = useQueryClient()
  const choose = async (tenant: string): Promise<void> => {
    try {
      await switchTo(tenant, queries)
    } catch (error) {
      toast(advice(error), "bad")
    }
  }
  if (current === undefined) return null
  const word = (isHome: boolean): string => (isHome ? texts.tenant.home : texts.tenant.team)
  return (
    <div className="shell-tenant">
      <Menu
        label={texts.tenant.label}
        trigger={
          <>
            <span className="shell-initial" aria-hidden>
              {initial(current.tenant_name)}
            </span>
            <span className="shell-person">
              <span className="ellipsis">{current.tenant_name}</span>
              <small>
                {word(current.is_home)} · {texts.tenant.roles[current.role]}
              </small>
            </span>
            <ChevronsUpDown className="push" size={14} aria-hidden />
          </>
        }
        sections={[
          {
            title: texts.tenant.label,
            entries: (memberships ?? [])
              .filter(({ status }) => status === "active")
              .map(({ is_home, tenant_id, tenant_name }) => ({
                id: tenant_id,
                name: tenant_name,
                text: `${tenant_name} · ${word(is_home)}`,
                isChosen: tenant_id === current.tenant_id,
                onAction: () => void choose(tenant_id)
              }))
          }
        ]}
      />
    </div>
  )
}

const Account = () => {
  const { data: me } = useMe()
  const theme = useTheme()
  const navigate = useNavigate()
  const queries = useQueryClient()
  const signOut = async (): Promise<void> => {
    try {
      await personSession.end()
      live.stop()
      queries.clear()
    } catch (error) {
      toast(advice(error), "bad")
    }
  }
  const name = me?.account.name || me?.account.email || "…"
  return (
    <Menu
      label={texts.account.menu}
      trigger={
        <>
          <span className="shell-initial" aria-hidden>
            {initial(name)}
          </span>
          <span className="shell-person">
            <span className="ellipsis">{name}</span>
            <small className="ellipsis">{me?.account.email}</small>
          </span>
        </>
      }
      sections={[
        {
          title: texts.account.theme,
          entries: themes.map((one) => ({
            id: one,
            name: texts.account.themes[one],
            text: texts.account.themes[one],
            isChosen: theme === one,
            onAction: () => setTheme(one)
          }))
        },
        {
          entries: [
            {
              id: "own",
              name: texts.account.own,
              text: texts.account.own,
              icon: UserRound,
              onAction: () => void navigate({ to: "/account" })
            },
            {
              id: "docs",
              name: texts.account.documents,
              text: texts.account.documents,
              icon: BookOpen,
              href: `${apiRoot}/docs`
            },
            {
              id: "out",
              name: texts.account.signOut,
              text: texts.account.signOut,
              icon: LogOut,
              onAction: () => void signOut()
            }
          ]
        }
      ]}
    />
  )
}

const Alarm = ({ count }: { readonly count: number }) => (
  <Link to="/notifications" className="button button-ghost button-icon shell-bell" aria-label={texts.bell(count)}>
    <Bell size={18} strokeWidth={1.75} aria-hidden />
    {count === 0 ? null : <span className="shell-count">{count > 99 ? "99+" : count}</span>}
  </Link>
)

const useUnread = (): number => {
  const { data } = useQuery({
    queryKey: ["notifications", "unread"],
    queryFn: () => resultOf(api.GET("/v1/notifications", { params: { query: { per_page: "1" } } }))
  })
  return data?.unread ?? 0
}

export const PersonShell = () => {
  // Re-renders when the session changes, for example when the user switches tenants.
  useSession(personSession)
  const { data: providers } = useProviders()
  const queries = useQueryClient()
  const unread = useUnread()
  const state = useLiveState(live)
  useEffect(() => {
    live.start()
    const stop = keepFresh(queries)
    return () => {
      stop()
      live.stop()
    }
  }, [queries])
  const nav: ReadonlyArray<ReadonlyArray<NavEntry>> = [
    [
      { to: "/", text: texts.nav.home, icon: House, isExact: true },
      { to: "/usage", text: texts.nav.usage, icon: ChartColumn },
      { to: "/keys", text: texts.nav.keys, icon: KeyRound },
      { to: "/budgets", text: texts.nav.budgets, icon: Gauge }
    ],
    [
      { to: "/credit", text: texts.nav.credit, icon: CreditCard },
      { to: "/transfers", text: texts.nav.transfers, icon: ArrowLeftRight },
      { to: "/team", text: texts.nav.team, icon: Users }
    ],
    [
      { to: "/playground", text: texts.nav.playground, icon: MessageSquareText },
      { to: "/notifications", text: texts.nav.notifications, icon: Bell, count: unread }
    ]
  ]
  return (
    // All views belong to one tenant, so switching tenants remounts them.
    <Shell
      key={tenantId()}
      name={providers?.service_name ?? texts.app.console}
      nav={nav}
      top={<Tenants />}
      bottom={<Account />}
      live={state}
      aside={<Alarm count={unread} />}
    />
  )
}
