/** Explains a refused or failed call: the cause, the remedy and the request id. */
import { CreditCard, RotateCw } from "lucide-react"
import type { ReactNode } from "react"
import { Refusal, SignedOut, Unreachable } from "../../app/Refusal.ts"
import { nano } from "../../money.ts"
import type { Usd } from "../../money.ts"
import { Button, ButtonLink } from "../../parts/Button.tsx"
import { Copy } from "../../parts/Copy.tsx"
import { Money } from "../../parts/Money.tsx"
import { texts } from "../../texts.ts"
import { playgroundTexts } from "../../texts/playground.ts"

const { refusalTexts: words, refusals: titles } = playgroundTexts

type CallSource = "chat" | "media" | "tool"

const sentence = (text: string): string =>
  text === "" ? "" : `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`

const creditText = (reason: unknown, of: CallSource): string => {
  if (reason === "the billing account is not active") return words.notActive
  if (reason === "this tenant does not let its members spend") return words.membersMayNotSpend
  return { chat: words.credit, media: words.creditMedia, tool: words.creditTool }[of]
}

const meaningOf = (error: unknown, of: CallSource): readonly [title: string, text: string] => {
  if (error instanceof SignedOut) return [titles.unreachable, texts.signIn.ended]
  if (error instanceof Unreachable) return [titles.unreachable, texts.failed.unreachable]
  if (!(error instanceof Refusal)) return [titles.request, texts.failed.wrong]
  const own = sentence(error.message)
  if (error.status === 402) return [titles.credit, creditText(error.details["reason"], of)]
  if (error.code === "model_not_allowed") return [titles.notAllowed, words.notAllowed]
  if (error.status === 429) return [titles.busy, words.busy]
  if (error.code === "upstream_error") return [titles.upstream, words.upstream]
  if (error.status === 503) return [titles.unavailable, words.unavailable]
  if (error.status === 403) return [titles.request, texts.failed.forbidden]
  if (error.status >= 500) return [titles.request, texts.failed.wrong]
  const { field, rule } = error.details
  return [titles.request, typeof field === "string" && typeof rule === "string" ? `${own} ${field}: ${rule}.` : own]
}

const amountOf = (value: unknown): Usd | undefined =>
  typeof value === "number" || typeof value === "string" ? value : undefined

const Missing = ({ of }: { readonly of: Refusal }) => {
  const available = amountOf(of.details["available_usd"])
  const required = amountOf(of.details["required_usd"])
  if (available === undefined) return null
  const missing = required === undefined ? 0n : nano(required) - nano(available)
  return (
    <dl className="playground-amounts">
      {required === undefined ? null : (
        <div>
          <dt>{playgroundTexts.needed}</dt>
          <dd>
            <Money of={required} as="exact" />
          </dd>
        </div>
      )}
      <div>
        <dt>{playgroundTexts.available}</dt>
        <dd>
          <Money of={available} as="exact" />
        </dd>
      </div>
      {missing > 0n ? (
        <div>
          <dt>{playgroundTexts.missing}</dt>
          <dd>
            <Money of={missing} as="exact" />
          </dd>
        </div>
      ) : null}
    </dl>
  )
}

interface RefusedProps {
  readonly error: unknown
  readonly of: CallSource
  /** Replaces the error's title, for example if a partial response had arrived. */
  readonly title?: string
  readonly again?: () => void
  readonly children?: ReactNode
}

export const Refused = ({ again, children, error, of, title }: RefusedProps) => {
  const [ownTitle, text] = meaningOf(error, of)
  const isCredit = error instanceof Refusal && error.status === 402
  const requestId = error instanceof Refusal ? error.requestId : undefined
  return (
    <div className={`states-failed playground-refused${isCredit ? " playground-refused-credit" : ""}`} role="alert">
      <p className="states-title">{title ?? ownTitle}</p>
      <p>{text}</p>
      {isCredit ? <Missing of={error} /> : null}
      {children}
      <div className="row wrap">
        {isCredit ? (
          <ButtonLink to="/credit" kind="primary" icon={CreditCard}>
            {playgroundTexts.addCredit}
          </ButtonLink>
        ) : null}
        {again === undefined ? null : (
          <Button icon={RotateCw} onPress={again}>
            {playgroundTexts.again}
          </Button>
        )}
      </div>
      {requestId === undefined ? null : (
        <p className="row wrap small quiet">
          {texts.failed.requestId} <code>{requestId}</code>
          <Copy text={requestId} />
        </p>
      )}
    </div>
  )
}
