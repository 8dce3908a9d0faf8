/** Audio transcription. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, Multipart, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Metered } from "../http/Documented.ts"
import { GateRefusal } from "../gate/Problems.ts"
import { ReadsOwnBody } from "../http/Annotations.ts"
import { BodyRefusal } from "../http/Problems.ts"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"
import { KeyOrToken } from "../http/Security.ts"
import { IdempotencyRefusal } from "../idempotency/Problems.ts"
import { Envelope } from "../kernel/Envelope.ts"
import { UpstreamRefusal } from "../upstream/Problems.ts"
import { AudioTooLarge } from "./Problems.ts"
import { TranscriptionAnswer, TranscriptionFields } from "./Fields.ts"

const Form = HttpApiSchema.Multipart(Schema.Struct({ file: Multipart.SingleFileSchema, ...TranscriptionFields.fields }))

export class TranscriptionApi extends HttpApiGroup.make("transcription")
  .add(
    HttpApiEndpoint.post("transcribe", "/v1/transcriptions")
      .setPayload(Form)
      .addSuccess(TranscriptionAnswer)
      .annotate(ReadsOwnBody, true)
      .annotate(Metered, { charge_known: true })
      .annotate(OpenApi.Summary, "Speech to text; the file streams, up to 25 MiB")
  )
  .add(
    HttpApiEndpoint.post("toolTranscribe", "/v1/tools/transcriptions")
      .setPayload(Form)
      .addSuccess(Envelope(TranscriptionAnswer))
      .annotate(ReadsOwnBody, true)
      .annotate(Metered, { charge_known: true })
      .annotate(OpenApi.Summary, "Speech to text, its answer in an envelope")
  )
  .addError(InvalidRequest)
  .addError(AudioTooLarge)
  .addError(BodyRefusal)
  .addError(GateRefusal)
  .addError(IdempotencyRefusal)
  .addError(UpstreamRefusal)
  .middleware(KeyOrToken) {}
