/** The frame around a synchronous tool: input, options, results and equivalent code. */
import type { LucideIcon } from "lucide-react"
import { Square, SquarePen } from "lucide-react"
import { useEffect } from "react"
import type { ReactNode } from "react"
import { Refusal } from "../../app/Refusal.ts"
import { duration } from "../../moments.ts"
import { Badge } from "../../parts/Badge.tsx"
import { Button } from "../../parts/Button.tsx"
import { FormOf } from "../../parts/Fields.tsx"
import { Money } from "../../parts/Money.tsx"
import { Section } from "../../parts/Page.tsx"
import { Empty } from "../../parts/States.tsx"
import { playgroundTexts } from "../../texts/playground.ts"
import { ExplainFact, Fact } from "./Fact.tsx"
import { Refused } from "./Refused.tsx"
import { useRuns } from "./runs.ts"
import type { Run, Runs } from "./runs.ts"

interface OfRun<Input, Output> {
  readonly asked: (input: Input) => ReactNode
  readonly shown: (output: Output, input: Input) => ReactNode
  /** Facts to show in addition to the charge and the time. */
  readonly facts?: (output: Output, input: Input) => ReactNode
  readonly onExplain: (usageId: string) => void
}

interface RunProps<Input, Output> extends OfRun<Input, Output> {
  readonly of: Run<Input, Output>
  readonly again: (() => void) | undefined
}

const RunOf = <Input, Output>({ again, asked, facts, of, onExplain, shown }: RunProps<Input, Output>) => {
  const { answered, error, input, state, took } = of
  return (
    <li className="playground-run" aria-busy={state === "running"}>
      <p className="playground-asked">
        {asked(input)}
        {state === "stopped" ? <Badge tone="warn">{playgroundTexts.stopped}</Badge> : null}
      </p>
      {state === "running" ? (
        <p className="quiet playground-waiting" role="status">
          <span className="playground-pulse" aria-hidden />
          {playgroundTexts.working}
        </p>
      ) : null}
      {state === "stopped" ? <p className="quiet small">{playgroundTexts.stoppedText}</p> : null}
      {state === "failed" ? <Refused error={error} of="tool" {...(again !== undefined && { again })} /> : null}
      {answered === undefined ? null : (
        <>
          {shown(answered.output, input)}
          <dl className="playground-facts">
            {answered.charged === undefined ? null : (
              <Fact name={playgroundTexts.charged}>
                <Money of={answered.charged} as="exact" focusable />
              </Fact>
            )}
            {facts?.(answered.output, input)}
            {took === undefined ? null : <Fact name={playgroundTexts.took}>{duration(took)}</Fact>}
            {answered.usageId === undefined ? null : <ExplainFact onExplain={() => onExplain(answered.usageId!)} />}
          </dl>
        </>
      )}
    </li>
  )
}

/** Returns the error if a form field shows it, or else `null`. */
const fieldProblem = (error: unknown): unknown =>
  error instanceof Refusal && (error.field ?? "") !== "" && error.status === 400 ? error : null

interface ToolProps<Input, Output> extends OfRun<Input, Output> {
  readonly runs: Runs<Input, Output>
  readonly title: string
  readonly icon: LucideIcon
  readonly emptyTitle: string
  readonly emptyText: string
  readonly action: string
  /** The request to send, or `undefined` while the form is incomplete. */
  readonly input: Input | undefined
  /** The form's fields. The first field is the main input. */
  readonly fields: ReactNode
  readonly program: ReactNode
}

export const ToolOf = <Input, Output>(props: ToolProps<Input, Output>) => {
  const { action, emptyText, emptyTitle, fields, icon, input, program, runs, title, ...ofRun } = props
  const all = useRuns(runs)
  const isBusy = all[0]?.state === "running"
  useEffect(() => {
    if (!isBusy) return
    const stop = ({ key }: KeyboardEvent): void => {
      if (key === "Escape") runs.stop()
    }
    addEventListener("keydown", stop)
    return () => removeEventListener("keydown", stop)
  }, [runs, isBusy])
  const send = (what: Input | undefined): void => {
    if (what !== undefined) void runs.send(what)
  }
  return (
    <div className="playground-columns playground-media">
      <Section
        title={title}
        lead={playgroundTexts.memory}
        actions={
          all.length === 0 ? null : (
            <Button kind="ghost" icon={SquarePen} onPress={runs.clear}>
              {playgroundTexts.clearRuns}
            </Button>
          )
        }
      >
        {all.length === 0 ? (
          <Empty icon={icon} title={emptyTitle}>
            {emptyText}
          </Empty>
        ) : (
          <ol className="playground-runs">
            {all.map((run, index) => (
              <RunOf
                key={run.id}
                of={run}
                {...ofRun}
                again={index === 0 && !isBusy ? () => send(run.input) : undefined}
              />
            ))}
          </ol>
        )}
      </Section>
      <div className="playground-making">
        <FormOf
          error={fieldProblem(all[0]?.error)}
          onSubmit={() => send(input)}
          actions={
            <div className="row wrap">
              {isBusy ? (
                <Button icon={Square} onPress={runs.stop}>
                  {playgroundTexts.stop}
                </Button>
              ) : (
                <Button type="submit" kind="primary" icon={icon} isDisabled={input === undefined}>
                  {action}
                </Button>
              )}
            </div>
          }
        >
          {fields}
        </FormOf>
        {program}
      </div>
    </div>
  )
}
