/** Usage. */
import { Page } from "../../parts/Page.tsx"
import { texts } from "../../texts.ts"

export const Usage = () => <Page title={texts.nav.home}>{null}</Page>
