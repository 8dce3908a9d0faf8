/** Keys. */
import { Page } from "../../parts/Page.tsx"
import { texts } from "../../texts.ts"

export const Keys = () => <Page title={texts.nav.home}>{null}</Page>
