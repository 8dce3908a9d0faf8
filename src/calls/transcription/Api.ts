/** Audio transcription endpoints. */
import { MeteredRefusal } from "../metered/Problems.ts"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, Multipart, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example, Metered } from "../../http/contract/Documented.ts"
import { ReadsOwnBody, RefusalShape } from "../../http/contract/Annotations.ts"
import { openAiRefusal } from "../../http/contract/OpenAiRefusal.ts"
import { KeyOrToken } from "../../people/credentials/Security.ts"
import { Envelope } from "../../kernel/Envelope.ts"
import { ToolModelList } from "../../upstream/models/Provider.ts"
import { AudioTooLarge } from "./Problems.ts"
import {
  OpenAiTranscriptionFields,
  OpenAiTranslationFields,
  TranscriptionAnswer,
  TranscriptionFields
} from "./Fields.ts"

const form = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  HttpApiSchema.Multipart(Schema.Struct({ file: Multipart.SingleFileSchema, ...fields }))
const Form = form(TranscriptionFields.fields)

/** The possible response bodies. `response_format` selects one. */
const OpenAiAnswer = Schema.Struct({ text: Schema.String }).annotations({ identifier: "OpenAiTranscription" })
const PlainText = HttpApiSchema.Text({ contentType: "text/plain" })

const openAi = <const Name extends string, Fields extends Schema.Struct.Fields>(
  name: Name,
  path: `/${string}`,
  fields: Fields
) =>
  HttpApiEndpoint.post(name, path)
    .setPayload(form(fields))
    .addSuccess(OpenAiAnswer)
    .addSuccess(PlainText)
    .annotate(RefusalShape, openAiRefusal)
    .annotate(ReadsOwnBody, true)
    .annotate(Example, { body: { model: "whisper-1" } })
    .annotate(Metered, { charge_known: true, says_record: true })

export class TranscriptionApi extends HttpApiGroup.make("transcription")
  .add(
    HttpApiEndpoint.post("transcribe", "/v1/transcriptions")
      .setPayload(Form)
      .addSuccess(TranscriptionAnswer)
      .annotate(ReadsOwnBody, true)
      .annotate(Metered, { charge_known: true, says_record: true })
      .annotate(OpenApi.Summary, "Transcribe speech; the file is streamed, up to 25 MiB")
  )
  .add(
    HttpApiEndpoint.post("toolTranscribe", "/v1/tools/transcriptions")
      .setPayload(Form)
      .addSuccess(Envelope(TranscriptionAnswer))
      .annotate(ReadsOwnBody, true)
      .annotate(Metered, { charge_known: true, says_record: true })
      .annotate(OpenApi.Summary, "Transcribe speech; the response is wrapped in an envelope")
  )
  .add(
    openAi("createTranscription", "/v1/audio/transcriptions", OpenAiTranscriptionFields.fields).annotate(
      OpenApi.Summary,
      "Transcribe speech with OpenAI's fields, on OpenAI's path, to JSON, text or subtitles"
    )
  )
  .add(
    openAi("createTranslation", "/v1/audio/translations", OpenAiTranslationFields.fields).annotate(
      OpenApi.Summary,
      "Transcribe speech and translate it to English, with models that can translate"
    )
  )
  .addError(AudioTooLarge)
  .addError(MeteredRefusal)
  .middleware(KeyOrToken) {}

export class TranscriptionModelsApi extends HttpApiGroup.make("transcriptionModels")
  .add(
    HttpApiEndpoint.get("list", "/v1/tools/transcriptions/models")
      .addSuccess(ToolModelList)
      .annotate(OpenApi.Summary, "List the transcription models with their prices")
  )
  .middleware(KeyOrToken) {}
