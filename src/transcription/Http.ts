import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { raw } from "../http/Raw.ts"
import { envelope } from "../kernel/Envelope.ts"
import { Transcription } from "./Transcription.ts"

export const TranscriptionHttp = HttpApiBuilder.group(
  Api,
  "transcription",
  Effect.fnUntraced(function* (handlers) {
    const { transcribe } = yield* Transcription
    return handlers
      .handleRaw(
        "transcribe",
        raw((caller, inbound) => transcribe(caller, inbound, "transcriptions", (answer) => answer))
      )
      .handleRaw(
        "toolTranscribe",
        raw((caller, inbound) => transcribe(caller, inbound, "tools/transcriptions", envelope))
      )
  })
)
