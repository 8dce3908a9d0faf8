/** Placeholders for content that is loading, empty or failed. A failure offers a retry. */
import type { LucideIcon } from "lucide-react"
import { RotateCw } from "lucide-react"
import type { UseQueryResult } from "@tanstack/react-query"
import { useState } from "react"
import type { ReactNode } from "react"
import { Refusal, SignedOut, Unreachable } from "../app/Refusal.ts"
import { texts } from "../texts.ts"
import { Button } from "./Button.tsx"
import { Copy } from "./Copy.tsx"

/** Shows placeholder lines that keep the layout stable. They appear after a short delay, because most responses arrive sooner. */
export const Loading = ({ lines = 4 }: { readonly lines?: number }) => (
  <div className="states-loading" role="status">
    <span className="sr-only">{texts.app.loading}</span>
    {Array.from({ length: lines }, (_, line) => (
      <span key={line} className="states-line" />
    ))}
  </div>
)

interface EmptyProps {
  readonly icon?: LucideIcon
  readonly title: string
  readonly children?: ReactNode
  readonly action?: ReactNode
}

export const Empty = ({ action, children, icon: Icon, title }: EmptyProps) => (
  <div className="states-empty">
    {Icon === undefined ? null : <Icon size={20} strokeWidth={1.5} aria-hidden />}
    <p className="states-title">{title}</p>
    {children === undefined ? null : <p className="quiet">{children}</p>}
    {action === undefined ? null : <div className="states-action">{action}</div>}
  </div>
)

/** Returns a sentence that explains an error and what to do about it. */
export const advice = (error: unknown): string => {
  if (error instanceof Unreachable) return texts.failed.unreachable
  if (error instanceof SignedOut) return texts.signIn.ended
  if (!(error instanceof Refusal)) return texts.failed.wrong
  if (error.status === 403 && isAboutScope(error)) return texts.failed.forbidden
  if (error.status === 404) return texts.failed.missing
  if (error.status === 429 && (error.code === undefined || error.code === "rate_limited")) {
    return texts.failed.limited(undefined)
  }
  if (error.status === 503) return texts.failed.unavailable
  return error.status >= 500 ? texts.failed.wrong : sentence(error.message)
}

/** Returns whether a 403 concerns the user's role or scope. The console has its own text for these errors. */
const isAboutScope = ({ code }: Refusal): boolean =>
  code === undefined || code === "insufficient_scope" || code === "insufficient_role"

const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`

interface FailedProps {
  readonly error: unknown
  readonly retry?: () => void
  readonly isRetrying?: boolean
  readonly title?: string
}

export const Failed = ({ error, isRetrying = false, retry, title = texts.failed.title }: FailedProps) => {
  const requestId = error instanceof Refusal ? error.requestId : undefined
  return (
    <div className="states-failed" role="alert">
      <p className="states-title">{title}</p>
      <p className="quiet">{advice(error)}</p>
      <div className="states-ways">
        {retry === undefined ? null : (
          <Button icon={RotateCw} isPending={isRetrying} onPress={retry}>
            {texts.app.retry}
          </Button>
        )}
        {requestId === undefined ? null : (
          <p className="row small quiet">
            <span className="sr-only">{texts.failed.requestId}</span>
            <code data-tip={texts.failed.requestId}>{requestId}</code>
            <Copy text={requestId} />
          </p>
        )}
      </div>
    </div>
  )
}

interface AnswerProps<A> {
  readonly of: UseQueryResult<A>
  readonly lines?: number
  readonly children: (value: A) => ReactNode
}

/**
 * Shows a query's result or a placeholder. A result remains visible if its refresh fails, and a failure remains visible during a retry, so a view
 * that polls does not flicker.
 */
export const Answer = <A,>({ children, lines, of }: AnswerProps<A>) => {
  const [last, setLast] = useState(of.error)
  if (of.error !== null && of.error !== last) setLast(of.error)
  if (of.data !== undefined) return children(of.data)
  const error = of.error ?? (of.errorUpdateCount > 0 ? last : null)
  if (error !== null) {
    return <Failed error={error} isRetrying={of.isFetching} retry={() => void of.refetch()} />
  }
  return <Loading {...(lines !== undefined && { lines })} />
}
