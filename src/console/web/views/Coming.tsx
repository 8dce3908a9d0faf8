/** A view that is not there yet. */
import { useLocation } from "@tanstack/react-router"
import { Page } from "../parts/Page.tsx"
import { Empty } from "../parts/States.tsx"
import { texts } from "../texts.ts"

export const Coming = () => {
  const name = useLocation().pathname.split("/").at(-1) as keyof typeof texts.nav
  return (
    <Page title={texts.nav[name]}>
      <Empty title={texts.coming.title}>{texts.coming.text}</Empty>
    </Page>
  )
}
