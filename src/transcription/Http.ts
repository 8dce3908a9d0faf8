import { HttpApiBuilder } from "@effect/platform"
import type { HttpServerRequest } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { Caller } from "../http/Caller.ts"
import * as Reply from "../http/Reply.ts"
import { envelope } from "../kernel/Envelope.ts"
import type { TranscriptionAnswer } from "./Transcription.ts"
import { Transcriptions } from "./Transcriptions.ts"

export const TranscriptionHttp = HttpApiBuilder.group(
  Api,
  "transcription",
  Effect.fnUntraced(function* (handlers) {
    const transcriptions = yield* Transcriptions
    const answer = (
      request: HttpServerRequest.HttpServerRequest,
      route: "transcriptions" | "tools/transcriptions",
      shape: (answer: TranscriptionAnswer) => object
    ) =>
      Effect.flatMap(Caller, (caller) =>
        Effect.map(transcriptions.transcribe(caller, request, route, shape), Reply.toResponse)
      )
    return handlers
      .handleRaw("transcribe", ({ request }) => answer(request, "transcriptions", (answer) => answer))
      .handleRaw("toolTranscribe", ({ request }) => answer(request, "tools/transcriptions", envelope))
  })
)
