/** A button that copies text and confirms it. */
import { Check, Copy as Icon } from "lucide-react"
import { useEffect, useState } from "react"
import { texts } from "../texts.ts"
import { Button } from "./Button.tsx"

interface CopyProps {
  readonly text: string
  /** The text next to the icon. Without it, only the icon is shown. */
  readonly label?: string
  readonly kind?: "primary" | "plain" | "ghost"
}

export const Copy = ({ kind = "ghost", label, text }: CopyProps) => {
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return
    const timer = setTimeout(() => setCopied(false), 2000)
    return () => clearTimeout(timer)
  }, [copied])
  const words = copied ? texts.app.copied : (label ?? texts.app.copy)
  return (
    <>
      <Button
        kind={kind}
        icon={copied ? Check : Icon}
        aria-label={words}
        onPress={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}
      >
        {label === undefined ? undefined : words}
      </Button>
      <span role="status" className="sr-only">
        {copied ? texts.app.copied : ""}
      </span>
    </>
  )
}
