/** The routes of the operator's views. The views have their own session and navigation, and are loaded only for operators. */
import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import type { AnyRoute } from "@tanstack/react-router"

/** Picks the named search parameters that are nonempty strings. */
const only =
  <K extends string>(...names: ReadonlyArray<K>) =>
  (search: Record<string, unknown>): { readonly [N in K]?: string | undefined } =>
    Object.fromEntries(
      names.flatMap((name) => {
        const value = search[name]
        return typeof value === "string" && value !== "" ? [[name, value]] : []
      })
    ) as { readonly [N in K]?: string }

const provisionRoutes = <R extends AnyRoute>(frame: R) => {
  const people = createRoute({
    getParentRoute: () => frame,
    path: "/people",
    component: lazyRouteComponent(() => import("./Listing.tsx"), "People")
  })
  const tenants = createRoute({
    getParentRoute: () => frame,
    path: "/tenants",
    component: lazyRouteComponent(() => import("./Listing.tsx"), "Tenants")
  })
  const managementKeys = createRoute({
    getParentRoute: () => frame,
    path: "/management-keys",
    component: lazyRouteComponent(() => import("./ManagementKeys.tsx"), "ManagementKeys")
  })
  const allowances = createRoute({
    getParentRoute: () => frame,
    path: "/allowances",
    component: lazyRouteComponent(() => import("./Allowances.tsx"), "Allowances")
  })
  const vouchers = createRoute({
    getParentRoute: () => frame,
    path: "/vouchers",
    component: lazyRouteComponent(() => import("./Vouchers.tsx"), "Vouchers")
  })
  const budgets = createRoute({
    getParentRoute: () => frame,
    path: "/budgets",
    component: lazyRouteComponent(() => import("./Budgets.tsx"), "OperatorBudgets")
  })
  return [people, tenants, managementKeys, allowances, vouchers, budgets] as const
}

const watchRoutes = <R extends AnyRoute>(frame: R) => {
  const upstreams = createRoute({
    getParentRoute: () => frame,
    path: "/upstreams",
    component: lazyRouteComponent(() => import("./Upstreams.tsx"), "Upstreams")
  })
  const costs = createRoute({
    getParentRoute: () => frame,
    path: "/costs",
    validateSearch: only("from", "to", "by", "plot"),
    component: lazyRouteComponent(() => import("./Costs.tsx"), "Costs")
  })
  const drift = createRoute({
    getParentRoute: () => frame,
    path: "/drift",
    component: lazyRouteComponent(() => import("./Drift.tsx"), "Drift")
  })
  const reconciliations = createRoute({
    getParentRoute: () => frame,
    path: "/reconciliations",
    validateSearch: only("vendor", "from", "to", "by", "cause", "model"),
    component: lazyRouteComponent(() => import("./Reconciliations.tsx"), "Reconciliations")
  })
  const reservations = createRoute({
    getParentRoute: () => frame,
    path: "/reservations",
    component: lazyRouteComponent(() => import("./Reservations.tsx"), "Reservations")
  })
  const owed = createRoute({
    getParentRoute: () => frame,
    path: "/owed",
    component: lazyRouteComponent(() => import("./Owed.tsx"), "Owed")
  })
  return [upstreams, costs, drift, reconciliations, reservations, owed] as const
}

export const operatorRoutes = <R extends AnyRoute>(root: R) => {
  const frame = createRoute({
    getParentRoute: () => root,
    path: "/operator",
    component: lazyRouteComponent(() => import("./OperatorShell.tsx"), "OperatorShell")
  })
  const overview = createRoute({
    getParentRoute: () => frame,
    path: "/",
    component: lazyRouteComponent(() => import("./Overview.tsx"), "Overview")
  })
  const find = createRoute({
    getParentRoute: () => frame,
    path: "/find",
    validateSearch: only("q"),
    component: lazyRouteComponent(() => import("./Find.tsx"), "Find")
  })
  const tenant = createRoute({
    getParentRoute: () => frame,
    path: "/tenants/$tenant_id",
    component: lazyRouteComponent(() => import("./Tenant.tsx"), "Tenant")
  })
  const person = createRoute({
    getParentRoute: () => frame,
    path: "/people/$account_id",
    component: lazyRouteComponent(() => import("./Person.tsx"), "Person")
  })
  const audit = createRoute({
    getParentRoute: () => frame,
    path: "/audit",
    validateSearch: only("operator", "tenant_id", "account_id"),
    component: lazyRouteComponent(() => import("./Audit.tsx"), "Audit")
  })
  const sessions = createRoute({
    getParentRoute: () => frame,
    path: "/sessions",
    component: lazyRouteComponent(() => import("./Sessions.tsx"), "Sessions")
  })
  return [
    frame.addChildren([
      overview,
      find,
      tenant,
      person,
      ...provisionRoutes(frame),
      ...watchRoutes(frame),
      audit,
      sessions
    ])
  ] as const
}
