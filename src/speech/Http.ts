import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { raw } from "../http/Raw.ts"
import { Speech } from "./Speech.ts"

export const SpeechHttp = HttpApiBuilder.group(
  Api,
  "speech",
  Effect.fnUntraced(function* (handlers) {
    const speech = yield* Speech
    return handlers.handleRaw("speak", raw(speech.speak)).handleRaw("speakSimply", raw(speech.speakSimply))
  })
)
