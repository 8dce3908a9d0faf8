/** The operator's part of the console: a session and a navigation of its own, loaded by nobody else. */
import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import type { AnyRoute } from "@tanstack/react-router"

/** The routes below `/operator`. */
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
  return [frame.addChildren([overview])] as const
}
