/** Buttons. Use `primary` for a view's main action, `danger` for an irreversible action, `ghost` within a row, and `plain` otherwise. */
import type { LucideIcon } from "lucide-react"
import { Button as AriaButton } from "react-aria-components/Button"
import type { ButtonProps as AriaProps } from "react-aria-components/Button"
import type { ReactNode } from "react"
import { Link } from "@tanstack/react-router"
import type { LinkProps } from "@tanstack/react-router"

type Kind = "primary" | "plain" | "danger" | "ghost"

interface ButtonProps extends Omit<AriaProps, "className" | "children"> {
  readonly kind?: Kind
  readonly icon?: LucideIcon
  /** If absent, `aria-label` names the action and is also the tooltip. */
  readonly children?: ReactNode
}

export const Button = ({ children, icon: Icon, kind = "plain", ...props }: ButtonProps) => (
  <AriaButton
    {...props}
    className={`button button-${kind}${children === undefined ? " button-icon" : ""}`}
    {...(children === undefined && { "data-tip": props["aria-label"] })}
  >
    {Icon === undefined ? null : <Icon size={15} strokeWidth={1.75} aria-hidden />}
    {children}
  </AriaButton>
)

export const ButtonLink = ({
  children,
  icon: Icon,
  kind = "plain",
  ...props
}: LinkProps & { readonly kind?: Kind; readonly icon?: LucideIcon; readonly children: ReactNode }) => (
  <Link {...props} className={`button button-${kind}`}>
    {Icon === undefined ? null : <Icon size={15} strokeWidth={1.75} aria-hidden />}
    {children}
  </Link>
)
