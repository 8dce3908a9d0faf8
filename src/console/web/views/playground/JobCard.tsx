/** One media job: how it stands, what it made, what it cost and what came back. */
import { ExternalLink, Film, Image, X } from "lucide-react"
import type { ReactNode } from "react"
import { duration } from "../../moments.ts"
import { nano } from "../../money.ts"
import { Badge } from "../../parts/Badge.tsx"
import type { Tone } from "../../parts/Badge.tsx"
import { Button } from "../../parts/Button.tsx"
import { Money } from "../../parts/Money.tsx"
import { advice } from "../../parts/States.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { When } from "../../parts/When.tsx"
import { playgroundTexts } from "../../texts/playground.ts"
import { useCancel, useQuote, useResult, useStatus } from "./asking.ts"
import type { Job } from "./asking.ts"
import { canShow, hostOf, isHere, resultsOf } from "./results.ts"
import type { Made } from "./results.ts"

const Shown = ({ of, name }: { readonly of: Made; readonly name: string }) =>
  of.kind === "image" ? (
    <img src={of.url} alt={name} width={of.width} height={of.height} loading="lazy" referrerPolicy="no-referrer" />
  ) : (
    // What was made has no words of its own to be captioned with.
    <video src={of.url} controls preload="metadata" aria-label={name} />
  )

const Placeholder = ({ children, type }: { readonly children?: ReactNode; readonly type: Job["type"] }) => {
  const Icon = type === "image" ? Image : Film
  return (
    <div className="playground-placeholder">
      <Icon size={22} strokeWidth={1.5} aria-hidden />
      {children}
    </div>
  )
}

const sizeOf = ({ height, seconds, width }: Made): string =>
  [
    ...(width === undefined || height === undefined ? [] : [`${width} × ${height}`]),
    ...(seconds === undefined ? [] : [duration(seconds * 1000)])
  ].join(" · ")

/** What was made, as a link to it; a video that is shown has controls of its own, and the link below. */
const Result = ({ isPreview, name, of }: { readonly of: Made; readonly name: string; readonly isPreview: boolean }) => {
  const isShown = isHere(of.url) || (isPreview && canShow(of.url))
  const isVideo = isShown && of.kind === "video"
  const open = (
    <span className="row small">
      {playgroundTexts.open}
      <ExternalLink size={13} strokeWidth={1.75} aria-hidden />
    </span>
  )
  return (
    <div className="playground-result">
      {isVideo ? <Shown of={of} name={name} /> : null}
      <a
        className="playground-open"
        href={of.url}
        target="_blank"
        rel="noreferrer noopener"
        {...(!isHere(of.url) && { "data-tip": playgroundTexts.opensAt(hostOf(of.url)) })}
      >
        {isVideo ? (
          open
        ) : isShown ? (
          <>
            <Shown of={of} name={name} />
            <span className="sr-only">{playgroundTexts.open}</span>
          </>
        ) : (
          <Placeholder type={of.kind}>
            <span className="small">{sizeOf(of)}</span>
            {open}
          </Placeholder>
        )}
      </a>
    </div>
  )
}

interface JobCardProps {
  readonly of: Job
  readonly name: string
  readonly isPreview: boolean
}

const Results = ({ isPreview, name, of, isDone }: JobCardProps & { readonly isDone: boolean }) => {
  const result = useResult(of, isDone)
  if (!isDone) return <Placeholder type={of.type} />
  if (result.error !== null) {
    return (
      <Placeholder type={of.type}>
        <span className="small">{playgroundTexts.gone}</span>
      </Placeholder>
    )
  }
  if (result.data === undefined) return <Placeholder type={of.type} />
  const made = resultsOf(result.data.output)
  return made.length === 0 ? (
    <Placeholder type={of.type}>
      <span className="small">{playgroundTexts.noAddress}</span>
    </Placeholder>
  ) : (
    made.map((one) => <Result key={one.url} of={one} name={name} isPreview={isPreview} />)
  )
}

type Standing = Pick<Job, "status" | "settled" | "error">

const wordOf = ({ error, settled, status }: Standing): readonly [string, Tone] => {
  if (error !== undefined) return [playgroundTexts.failed, "bad"]
  if (status === "COMPLETED") {
    return settled ? [playgroundTexts.status.COMPLETED, "good"] : [playgroundTexts.fetching, "accent"]
  }
  return [playgroundTexts.status[status], status === "CANCELLED" ? "plain" : "accent"]
}

const Costs = ({
  cost_usd,
  quote,
  settled
}: Pick<Job, "cost_usd" | "settled"> & { readonly quote: Job["cost_usd"] | undefined }) => {
  if (!settled) {
    return (
      <div>
        <dt>{playgroundTexts.setAside}</dt>
        <dd>
          <Money of={cost_usd} as="exact" />
        </dd>
      </div>
    )
  }
  const back = quote === undefined ? undefined : nano(quote) - nano(cost_usd)
  return (
    <>
      <div>
        <dt>{playgroundTexts.charged}</dt>
        <dd>
          <Money of={cost_usd} as="exact" />
        </dd>
      </div>
      {back === undefined || back < 0n ? null : (
        <div>
          <dt>{playgroundTexts.givenBack}</dt>
          <dd>
            <Money of={back} as="exact" />
          </dd>
        </div>
      )}
    </>
  )
}

export const JobCard = (props: JobCardProps) => {
  const { name, of } = props
  const now = useStatus(of)
  const quote = useQuote(of)
  const cancel = useCancel()
  const isOpen = !now.settled && (now.status === "IN_QUEUE" || now.status === "IN_PROGRESS")
  const isDone = now.status === "COMPLETED" && now.error === undefined
  const [word, tone] = wordOf(now)
  return (
    <li className="playground-job" aria-label={`${name}, ${word}`}>
      <div className="playground-made" data-state={isOpen ? now.status : undefined}>
        <Results {...props} isDone={isDone} />
      </div>
      <div className="row between">
        <span className="playground-name ellipsis">{name}</span>
        <Badge tone={tone}>{word}</Badge>
      </div>
      {now.error === undefined ? null : <p className="small playground-error">{now.error}</p>}
      <dl className="playground-facts">
        <Costs cost_usd={now.cost_usd} settled={now.settled} quote={quote} />
      </dl>
      <div className="row between small quiet">
        <When at={of.created_at} />
        {isOpen ? (
          <Button
            kind="ghost"
            icon={X}
            isPending={cancel.isPending}
            onPress={() =>
              cancel.mutate(of, {
                onSuccess: () => toast(playgroundTexts.cancelled),
                onError: (error) => toast(advice(error), "bad")
              })
            }
          >
            {playgroundTexts.cancel}
          </Button>
        ) : null}
      </div>
      <span role="status" className="sr-only">
        {isOpen ? `${name}: ${word}` : of.settled ? "" : `${name}: ${word}`}
      </span>
    </li>
  )
}
