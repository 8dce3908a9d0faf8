/** A timeline. Each step has a time and a sentence. Future steps look different. */
import type { ReactNode } from "react"
import { When } from "./When.tsx"

export interface Step {
  readonly at: string
  readonly title: ReactNode
  readonly text?: ReactNode
  readonly tone?: "good" | "bad"
  readonly isAhead?: boolean
}

export const Story = ({ steps }: { readonly steps: ReadonlyArray<Step> }) => (
  <ol className="story">
    {steps.map(({ at, isAhead, text, title, tone }, index) => (
      <li key={index} className="story-step" data-tone={tone} data-ahead={isAhead || undefined}>
        <p className="story-title">{title}</p>
        {text === undefined ? null : <p className="quiet small">{text}</p>}
        <p className="quiet small">
          <When at={at} as="moment" />
        </p>
      </li>
    ))}
  </ol>
)
