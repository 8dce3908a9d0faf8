/** A state in a word. Colour repeats what the word says, and never says it alone. */
import type { ReactNode } from "react"

export type Tone = "plain" | "good" | "warn" | "bad" | "accent"

export const Badge = ({ children, tone = "plain" }: { readonly children: ReactNode; readonly tone?: Tone }) => (
  <span className={`badge badge-${tone}`}>{children}</span>
)
