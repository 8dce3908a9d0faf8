/** The sign-in page. */
import { getRouteApi, useRouter } from "@tanstack/react-router"
import { useEffect } from "react"
import { safeConsoleUrl } from "../../app/Base.ts"
import { Mark } from "../../app/Brand.tsx"
import { personSession } from "../../app/PersonSession.ts"
import { useProviders } from "../../app/Providers.ts"
import { useSession } from "../../app/Session.ts"
import { Loading } from "../../parts/States.tsx"
import { texts } from "../../texts.ts"
import { Ways } from "./Ways.tsx"

const route = getRouteApi("/sign-in")

/** Returns the text for the error code in the URL. The code is untrusted. */
const errorText = (error: string): string =>
  (Object.hasOwn(texts.signIn.errors, error) ? texts.signIn.errors[error] : undefined) ?? texts.signIn.errorElse

export const SignIn = () => {
  const { error, to = "" } = route.useSearch()
  const providers = useProviders()
  const state = useSession(personSession)
  const { history } = useRouter()
  // Look for an existing session unless the last sign-in failed, and redirect a user with an open session.
  const isAsked = error === undefined && state.kind === "unknown"
  useEffect(() => {
    if (isAsked) void personSession.renew()
    if (state.kind === "open") history.replace(safeConsoleUrl(to))
  }, [isAsked, state.kind, history, to])
  if (isAsked || state.kind === "open") {
    return (
      <main className="shell-alone">
        <Loading lines={3} />
      </main>
    )
  }
  return (
    <main className="shell-alone">
      <div className="signin">
        <header className="stack">
          <h1 className="row page-title">
            <Mark size={26} /> {providers.data?.service_name ?? texts.app.console}
          </h1>
          <p className="signin-lead">{texts.signIn.lead}</p>
        </header>
        {error === undefined ? null : (
          <p className="signin-error" role="alert">
            {errorText(error)}
          </p>
        )}
        <Ways to={to} />
      </div>
    </main>
  )
}
