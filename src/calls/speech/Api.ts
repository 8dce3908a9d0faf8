/** Text-to-speech endpoints. */
import { MeteredRefusal } from "../metered/Problems.ts"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Example, Metered, Produces } from "../../http/contract/Documented.ts"
import { ReadsOwnBody, RefusalShape } from "../../http/contract/Annotations.ts"
import { openAiRefusal } from "../../http/contract/OpenAiRefusal.ts"
import { KeyOrToken } from "../../people/credentials/Security.ts"
import { ToolModelList } from "../../upstream/models/Provider.ts"
import { formats, OpenAiSpeechRequest, SpeechRequest, ToolSpeechRequest } from "./Request.ts"

const Audio = HttpApiSchema.Uint8Array({ contentType: "audio/mpeg" })

const types = Object.values(formats)

export class SpeechApi extends HttpApiGroup.make("speech")
  .add(
    HttpApiEndpoint.post("speak", "/v1/speech")
      .setPayload(SpeechRequest)
      .addSuccess(Audio)
      .annotate(Produces, types)
      .annotate(ReadsOwnBody, true)
      .annotate(Example, { body: { input: "The tide is in.", model: "tts-1", voice: "alloy", response_format: "mp3" } })
      .annotate(Metered, { charge_known: true, says_record: true })
      .annotate(OpenApi.Summary, "Convert text to speech; the audio streams in the requested format")
  )
  .add(
    HttpApiEndpoint.post("speakSimply", "/v1/tools/speech")
      .setPayload(ToolSpeechRequest)
      .addSuccess(Audio)
      .annotate(Produces, types)
      .annotate(ReadsOwnBody, true)
      .annotate(Example, { body: { input: "The tide is in." } })
      .annotate(Metered, { charge_known: true, says_record: true })
      .annotate(OpenApi.Summary, "Convert text to speech; only the text is required")
  )
  .add(
    HttpApiEndpoint.post("createSpeech", "/v1/audio/speech")
      .setPayload(OpenAiSpeechRequest)
      .addSuccess(Audio)
      .annotate(Produces, [...types, "text/event-stream"])
      .annotate(RefusalShape, openAiRefusal)
      .annotate(ReadsOwnBody, true)
      .annotate(Example, { body: { input: "The tide is in.", model: "tts-1", voice: "alloy" } })
      .annotate(Metered, { charge_known: true, says_record: true })
      .annotate(OpenApi.Summary, "Convert text to speech with OpenAI's fields, on OpenAI's path")
  )
  .addError(MeteredRefusal)
  .middleware(KeyOrToken) {}

export class SpeechModelsApi extends HttpApiGroup.make("speechModels")
  .add(
    HttpApiEndpoint.get("list", "/v1/tools/speech/models")
      .addSuccess(ToolModelList)
      .annotate(OpenApi.Summary, "List the speech models with their prices")
  )
  .middleware(KeyOrToken) {}
