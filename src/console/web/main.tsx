/**
 * The entry point of the console's page.
 *
 * `app/`      shared state: session, client, live events, cache, routes (`Router`), frame (`Shell`)
 * `parts/`    components of views: `Page` and `Section`, `Table`, `Plot`, `Money`, `When`, `Dialog`, `Fields`, `States`, ...
 * `views/`    one folder per view, with its style; `operator/` has the operator's views, with their own session
 * `texts.ts` and `texts/`  all texts · `money.ts` exact amounts · `moments.ts` instants and counts in the reader's language · `theme.css` the design
 * `Contract.d.ts`  the contract as types, generated
 *
 * A new view, in five steps:
 * 1. `views/<name>/<Name>.tsx` exports a component that returns `<Page title=...>` with `<Section>`s. It does not depend on its position.
 * 2. Add a line to `app/Router.tsx` (`lazyRouteComponent`; the state of the view belongs in the URL, with `validateSearch`), and one to
 *    `app/PersonShell.tsx` if it belongs to the navigation.
 * 3. Query with `useQuery` and `api.GET(...)` inside `resultOf` (envelope) or `asked` (no envelope). The key is `[topic, tenant, ...]`; use a topic
 *    of `app/PersonLive.ts` if events invalidate it. `<Answer of={query}>` shows loading and failure. Change data with `useMutation`, and pass the
 *    error to `<FormOf error=...>`, which shows a refusal's text at the field that it names.
 * 4. Put texts into `texts.ts`. Show amounts with `<Money>` (never calculate with `Usd`: convert with `nano` of `money.ts` first) and instants with
 *    `<When>`.
 * 5. Add a `.css` file next to it if necessary. Class names begin with the view's name. The build includes every `.css`; nothing imports it.
 *
 * The page's policy allows no inline script or style element, no eval, and no other origin. A `#fragment` link would leave the view (because of
 * `<base>`): move the focus instead. `test/console/Browser.ts` drives the page in a real Chromium.
 */
import { RouterProvider } from "@tanstack/react-router"
import { StrictMode } from "react"
import { createRoot } from "react-dom/client"
import { I18nProvider } from "react-aria-components/I18nProvider"
import { Boundary } from "./app/Boundary.tsx"
import { queries, QueryClientProvider } from "./app/Queries.ts"
import { router } from "./app/Router.tsx"

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <Boundary>
      {/* React Aria's texts are in the console's language. `moments.ts` and `money.ts` format numbers and dates in the reader's. */}
      <I18nProvider locale="en-US">
        <QueryClientProvider client={queries}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      </I18nProvider>
    </Boundary>
  </StrictMode>
)
