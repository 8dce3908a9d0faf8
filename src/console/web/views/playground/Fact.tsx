/** Shows a row of facts about a call below its response, and the button that opens its explanation. */
import { ReceiptText } from "lucide-react"
import type { ReactNode } from "react"
import { Button } from "../../parts/Button.tsx"
import { playgroundTexts } from "../../texts/playground.ts"

interface FactProps {
  readonly children: ReactNode
  readonly name: string
  readonly tip?: string
}

export const Fact = ({ children, name, tip }: FactProps) => (
  <div {...(tip !== undefined && { "data-tip": tip })}>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
)

export const ExplainFact = ({ onExplain }: { readonly onExplain: () => void }) => (
  <div className="push">
    <dt className="sr-only">{playgroundTexts.explain}</dt>
    <dd>
      <Button kind="ghost" icon={ReceiptText} onPress={onExplain}>
        {playgroundTexts.explain}
      </Button>
    </dd>
  </div>
)
