/** Home. */
import { Page } from "../../parts/Page.tsx"
import { texts } from "../../texts.ts"

export const Home = () => <Page title={texts.nav.home}>{null}</Page>
