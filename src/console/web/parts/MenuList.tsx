/** The content of the menu, built with React Aria. `Menu` loads this file after the view. */
import { Check } from "lucide-react"
import { Button as AriaButton } from "react-aria-components/Button"
import { Header } from "react-aria-components/Header"
import { Menu as AriaMenu, MenuItem, MenuSection, MenuTrigger } from "react-aria-components/Menu"
import { Popover } from "react-aria-components/Popover"
import type { MenuProps } from "./Menu.tsx"

export const MenuList = ({ end = false, label, sections, trigger }: MenuProps) => (
  <MenuTrigger>
    <AriaButton className="menu-trigger">
      <span className="sr-only">{label}</span>
      {trigger}
    </AriaButton>
    <Popover className="menu-popover" placement={end ? "bottom end" : "bottom start"}>
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
                {...(href !== undefined && { href, target: "_blank", rel: "noopener" })}
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

export default MenuList
