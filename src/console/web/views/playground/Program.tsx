/** Shows the call as code, without a credential. */
import { KeyRound } from "lucide-react"
import { ButtonLink } from "../../parts/Button.tsx"
import { Code } from "../../parts/Code.tsx"
import { Section } from "../../parts/Page.tsx"
import { TabsOf } from "../../parts/TabsOf.tsx"
import { playgroundTexts } from "../../texts/playground.ts"

type Language = keyof typeof playgroundTexts.codeTabs

const languages: ReadonlyArray<Language> = ["curl", "openai", "fetch", "python"]

export const Program = ({ of }: { readonly of: Partial<Readonly<Record<Language, string>>> }) => (
  <Section
    title={playgroundTexts.code}
    lead={playgroundTexts.codeLead}
    actions={
      <ButtonLink to="/keys" search={{ make: "yes" }} kind="ghost" icon={KeyRound}>
        {playgroundTexts.makeKey}
      </ButtonLink>
    }
  >
    <TabsOf
      label={playgroundTexts.code}
      tabs={languages.flatMap((id) => {
        const text = of[id]
        return text === undefined ? [] : [{ id, title: playgroundTexts.codeTabs[id], content: <Code of={text} /> }]
      })}
    />
  </Section>
)
