/** The transcription routes: a form to a file on the disk, a transcript to JSON. */
import { HttpApiBuilder } from "@effect/platform"
import type { FileSystem, Path } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import type { Inbound } from "../http/Inbound.ts"
import { raw } from "../http/Raw.ts"
import { json } from "../http/Reply.ts"
import type { Reply } from "../http/Reply.ts"
import { Gate } from "../gate/Gate.ts"
import { affordable } from "../idempotency/BeforeBody.ts"
import { Idempotency } from "../idempotency/Idempotency.ts"
import type { Caller } from "../kernel/Caller.ts"
import { envelope } from "../kernel/Envelope.ts"
import { toDecimal } from "../kernel/Money.ts"
import type { TranscriptionAnswer } from "./Fields.ts"
import { Transcription } from "./Transcription.ts"
import type { Transcript, TranscriptionCall } from "./Transcription.ts"
import { receive } from "./Upload.ts"
import type { Upload } from "./Upload.ts"

export const TranscriptionHttp = HttpApiBuilder.group(
  Api,
  "transcription",
  Effect.fnUntraced(function* (handlers) {
    const transcription = yield* Transcription
    const idempotency = yield* Idempotency
    const disk = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
    const ifAffordable = affordable(yield* Gate, idempotency, [transcription.least])

    /** A route, by which its keys are told from the other's, and what the body of its answer is. */
    const transcribe = (route: string, shape: (answer: TranscriptionAnswer) => object) => {
      const served = Effect.fnUntraced(function* (caller: Caller, inbound: Inbound) {
        const upload = yield* receive(inbound)
        // Who asks for what there is not is told so whatever the key was used for.
        yield* transcription.quote(upload.fields, upload.bytes)
        return yield* idempotency.once(
          caller,
          inbound.header("idempotency-key"),
          () => `${route} ${upload.fingerprint}`,
          (beside) =>
            Effect.map(transcription.transcribe(callOf(caller, upload, beside)), (transcript) =>
              replyOf(transcript, shape)
            )
        )
      })
      return (caller: Caller, inbound: Inbound) =>
        ifAffordable(caller, inbound, Effect.provide(Effect.scoped(served(caller, inbound)), disk))
    }

    return handlers
      .handleRaw("transcribe", raw(transcribe("transcriptions", (answer) => answer)))
      .handleRaw("toolTranscribe", raw(transcribe("tools/transcriptions", envelope)))
  })
)

const callOf = (caller: Caller, upload: Upload, beside: TranscriptionCall["beside"]): TranscriptionCall => {
  const { language, model, prompt, provider, temperature } = upload.fields
  return {
    caller,
    audio: { name: upload.name, content_type: upload.content_type, path: upload.path, length: upload.bytes },
    provider,
    model,
    language,
    prompt,
    temperature: temperature === undefined ? undefined : Number(temperature),
    beside
  }
}

const replyOf = (
  { duration, provider, receipt, text }: Transcript,
  shape: (answer: TranscriptionAnswer) => object
): Reply =>
  json(200, shape({ text, status: "completed", provider, ...(duration !== undefined && { duration }) }), {
    "x-charge-usd": toDecimal(receipt.charged)
  })
