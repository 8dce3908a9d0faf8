/** Error boundaries. Each replaces only its part of the page if that part fails to render. */
import type { ErrorComponentProps } from "@tanstack/react-router"
import { RotateCw } from "lucide-react"
import { Component } from "react"
import type { ReactNode } from "react"
import { Button } from "../parts/Button.tsx"
import { texts } from "../texts.ts"
import { SignedOut } from "./Refusal.ts"
import { personSession } from "./PersonSession.ts"

const described = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message}` : String(error)

export const ViewFailed = ({ error }: Pick<ErrorComponentProps, "error">) => {
  if (error instanceof SignedOut) void personSession.renew()
  return (
    <div className="states-failed" role="alert">
      <p className="states-title">{texts.failed.pageTitle}</p>
      <p>{texts.failed.page}</p>
      <pre className="states-detail">{described(error)}</pre>
      <div>
        <Button icon={RotateCw} onPress={() => location.reload()}>
          {texts.app.reload}
        </Button>
      </div>
    </div>
  )
}

interface State {
  readonly error: unknown
}

/** The error boundary for content outside the router's views. */
export class Boundary extends Component<{ readonly children: ReactNode }, State> {
  override state: State = { error: undefined }

  static getDerivedStateFromError(error: unknown): State {
    return { error }
  }

  override render(): ReactNode {
    return this.state.error === undefined ? (
      this.props.children
    ) : (
      <main className="shell-alone">
        <ViewFailed error={this.state.error as Error} />
      </main>
    )
  }
}
