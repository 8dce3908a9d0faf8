/** Shows a media job: its state, results and cost, and the credit released at settlement. */
import { Download, ExternalLink, Film, Image, Play, X } from "lucide-react"
import { useState } from "react"
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
import { useCancel, useContent, useQuote, useResult, useStatus } from "./asking.ts"
import type { Job } from "./asking.ts"
import { hostOf, isWebAddress, resultsOf } from "./results.ts"
import type { MediaOutput } from "./results.ts"

const Placeholder = ({ children, type }: { readonly children?: ReactNode; readonly type: Job["type"] }) => {
  const Icon = type === "image" ? Image : Film
  return (
    <div className="playground-placeholder">
      <Icon size={22} strokeWidth={1.5} aria-hidden />
      {children}
    </div>
  )
}

const sizeOf = ({ height, seconds, width }: MediaOutput): string =>
  [
    ...(width === undefined || height === undefined ? [] : [`${width} × ${height}`]),
    ...(seconds === undefined ? [] : [duration(seconds * 1000)])
  ].join(" · ")

interface ResultProps {
  readonly of: MediaOutput
  readonly job: Job
  readonly name: string
  readonly index: number
}

const Save = ({ file, name }: { readonly file: string; readonly name: string }) => (
  <div>
    <a className="button button-ghost" href={file} download={name}>
      <Download size={15} strokeWidth={1.75} aria-hidden />
      {playgroundTexts.download}
    </a>
  </div>
)

/** Renders a link to the vendor's temporary copy, if it has a web URL. */
const VendorCopyLink = ({ of }: { readonly of: MediaOutput }) =>
  isWebAddress(of.url) ? (
    <a
      className="button button-ghost"
      href={of.url}
      target="_blank"
      rel="noreferrer noopener"
      data-tip={playgroundTexts.opensAt(hostOf(of.url))}
    >
      <ExternalLink size={15} strokeWidth={1.75} aria-hidden />
      {playgroundTexts.open}
    </a>
  ) : null

/** Shows one output. Images load automatically. Videos load on request, because they can be large. */
const Result = ({ index, job, name, of }: ResultProps) => {
  const [isRequested, setRequested] = useState(of.kind === "image")
  const [isBroken, setBroken] = useState(false)
  const { isGone, isLoading, url } = useContent(job.request_id, index, isRequested)
  const markBroken = (): void => setBroken(true)
  if (url !== undefined && !isBroken) {
    return (
      <div className="playground-result">
        {of.kind === "image" ? (
          <img src={url} alt={name} onError={markBroken} />
        ) : (
          // No transcript is available for captions.
          <video src={url} controls preload="metadata" aria-label={name} onError={markBroken} />
        )}
        <Save file={url} name={`${name} ${index + 1}`} />
      </div>
    )
  }
  return (
    <Placeholder type={of.kind}>
      <span className="small">{isGone || isBroken ? playgroundTexts.notHere : sizeOf(of)}</span>
      {isRequested ? null : (
        <Button kind="ghost" icon={Play} isPending={isLoading} onPress={() => setRequested(true)}>
          {playgroundTexts.show}
        </Button>
      )}
      {url === undefined ? <VendorCopyLink of={of} /> : <Save file={url} name={`${name} ${index + 1}`} />}
    </Placeholder>
  )
}

interface JobCardProps {
  readonly of: Job
  readonly name: string
}

const Results = ({ isDone, name, of }: JobCardProps & { readonly isDone: boolean }) => {
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
    made.map((one, index) => <Result key={one.url} of={one} job={of} index={index} name={name} />)
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
      {back === undefined || back <= 0n ? null : (
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
      <div
        className="playground-made"
        data-state={isOpen ? now.status : undefined}
        data-none={(!isOpen && !isDone) || undefined}
      >
        <Results {...props} isDone={isDone} />
      </div>
      <div className="row between">
        <span className="playground-name ellipsis">{name}</span>
        <Badge tone={tone}>{word}</Badge>
      </div>
      {now.error === undefined ? null : <p className="small playground-error">{now.error}</p>}
      <div className="row between">
        <dl className="playground-facts">
          <Costs cost_usd={now.cost_usd} settled={now.settled} quote={quote} />
        </dl>
        <span className="small quiet">
          <When at={of.created_at} />
        </span>
      </div>
      {isOpen ? (
        <div>
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
        </div>
      ) : null}
      <span role="status" className="sr-only">
        {isOpen ? `${name}: ${word}` : of.settled ? "" : `${name}: ${word}`}
      </span>
    </li>
  )
}
