/** The frame of the operator's views, behind the operator's own session. */
import { Gauge, LogOut } from "lucide-react"
import { useEffect } from "react"
import { Mark } from "../app/Brand.tsx"
import { useSession } from "../app/Session.ts"
import { Shell } from "../app/Shell.tsx"
import { Button } from "../parts/Button.tsx"
import { Code } from "../parts/Code.tsx"
import { Failed, Loading } from "../parts/States.tsx"
import { texts } from "../texts.ts"
import { operatorSession } from "./OperatorSession.ts"

const NoSession = () => (
  <main className="shell-alone">
    <div className="signin">
      <h1 className="row page-title">
        <Mark size={26} /> {texts.operator.signIn}
      </h1>
      <p>{texts.operator.signInText}</p>
      <Code of="tollgate operator" />
      <p className="quiet">{texts.operator.ended}</p>
    </div>
  </main>
)

export const OperatorShell = () => {
  const state = useSession(operatorSession)
  useEffect(() => {
    if (state.kind === "unknown") void operatorSession.renew()
  }, [state.kind])
  if (state.kind === "none") return <NoSession />
  if (state.kind !== "open") {
    return (
      <main className="shell-alone">
        {state.kind === "unreachable" ? (
          <Failed error={state.error} title={texts.failed.reached} retry={() => void operatorSession.renew()} />
        ) : (
          <Loading lines={3} />
        )}
      </main>
    )
  }
  return (
    <Shell
      tone="operator"
      name={texts.operator.title}
      nav={[[{ to: "/operator", text: texts.operator.home, icon: Gauge, isExact: true }]]}
      live="off"
      bottom={
        <Button kind="ghost" icon={LogOut} onPress={() => void operatorSession.end()}>
          {texts.operator.signOut}
        </Button>
      }
    />
  )
}
