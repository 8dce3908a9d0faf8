/** Signing in: by a provider; in a sandbox as anybody. */
import { getRouteApi, useRouter } from "@tanstack/react-router"
import { ArrowRight } from "lucide-react"
import { useEffect, useState } from "react"
import { addressOf } from "../../app/Base.ts"
import { Mark } from "../../app/Brand.tsx"
import { personSession } from "../../app/PersonSession.ts"
import { useProviders } from "../../app/Providers.ts"
import { useSession } from "../../app/Session.ts"
import { Button } from "../../parts/Button.tsx"
import { TextField } from "../../parts/Fields.tsx"
import { Answer } from "../../parts/States.tsx"
import { texts } from "../../texts.ts"

const route = getRouteApi("/sign-in")
const people = ["Ada", "Grace", "Alan", "Katherine"] as const

/** A sign-in is a navigation: it ends at the view that was wanted, with the cookie set. */
const linkOf = (provider: string, to: string, hint?: string): string => {
  const query = new URLSearchParams({ to, ...(hint !== undefined && { login_hint: hint }) })
  return `${addressOf(`sign-in/${provider}`)}?${query.toString()}`
}

const Sandbox = ({ provider, to }: { readonly provider: string; readonly to: string }) => {
  const [name, setName] = useState("")
  return (
    <section className="stack signin-sandbox" aria-label={texts.signIn.sandboxTitle}>
      <h2 className="section-title">{texts.signIn.sandboxTitle}</h2>
      <p className="quiet">{texts.signIn.sandboxLead}</p>
      <div className="signin-people">
        {people.map((person) => (
          <a key={person} className="button button-plain" href={linkOf(provider, to, person)}>
            {person}
          </a>
        ))}
      </div>
      <form
        className="signin-else"
        onSubmit={(event) => {
          event.preventDefault()
          if (name.trim() !== "") location.assign(linkOf(provider, to, name.trim()))
        }}
      >
        <TextField
          name="name"
          label={texts.signIn.someoneElse}
          placeholder={texts.signIn.name}
          value={name}
          onChange={setName}
        />
        <Button type="submit" icon={ArrowRight} aria-label={texts.signIn.go} />
      </form>
    </section>
  )
}

export const SignIn = () => {
  const { error, to = "" } = route.useSearch()
  const providers = useProviders()
  const state = useSession(personSession)
  const { history } = useRouter()
  useEffect(() => {
    if (state.kind === "open") history.replace(addressOf(to))
  }, [state.kind, history, to])
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
            {texts.signIn.errors[error] ?? texts.signIn.errorElse}
          </p>
        )}
        <Answer of={providers} lines={2}>
          {({ providers: all, sandbox }) => (
            <>
              <div className="stack">
                {all.map(({ id, name }) => (
                  <a key={id} className="button button-primary signin-provider" href={linkOf(id, to)}>
                    {texts.signIn.with(name)}
                  </a>
                ))}
                {all.length === 0 ? <p>{texts.signIn.none}</p> : null}
              </div>
              {sandbox && all[0] !== undefined ? <Sandbox provider={all[0].id} to={to} /> : null}
            </>
          )}
        </Answer>
      </div>
    </main>
  )
}
