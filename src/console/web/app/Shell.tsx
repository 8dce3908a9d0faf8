/**
 * The frame around every view: a navigation column on wide screens, and a bar with a menu on phones. `PersonShell` and `operator/OperatorShell`
 * provide the content.
 */
import { Link, Outlet, useLocation } from "@tanstack/react-router"
import type { LinkProps } from "@tanstack/react-router"
import type { LucideIcon } from "lucide-react"
import { Menu as MenuIcon, X } from "lucide-react"
import { useEffect, useRef, useState } from "react"
import type { ReactNode } from "react"
import { Button } from "../parts/Button.tsx"
import { texts } from "../texts.ts"
import { Mark } from "./Brand.tsx"
import type { LiveState } from "./Live.ts"

export interface NavEntry {
  readonly to: NonNullable<LinkProps["to"]>
  readonly text: string
  readonly icon: LucideIcon
  readonly isExact?: boolean
  /** The badge next to the text, such as the number of unread notifications. */
  readonly count?: number
}

interface ShellProps {
  readonly name: ReactNode
  readonly home?: NonNullable<LinkProps["to"]>
  readonly nav: ReadonlyArray<ReadonlyArray<NavEntry>>
  /** Shown below the name. */
  readonly top?: ReactNode
  readonly bottom: ReactNode
  readonly live: LiveState
  /** Shown next to the menu button on a phone. */
  readonly aside?: ReactNode
  readonly tone?: "operator"
}

export const LiveDot = ({ state }: { readonly state: LiveState }) => (
  <span className={`shell-live shell-live-${state}`} role="status">
    <span className="shell-dot" aria-hidden />
    {texts.live[state]}
  </span>
)

export const Shell = ({ aside, bottom, home = "/", live, name, nav, tone, top }: ShellProps) => {
  const [isOpen, setOpen] = useState(false)
  const main = useRef<HTMLElement>(null)
  const { pathname } = useLocation()
  const isFirst = useRef(true)
  useEffect(() => {
    setOpen(false)
    // Move the focus so that a screen reader starts at the new view.
    if (!isFirst.current) main.current?.focus({ preventScroll: true })
    isFirst.current = false
  }, [pathname])
  return (
    <div className="shell" data-tone={tone} data-open={isOpen || undefined}>
      <button type="button" className="shell-skip" onClick={() => main.current?.focus()}>
        {texts.app.skip}
      </button>
      <header className="shell-bar">
        <Link to={home} className="shell-brand">
          <Mark /> <span className="ellipsis">{name}</span>
        </Link>
        <span className="shell-bar-live">
          <LiveDot state={live} />
        </span>
        {aside}
        <Button
          kind="ghost"
          icon={isOpen ? X : MenuIcon}
          aria-label={isOpen ? texts.app.close : texts.app.menu}
          aria-expanded={isOpen}
          onPress={() => setOpen(!isOpen)}
        />
      </header>
      <div className="shell-side">
        <Link to={home} className="shell-brand shell-brand-side">
          <Mark /> <span className="ellipsis">{name}</span>
        </Link>
        {top}
        <nav className="shell-nav" aria-label={texts.nav.label}>
          {nav.map((group, index) => (
            <ul key={index} className="shell-group">
              {group.map(({ count, icon: Icon, isExact = false, text, to }) => (
                <li key={text}>
                  <Link to={to} className="shell-link" activeOptions={{ exact: isExact, includeSearch: false }}>
                    <Icon size={16} strokeWidth={1.75} aria-hidden />
                    {text}
                    {count === undefined || count === 0 ? null : <span className="shell-count">{count}</span>}
                  </Link>
                </li>
              ))}
            </ul>
          ))}
        </nav>
        <div className="shell-bottom">
          <span className="shell-side-live">
            <LiveDot state={live} />
          </span>
          {bottom}
        </div>
      </div>
      <main ref={main} tabIndex={-1} className="shell-main">
        <Outlet />
      </main>
    </div>
  )
}
