/** Shows a status in one word. The color only reinforces the word. */
import type { ReactNode } from "react"

export type Tone = "plain" | "good" | "warn" | "bad" | "accent"

export const Badge = ({ children, tone = "plain" }: { readonly children: ReactNode; readonly tone?: Tone }) => (
  <span className={`badge badge-${tone}`}>{children}</span>
)
