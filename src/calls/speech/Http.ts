/** The speech routes. They stream the audio. */
import { HttpApiBuilder } from "@effect/platform"
import { Effect, Either } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import type { Shape } from "../../http/contract/Annotations.ts"
import { json } from "../../http/transport/Body.ts"
import { callable } from "../../http/lanes/Caller.ts"
import type { Inbound } from "../../http/transport/Inbound.ts"
import { openAiRefusal } from "../../http/contract/OpenAiRefusal.ts"
import { raw } from "../../http/lanes/Raw.ts"
import type { Reply } from "../../http/transport/Reply.ts"
import type { Beside } from "../../http/idempotency/Idempotency.ts"
import type { Caller } from "../../kernel/Caller.ts"
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { modelsOf, withModel } from "../../upstream/models/Provider.ts"
import { forEndUser } from "../metered/EndUser.ts"
import { meteredRoutes } from "../metered/Routes.ts"
import { headersOf } from "../metered/ReceiptHeaders.ts"
import { SpeechApi, SpeechModelsApi } from "./Api.ts"
import { OpenAiSpeechRequest, SpeechRequest, ToolSpeechRequest } from "./Request.ts"
import { SpeechProviders } from "./Settings.ts"
import { Speech } from "./Speech.ts"
import type { SpeechAudio } from "./Speech.ts"

const bodyBytesMax = 1024 * 1024

export const SpeechHttp = HttpApiBuilder.group(
  contract.add(SpeechApi),
  "speech",
  Effect.fnUntraced(function* (handlers) {
    const speech = yield* Speech
    const meteredRoute = yield* meteredRoutes()
    const providers = yield* SpeechProviders

    /**
     * Creates a route. `route` scopes its idempotency keys, `read` parses the body, `endpoint` is the route's name in usage records, and `shape`
     * formats errors.
     */
    const speak = (
      route: string,
      read: (bytes: Buffer) => Either.Either<SpeechRequest, InvalidRequest>,
      endpoint?: string,
      shape?: Shape
    ) => {
      const call = Effect.fnUntraced(function* (caller: Caller, inbound: Inbound, beside: Beside | undefined) {
        const request = yield* read(yield* inbound.read(bodyBytesMax))
        const named = yield* forEndUser(caller, request)
        return replyOf(yield* speech.speak({ caller: named, request, endpoint, beside }))
      })
      return meteredRoute({ name: route, body_bytes_max: bodyBytesMax, answer: call, shape })
    }

    /** Reads a request from an OpenAI client. It specifies a model but no provider. */
    const openAi = (bytes: Buffer) =>
      Either.flatMap(readOpenAi(bytes), (request) =>
        Either.map(withModel(providers, request.model), ({ id }): SpeechRequest => ({ ...request, provider: id }))
      )

    return handlers
      .handleRaw("speak", raw(speak("speech", json(SpeechRequest))))
      .handleRaw("speakSimply", raw(speak("tools/speech", json(ToolSpeechRequest))))
      .handleRaw("createSpeech", raw(speak("audio/speech", openAi, "audio/speech", openAiRefusal)))
  })
)

export const SpeechModelsHttp = HttpApiBuilder.group(contract.add(SpeechModelsApi), "speechModels", (handlers) =>
  handlers.handle("list", () =>
    Effect.flatMap(SpeechProviders, (providers) =>
      Effect.map(callable(modelsOf(providers, "character")), (models) => ({ models }))
    )
  )
)

const readOpenAi = json(OpenAiSpeechRequest)

const replyOf = ({ audio, content_type, cost, rates, usage_id }: SpeechAudio): Reply => ({
  status: 200,
  headers: { "content-type": content_type, ...headersOf({ charged: cost, rates, usage_id }) },
  body: audio
})
