/** A menu under a button. */
import { Check } from "lucide-react"
import type { LucideIcon } from "lucide-react"
import { Button as AriaButton } from "react-aria-components/Button"
import { Header } from "react-aria-components/Header"
import { Menu as AriaMenu, MenuItem, MenuSection, MenuTrigger } from "react-aria-components/Menu"
import { Popover } from "react-aria-components/Popover"
import type { ReactNode } from "react"

export interface MenuEntry {
  readonly id: string
  readonly text: ReactNode
  /** What a screen reader and type-ahead take it for. */
  readonly name: string
  readonly icon?: LucideIcon
  readonly isChosen?: boolean
  readonly href?: string
  readonly onAction?: () => void
}

interface MenuProps {
  readonly label: string
  readonly trigger: ReactNode
  readonly sections: ReadonlyArray<{ readonly title?: string; readonly entries: ReadonlyArray<MenuEntry> }>
}

export const Menu = ({ label, sections, trigger }: MenuProps) => (
  <MenuTrigger>
    <AriaButton className="menu-trigger">
      <span className="sr-only">{label}</span>
      {trigger}
    </AriaButton>
    <Popover className="menu-popover" placement="bottom start">
      <AriaMenu className="menu" aria-label={label}>
        {sections.map(({ entries, title }, index) => (
          <MenuSection
            key={title ?? index}
            className="menu-section"
            {...(title === undefined && { "aria-label": label })}
          >
            {title === undefined ? null : <Header className="menu-header">{title}</Header>}
            {entries.map(({ href, icon: Icon, id, isChosen, name, onAction, text }) => (
              <MenuItem
                key={id}
                id={id}
                className="menu-item"
                textValue={name}
                {...(href !== undefined && { href, target: "_blank" })}
                {...(onAction !== undefined && { onAction })}
              >
                {Icon === undefined ? null : <Icon size={15} strokeWidth={1.75} aria-hidden />}
                <span className="ellipsis">{text}</span>
                {isChosen === true ? <Check className="push" size={15} aria-label="✓" /> : null}
              </MenuItem>
            ))}
          </MenuSection>
        ))}
      </AriaMenu>
    </Popover>
  </MenuTrigger>
)
