/** Requests the list of models from an OpenAI-compatible server (Ollama, vLLM, LM Studio, llama.cpp). */
import { Effect, Either, ParseResult, Schema } from "effect"
import { ConfigProblem } from "../../kernel/Setting.ts"

export interface LocalModel {
  readonly id: string
  readonly context_length: number
}

export interface LocalServer {
  /** The address that responded, such as `http://127.0.0.1:11434/v1`. */
  readonly base_url: string
  readonly models: ReadonlyArray<LocalModel>
}

/** The context length to assume for a server that does not report one, in tokens. */
const contextPreset = 32_768
/** The time limit and the maximum response size of a model list request. */
const timeout = "10 seconds"
const bytesMax = 4_000_000

const Listed = Schema.parseJson(
  Schema.Struct({
    data: Schema.Array(
      Schema.Struct({
        id: Schema.NonEmptyString,
        /** Reported by vLLM. */
        max_model_len: Schema.optionalWith(Schema.Number, { nullable: true }),
        /** Reported by LM Studio and others. */
        context_length: Schema.optionalWith(Schema.Number, { nullable: true })
      })
    )
  })
)

/** Recognizes models that cannot chat, such as embedding models, by name. */
const isChat = (id: string): boolean => !/embed|rerank|whisper|tts/i.test(id)

const contextOf = (said: number | undefined): number =>
  said !== undefined && Number.isSafeInteger(said) && said > 0 ? said : contextPreset

const modelsIn = (text: string): Either.Either<ReadonlyArray<LocalModel>, string> =>
  Schema.decodeUnknownEither(Listed)(text).pipe(
    Either.mapBoth({
      onLeft: (error) =>
        `the server did not return a list of models (${ParseResult.ArrayFormatter.formatErrorSync(error)[0]!.message.slice(0, 100)})`,
      onRight: ({ data }) =>
        data
          .filter(({ id }) => isChat(id))
          .map(({ context_length, id, max_model_len }) => ({
            id,
            context_length: contextOf(max_model_len ?? context_length)
          }))
    }),
    Either.filterOrLeft(
      (models) => models.length > 0,
      () => "the server has no chat model; load one first (ollama pull llama3.2)"
    )
  )

const listed = (base_url: string): Effect.Effect<ReadonlyArray<LocalModel>, string> =>
  Effect.tryPromise({
    try: async (signal) => {
      const response = await fetch(`${base_url}/models`, { signal, redirect: "error" })
      const bytes = await response.arrayBuffer()
      return { status: response.status, text: Buffer.from(bytes.slice(0, bytesMax)).toString("utf8") }
    },
    catch: (error) => {
      const { cause, message } = error as Error & {
        readonly cause?: { readonly code?: string; readonly message?: string }
      }
      return `the server cannot be reached (${cause?.code ?? cause?.message ?? message})`
    }
  }).pipe(
    Effect.timeoutFail({ duration: timeout, onTimeout: () => `the server did not respond within ${timeout}` }),
    Effect.flatMap(({ status, text }) =>
      status === 200 ? modelsIn(text) : Effect.fail(`the server returned ${status}`)
    )
  )

const withPassword = new ConfigProblem({
  message: "--upstream: the address must not contain a user or password; use api_key_env in the configuration instead"
})

/** Requests the models from the address with `/v1` appended, then from the address itself. */
export const ask = (address: string): Effect.Effect<LocalServer, ConfigProblem> => {
  const wrong = (why: string) => new ConfigProblem({ message: `--upstream ${address}: ${why}` })
  const url = address.replace(/\/+$/, "")
  if (!/^https?:\/\/[^/]/.test(url) || !URL.canParse(url))
    return Effect.fail(wrong("must be an address such as http://127.0.0.1:11434/v1"))
  if (new URL(url).username !== "" || new URL(url).password !== "") return Effect.fail(withPassword)
  const at = (base_url: string) => Effect.map(listed(base_url), (models): LocalServer => ({ base_url, models }))
  const tried = url.endsWith("/v1") ? at(url) : Effect.orElse(at(`${url}/v1`), () => at(url))
  return Effect.mapError(tried, wrong)
}
