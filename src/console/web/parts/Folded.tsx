/** The optional part of a form: folded under its name on a narrow page, always visible on a wide one. */
import { useSyncExternalStore } from "react"
import type { ReactNode } from "react"

/** As wide as the column of fields beside what they are for; below it they stand above that. */
const narrow = matchMedia("(max-width: 62rem)")

const subscribe = (listener: () => void): (() => void) => {
  narrow.addEventListener("change", listener)
  return () => narrow.removeEventListener("change", listener)
}

export const Folded = ({ children, title }: { readonly children: ReactNode; readonly title: string }) =>
  useSyncExternalStore(subscribe, () => narrow.matches) ? (
    <details className="folded">
      <summary>{title}</summary>
      <div className="form">{children}</div>
    </details>
  ) : (
    children
  )
