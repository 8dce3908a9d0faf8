/** The playground for models and tools. Each call shows its cost, its record and equivalent code. */
import { getRouteApi } from "@tanstack/react-router"
import { Choice } from "../../parts/Choice.tsx"
import { Page } from "../../parts/Page.tsx"
import { playgroundTexts } from "../../texts/playground.ts"
import { CallDialog } from "../usage/CallDialog.tsx"
import { Chat } from "./Chat.tsx"
import { Media } from "./Media.tsx"
import { Search } from "./Search.tsx"
import { Speech } from "./Speech.tsx"
import { Transcription } from "./Transcription.tsx"

const route = getRouteApi("/person/playground")

const kinds = [
  ["chat", playgroundTexts.chat],
  ["media", playgroundTexts.media],
  ["speech", playgroundTexts.speech.title],
  ["transcription", playgroundTexts.transcription.title],
  ["search", playgroundTexts.search.title]
] as const
type Kind = (typeof kinds)[number][0]

const views = { chat: Chat, media: Media, speech: Speech, transcription: Transcription, search: Search }

export const Playground = () => {
  const { call, make } = route.useSearch()
  const navigate = route.useNavigate()
  const kind = kinds.find(([one]) => one === make)?.[0] ?? "chat"
  const of = (chosen: Kind) => (chosen === "chat" ? {} : { make: chosen })
  const View = views[kind]
  return (
    <Page
      title={playgroundTexts.title}
      lead={playgroundTexts.lead}
      actions={
        <Choice
          label={playgroundTexts.what}
          options={kinds}
          value={kind}
          onChange={(chosen) => void navigate({ search: of(chosen) })}
        />
      }
    >
      <View onExplain={(usageId) => void navigate({ search: { ...of(kind), call: usageId }, resetScroll: false })} />
      <CallDialog id={call} onClose={() => void navigate({ search: of(kind), replace: true, resetScroll: false })} />
    </Page>
  )
}
