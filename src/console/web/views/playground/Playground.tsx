/** The playground: a chat, images and videos, each with what it costs, its record, and the same as a program. */
import { getRouteApi } from "@tanstack/react-router"
import { Choice } from "../../parts/Choice.tsx"
import { Page } from "../../parts/Page.tsx"
import { playgroundTexts } from "../../texts/playground.ts"
import { CallDialog } from "../usage/CallDialog.tsx"
import { Chat } from "./Chat.tsx"
import { Media } from "./Media.tsx"

const route = getRouteApi("/person/playground")

export const Playground = () => {
  const { call, make } = route.useSearch()
  const navigate = route.useNavigate()
  const what = make === "media" ? "media" : "chat"
  return (
    <Page
      title={playgroundTexts.title}
      lead={playgroundTexts.lead}
      actions={
        <Choice
          label={playgroundTexts.what}
          options={[
            ["chat", playgroundTexts.chat],
            ["media", playgroundTexts.media]
          ]}
          value={what}
          onChange={(chosen) => void navigate({ search: chosen === "media" ? { make: "media" } : {} })}
        />
      }
    >
      {what === "chat" ? (
        <Chat onExplain={(usageId) => void navigate({ search: { call: usageId }, resetScroll: false })} />
      ) : (
        <Media />
      )}
      <CallDialog id={call} onClose={() => void navigate({ search: {}, replace: true, resetScroll: false })} />
    </Page>
  )
}
