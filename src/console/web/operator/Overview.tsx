/** The operator's first view. */
import { Page } from "../parts/Page.tsx"
import { Empty } from "../parts/States.tsx"
import { texts } from "../texts.ts"

export const Overview = () => (
  <Page title={texts.operator.home}>
    <Empty title={texts.coming.title}>{texts.coming.text}</Empty>
  </Page>
)
