/** The console's routes. Each view is a separate file, loaded on demand. `main.tsx` explains how to add a view. */
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect
} from "@tanstack/react-router"
import { MapPinOff } from "lucide-react"
import { ButtonLink } from "../parts/Button.tsx"
import { Loading } from "../parts/States.tsx"
import { Tips } from "../parts/Tips.tsx"
import { Toasts } from "../parts/Toasts.tsx"
import { texts } from "../texts.ts"
import { consoleBase } from "./Base.ts"
import { ViewFailed } from "./Boundary.tsx"
import { Gate } from "./Gate.tsx"
import { PersonShell } from "./PersonShell.tsx"
import { takeIn } from "../views/invitation/token.ts"
import { operatorRoutes } from "../operator/Routes.tsx"

const Lost = () => (
  <main className="shell-alone">
    <div className="states-empty">
      <MapPinOff size={20} strokeWidth={1.5} aria-hidden />
      <h1 className="states-title">{texts.failed.lostView}</h1>
      <p className="quiet">{texts.failed.lostViewText}</p>
      <div className="states-action">
        <ButtonLink to="/">{texts.nav.home}</ButtonLink>
      </div>
    </div>
  </main>
)

export const rootRoute = createRootRoute({
  component: () => (
    <>
      <Outlet />
      <Toasts />
      <Tips />
    </>
  ),
  notFoundComponent: Lost
})

/** Returns a string or a number as a string, and `undefined` for any other value. */
const text = (value: unknown): string | undefined =>
  typeof value === "string" || typeof value === "number" ? String(value) : undefined

const signIn = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sign-in",
  validateSearch: (search: Record<string, unknown>): { to?: string; error?: string } => {
    const to = text(search["to"])
    const error = text(search["error"])
    return { ...(to !== undefined && { to }), ...(error !== undefined && { error }) }
  },
  component: lazyRouteComponent(() => import("../views/signin/SignIn.tsx"), "SignIn")
})

const person = createRoute({
  getParentRoute: () => rootRoute,
  id: "person",
  component: () => (
    <Gate>
      <PersonShell />
    </Gate>
  )
})

const home = createRoute({
  getParentRoute: () => person,
  path: "/",
  component: lazyRouteComponent(() => import("../views/home/Home.tsx"), "Home")
})

/** The usage view's state, stored in the URL so that users can share it and go back to it. */
export interface UsageSearch {
  readonly window?: "day" | "week" | "month" | "quarter" | "year" | "custom"
  readonly from?: string
  readonly to?: string
  readonly by?: string
  readonly grain?: "hour" | "day" | undefined
  readonly plot?: "cost" | "requests" | "tokens" | "failures"
  readonly sort?: "timestamp" | "cost" | "total_tokens" | "latency"
  readonly direction?: "asc" | "desc"
  readonly call?: string | undefined
  /** Call filters. An empty `application` selects calls made with a user token instead of a key. */
  readonly model?: string | undefined
  readonly application?: string | undefined
  readonly account?: string | undefined
  readonly payer?: string | undefined
  readonly endpoint?: string | undefined
  readonly provider?: string | undefined
  readonly end_user?: string | undefined
  readonly run?: string | undefined
  /** In the form `name=value`. */
  readonly tag?: string | undefined
  readonly state?: "ok" | "failed" | undefined
}

const usageNames = [
  "window",
  "from",
  "to",
  "by",
  "grain",
  "plot",
  "sort",
  "direction",
  "call",
  "model",
  "application",
  "account",
  "payer",
  "endpoint",
  "provider",
  "end_user",
  "run",
  "tag",
  "state"
]

const usage = createRoute({
  getParentRoute: () => person,
  path: "/usage",
  validateSearch: (search: Record<string, unknown>): UsageSearch =>
    Object.fromEntries(
      usageNames.flatMap((name) => {
        const value = text(search[name])
        return value === undefined ? [] : [[name, value]]
      })
    ),
  component: lazyRouteComponent(() => import("../views/usage/Usage.tsx"), "Usage")
})

