/** Buttons: `primary` for the one thing that a view is for, `plain` for the rest, `danger` for what cannot be undone, `ghost` in rows. */
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
  /** Without it `aria-label` says what it does, and a hover shows that. */
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

/** A link that looks like a button: what it does is go somewhere. */
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
