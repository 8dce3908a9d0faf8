/** A form's optional fields, collapsed on a narrow page and always visible on a wide one. */
import { useSyncExternalStore } from "react"
import type { ReactNode } from "react"

/** Matches pages that are too narrow to show the fields beside the result. */
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
