/**
 * The console's page. It begins here.
 *
 * `app/`      what is there once: session, client, live events, cache, addresses (`Router`), frame (`Shell`)
 * `parts/`    what views are made of: `Page` and `Section`, `Table`, `Plot`, `Money`, `When`, `Dialog`, `Fields`, `States`, ...
 * `views/`    a folder a view, its style beside it; `operator/` the operator's, behind a session of its own
 * `texts.ts` and `texts/`  every text · `money.ts` exact amounts · `moments.ts` instants and counts in the reader's language · `theme.css` the look
 * `Contract.d.ts`  the contract as types, generated
 *
 * A new view, in five steps:
 * 1. `views/<name>/<Name>.tsx` exports a component that returns `<Page title=...>` with `<Section>`s. It does not know where it is.
 * 2. A line in `app/Router.tsx` (`lazyRouteComponent`; what is looked at belongs into the address, by `validateSearch`), and one in
 *    `app/PersonShell.tsx` if it is part of the navigation.
 * 3. It asks by `useQuery` with `api.GET(...)` inside `resultOf` (envelope) or `asked` (none); the key is `[about, tenant, ...]`, and `about`
 *    one of `app/PersonLive.ts` if events make it old. `<Answer of={query}>` shows loading and failure. It changes by `useMutation`; the
 *    error goes to `<FormOf error=...>`, which shows a refusal's own text at the field that it names.
 * 4. Texts go into `texts.ts`; amounts through `<Money>` (never a calculation on `Usd`: `nano` of `money.ts` first), instants through `<When>`.
 * 5. A `.css` file beside it, if it needs one: class names begin with the view's name. The build takes every `.css`; nothing imports it.
 *
 * The policy of the page allows no inline script or style element, no eval, and nothing of another origin. A `#fragment` link would leave the
 * view (there is a `<base>`): move the focus instead. `test/console/Browser.ts` drives it in a real Chromium.
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
      {/* The texts of React Aria are in the console's language; numbers and dates are in the reader's, by `moments.ts` and `money.ts`. */}
      <I18nProvider locale="en-US">
        <QueryClientProvider client={queries}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      </I18nProvider>
    </Boundary>
  </StrictMode>
)
