/** A menu under a button. What opens is loaded after the view: the frame is there without it. */
import type { LucideIcon } from "lucide-react"
import { lazy, Suspense } from "react"
import type { ReactNode } from "react"

const MenuList = lazy(() => import("./MenuList.tsx"))

export interface MenuEntry {
  readonly id: string
  readonly text: ReactNode
  /** Its name for screen readers and type-ahead. */
  readonly name: string
  readonly icon?: LucideIcon
  readonly isChosen?: boolean
  readonly href?: string
  readonly onAction?: () => void
}

export interface MenuProps {
  readonly label: string
  readonly trigger: ReactNode
  /** Ends where the trigger ends, rather than begins where it begins. */
  readonly end?: boolean
  readonly sections: ReadonlyArray<{ readonly title?: string; readonly entries: ReadonlyArray<MenuEntry> }>
}

export const Menu = (props: MenuProps) => (
  <Suspense fallback={<div className="menu-trigger">{props.trigger}</div>}>
    <MenuList {...props} />
  </Suspense>
)
