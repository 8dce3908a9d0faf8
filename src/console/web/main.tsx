/**
 * The console's entry point.
 *
 * `app/`      shared state: session, client, live events, cache, routes (`Router`) and frame (`Shell`)
 * `parts/`    components: `Page` and `Section`, `Table`, `Plot`, `Money`, `When`, `Dialog`, `Fields`, `States`, ...
 * `views/`    one folder per view, with its style sheet
 * `operator/` the operator's views, with their own session
 * `texts.ts` and `texts/` all texts · `money.ts` exact amounts · `moments.ts` times and counts in the user's language · `theme.css` the design
 * `Contract.d.ts` the contract as generated types
 *
 * To add a view:
 * 1. Write `views/<name>/<Name>.tsx`. It must export a component that returns `<Page title=...>` with `<Section>`s.
 * 2. Add a route to `app/Router.tsx` with `lazyRouteComponent`. Store the view's state in the URL with `validateSearch`. If the view belongs to the
 *    navigation, add it to `app/PersonShell.tsx`.
 * 3. Query with `useQuery` and `api.GET(...)` inside `resultOf` (envelope) or `asked` (no envelope). The key is `[topic, tenant, ...]`. If events
 *    invalidate the query, use a topic from `app/PersonLive.ts`. `<Answer of={query}>` shows loading and failure. Change data with `useMutation` and
 *    pass the error to `<FormOf error=...>`, which shows the error's text at the field that it names.
 * 4. Put texts into `texts.ts`. Show amounts with `<Money>` and times with `<When>`. Never calculate with `Usd`: convert it with `nano` first.
 * 5. If necessary, add a `.css` file next to the view. Prefix class names with the view's name. The build includes every `.css` file.
 *
 * The page's policy forbids inline scripts, inline style elements, `eval` and other origins. Because of `<base>`, a `#fragment` link would leave the
 * view. Move the focus instead. `test/console/Browser.ts` drives the page in a real Chromium.
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
      {/* React Aria uses the console's language; `moments.ts` and `money.ts` use the user's locale. */}
      <I18nProvider locale="en-US">
        <QueryClientProvider client={queries}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      </I18nProvider>
    </Boundary>
  </StrictMode>
)
