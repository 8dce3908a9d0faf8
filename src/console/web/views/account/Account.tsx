/** The user's account: name, email address and passkeys. */
import { useMe } from "../../app/Asking.ts"
import { Facts, Page, Section } from "../../parts/Page.tsx"
import { Answer } from "../../parts/States.tsx"
import { accountTexts } from "../../texts/account.ts"
import { Passkeys } from "./Passkeys.tsx"

export const Account = () => (
  <Page title={accountTexts.title} lead={accountTexts.lead}>
    <Section title={accountTexts.profile}>
      <Answer of={useMe()} lines={2}>
        {({ account }) => (
          <Facts
            of={[
              [accountTexts.name, account.name],
              [accountTexts.email, account.email]
            ]}
          />
        )}
      </Answer>
    </Section>
    <Passkeys />
  </Page>
)
