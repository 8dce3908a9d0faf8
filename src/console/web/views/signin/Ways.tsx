/** Shows the sign-in methods. In a sandbox, visitors can sign in as any user. */
import { ArrowRight } from "lucide-react"
import { useState } from "react"
import { consoleUrl } from "../../app/Base.ts"
import { hasPasskeys } from "../../app/WebAuthn.ts"
import { useProviders } from "../../app/Providers.ts"
import { Button } from "../../parts/Button.tsx"
import { TextField } from "../../parts/Fields.tsx"
import { Answer } from "../../parts/States.tsx"
import { texts } from "../../texts.ts"
import { ByPasskey } from "./ByPasskey.tsx"

const people = ["Ada", "Grace", "Alan", "Katherine"] as const

/** Returns the URL that starts a sign-in, which sets the cookie and returns to `to`. */
const linkOf = (provider: string, to: string, hint?: string): string => {
  const query = new URLSearchParams({ to, ...(hint !== undefined && { login_hint: hint }) })
  return `${consoleUrl(`sign-in/${provider}`)}?${query.toString()}`
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

/** `to` is the path of the view to open afterwards, relative to the console. */
export const Ways = ({ to }: { readonly to: string }) => (
  <Answer of={useProviders()} lines={2}>
    {({ passkeys, providers: all, sandbox }) => (
      <>
        <div className="stack">
          {all.map(({ id, name }) => (
            <a key={id} className="button button-primary signin-provider" href={linkOf(id, to)}>
              {texts.signIn.with(name)}
            </a>
          ))}
          {passkeys && hasPasskeys() ? <ByPasskey /> : null}
          {all.length === 0 ? <p>{texts.signIn.none}</p> : null}
        </div>
        {sandbox && all[0] !== undefined ? <Sandbox provider={all[0].id} to={to} /> : null}
      </>
    )}
  </Answer>
)
