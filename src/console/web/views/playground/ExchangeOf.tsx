/** Shows a message and its response, with the estimated cost during streaming and the charge afterwards. */
import { count, duration } from "../../moments.ts"
import { Badge } from "../../parts/Badge.tsx"
import { Money } from "../../parts/Money.tsx"
import { playgroundTexts } from "../../texts/playground.ts"
import { isRunning } from "./conversation.ts"
import type { Exchange } from "./conversation.ts"
import { ExplainFact, Fact } from "./Fact.tsx"
import { estimateOf } from "./models.ts"
import type { ChatModel } from "./models.ts"
import { Refused } from "./Refused.tsx"

const promptOf = ({ messages }: Exchange["body"]): string => messages.map(({ content }) => content).join("\n")

const Cost = ({ model, of }: { readonly model: ChatModel | undefined; readonly of: Exchange }) => {
  if (of.charged === "late") return <span className="quiet">{playgroundTexts.unsettled}</span>
  if (of.charged !== undefined) return <Money of={of.charged} as="exact" focusable />
  if (!isRunning(of)) return <span className="quiet">{playgroundTexts.settling}</span>
  const estimate = model === undefined ? undefined : estimateOf(model, promptOf(of.body), of.answer)
  if (estimate === undefined) return <span className="quiet">{"\u2013"}</span>
  return (
    <span className="row" data-tip={playgroundTexts.estimateHelp}>
      <span>
        {"\u2248 "}
        <Money of={estimate} as="aligned" />
      </span>
      <Badge>{playgroundTexts.estimate}</Badge>
    </span>
  )
}

const Facts = ({ model, of, onExplain }: ExchangeProps) => (
  <dl className="playground-facts">
    <Fact name={playgroundTexts.charged}>
      <Cost model={model} of={of} />
    </Fact>
    {of.tokens === undefined ? null : (
      <Fact name={playgroundTexts.tokens} tip={playgroundTexts.tokensHelp}>
        {playgroundTexts.tokensOf(count(of.tokens.prompt_tokens), count(of.tokens.completion_tokens))}
      </Fact>
    )}
    {of.firstToken === undefined ? null : <Fact name={playgroundTexts.firstToken}>{duration(of.firstToken)}</Fact>}
    {of.took === undefined ? null : <Fact name={playgroundTexts.took}>{duration(of.took)}</Fact>}
    {of.usageId === undefined || of.charged === undefined || of.charged === "late" ? null : (
      <ExplainFact onExplain={() => onExplain(of.usageId!)} />
    )}
  </dl>
)

const Answer = ({ of }: { readonly of: Exchange }) => {
  if (of.answer !== "") return <p className="playground-text">{of.answer}</p>
  if (of.state === "waiting") {
    return (
      <p className="quiet playground-waiting">
        <span className="playground-pulse" aria-hidden />
        {playgroundTexts.waiting}
      </p>
    )
  }
  return of.state === "whole" ? <p className="quiet">{playgroundTexts.empty}</p> : null
}

interface ExchangeProps {
  readonly of: Exchange
  /** The call's model, or `undefined` if the service no longer offers it. */
  readonly model: ChatModel | undefined
  readonly onExplain: (usageId: string) => void
}

export const ExchangeOf = ({ again, ...props }: ExchangeProps & { readonly again: (() => void) | undefined }) => {
  const { of } = props
  return (
    <li className="playground-exchange" aria-busy={isRunning(of)}>
      <div className="playground-said">
        <span className="playground-who">{playgroundTexts.you}</span>
        <p className="playground-text">{of.body.messages.at(-1)?.content}</p>
      </div>
      <div className="playground-said playground-answer">
        <span className="playground-who">
          {of.body.model}
          {of.state === "stopped" ? <Badge tone="warn">{playgroundTexts.stopped}</Badge> : null}
        </span>
        <Answer of={of} />
        {of.state === "failed" ? (
          <Refused
            error={of.error}
            of="chat"
            {...(of.answer !== "" && { title: playgroundTexts.brokeOff })}
            {...(again !== undefined && { again })}
          />
        ) : null}
        {of.state === "stopped" && of.usageId === undefined ? (
          <p className="quiet">{playgroundTexts.notBegun}</p>
        ) : of.usageId === undefined && !isRunning(of) ? null : (
          <Facts {...props} />
        )}
      </div>
    </li>
  )
}
