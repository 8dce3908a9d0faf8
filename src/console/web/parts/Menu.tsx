/** A menu that opens under a button. Its code is loaded after the view, so it does not delay the frame. */
import type { LucideIcon } from "lucide-react"
import { lazy, Suspense } from "react"
import type { ReactNode } from "react"

const MenuList = lazy(() => import("./MenuList.tsx"))

export interface MenuEntry {
  readonly id: string
  readonly text: ReactNode
  /** The entry's name, for screen readers and for finding it by typing. */
  readonly name: string
  readonly icon?: LucideIcon
  readonly isChosen?: boolean
  readonly href?: string
  readonly onAction?: () => void
}

export interface MenuProps {
  readonly label: string
  readonly trigger: ReactNode
  /** Aligns the menu with the end of the trigger instead of its start. */
  readonly end?: boolean
  readonly sections: ReadonlyArray<{ readonly title?: string; readonly entries: ReadonlyArray<MenuEntry> }>
}

export const Menu = (props: MenuProps) => (
  <Suspense fallback={<div className="menu-trigger">{props.trigger}</div>}>
    <MenuList {...props} />
  </Suspense>
)
