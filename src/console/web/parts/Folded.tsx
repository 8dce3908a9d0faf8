/** The optional part of a form: collapsed on a narrow page, always visible on a wide one. */
import { useSyncExternalStore } from "react"
import type { ReactNode } from "react"

/** The width at which the fields no longer fit next to their result and move above it. */
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
