import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { raw } from "../http/Raw.ts"
import { Speeches } from "./Speeches.ts"

export const SpeechHttp = HttpApiBuilder.group(
  Api,
  "speech",
  Effect.fnUntraced(function* (handlers) {
    const speeches = yield* Speeches
    return handlers.handleRaw("speak", raw(speeches.speak)).handleRaw("speakSimply", raw(speeches.speakSimply))
  })
)