const keys = createRoute({
  getParentRoute: () => person,
  path: "/keys",
  validateSearch: (search: Record<string, unknown>): { make?: string } => {
    const make = text(search["make"])
    return make === undefined ? {} : { make }
  },
  component: lazyRouteComponent(() => import("../views/keys/Keys.tsx"), "Keys")
})

const only =
  <Name extends string>(...names: ReadonlyArray<Name>) =>
  (search: Record<string, unknown>): { readonly [name in Name]?: string } =>
    Object.fromEntries(
      names.flatMap((name) => {
        const value = text(search[name])
        return value === undefined ? [] : [[name, value]]
      })
    ) as { readonly [name in Name]?: string }

const budgets = createRoute({
  getParentRoute: () => person,
  path: "/budgets",
  component: lazyRouteComponent(() => import("../views/budgets/Budgets.tsx"), "Budgets")
})

const runs = createRoute({
  getParentRoute: () => person,
  path: "/runs",
  validateSearch: only("page"),
  component: lazyRouteComponent(() => import("../views/runs/Runs.tsx"), "Runs")
})

const run = createRoute({
  getParentRoute: () => person,
  path: "/runs/$run_id",
  component: lazyRouteComponent(() => import("../views/runs/Run.tsx"), "Run")
})

const credit = createRoute({
  getParentRoute: () => person,
  path: "/credit",
  validateSearch: only("page", "buy", "source"),
  component: lazyRouteComponent(() => import("../views/credit/Credit.tsx"), "Credit")
})

const transfers = createRoute({
  getParentRoute: () => person,
  path: "/transfers",
  validateSearch: only("send", "transfer", "tab", "page"),
  component: lazyRouteComponent(() => import("../views/transfers/Transfers.tsx"), "Transfers")
})

const team = createRoute({
  getParentRoute: () => person,
  path: "/team",
  validateSearch: only("tab", "make", "days"),
  component: lazyRouteComponent(() => import("../views/team/Team.tsx"), "Team")
})

const notifications = createRoute({
  getParentRoute: () => person,
  path: "/notifications",
  validateSearch: only("page"),
  component: lazyRouteComponent(() => import("../views/notifications/Notifications.tsx"), "Notifications")
})

const account = createRoute({
  getParentRoute: () => person,
  path: "/account",
  component: lazyRouteComponent(() => import("../views/account/Account.tsx"), "Account")
})

/** The target of invitation emails. It requires no sign-in. The token is removed from the URL before rendering. */
const invitation = createRoute({
  getParentRoute: () => rootRoute,
  path: "/invitation",
  beforeLoad: ({ location: { hash } }) => {
    if (takeIn(hash)) throw redirect({ to: "/invitation", hash: "", replace: true })
  },
  component: lazyRouteComponent(() => import("../views/invitation/Invitation.tsx"), "Invitation")
})

const playground = createRoute({
  getParentRoute: () => person,
  path: "/playground",
  validateSearch: only("make", "call"),
  component: lazyRouteComponent(() => import("../views/playground/Playground.tsx"), "Playground")
})

const tree = rootRoute.addChildren([
  signIn,
  invitation,
  person.addChildren([
    home,
    usage,
    keys,
    budgets,
    runs,
    run,
    credit,
    transfers,
    team,
    playground,
    notifications,
    account
  ]),
  ...operatorRoutes(rootRoute)
])

/** Parses search parameters as plain strings, not as JSON. */
const parseSearch = (search: string): Record<string, string> => Object.fromEntries(new URLSearchParams(search))
const stringifySearch = (search: Record<string, unknown>): string => {
  const entries = Object.entries(search).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]]
  )
  return entries.length === 0 ? "" : `?${new URLSearchParams(entries).toString()}`
}

export const router = createRouter({
  routeTree: tree,
  basepath: consoleBase.pathname,
  parseSearch,
  stringifySearch,
  defaultPreload: "intent",
  defaultPendingComponent: () => <Loading />,
  defaultErrorComponent: ViewFailed,
  scrollRestoration: true
})

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router
  }
}
