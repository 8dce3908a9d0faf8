/** Code with a copy button, as one block or in three languages. */
import { Copy } from "./Copy.tsx"
import { TabsOf } from "./TabsOf.tsx"
import { texts } from "../texts.ts"

const Block = ({ text }: { readonly text: string }) => (
  <div className="code">
    <pre className="scrolls" tabIndex={0}>
      <code>{text}</code>
    </pre>
    <div className="code-copy">
      <Copy text={text} />
    </div>
  </div>
)

interface CodeProps {
  readonly of: string | Readonly<Record<"curl" | "typescript" | "python", string>>
}

export const Code = ({ of }: CodeProps) =>
  typeof of === "string" ? (
    <Block text={of} />
  ) : (
    <TabsOf
      label={texts.app.copy}
      tabs={(["curl", "typescript", "python"] as const).map((id) => ({
        id,
        title: texts.code[id],
        content: <Block text={of[id]} />
      }))}
    />
  )
