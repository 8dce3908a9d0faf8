/** Handles prompts that are too long to parse on the main thread. A separate thread reads and translates them (`BodyThreads`). */
import { Effect, Either } from "effect"
import type { Busy } from "../../kernel/Busy.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { ClientProtocol } from "../../upstream/models/Protocol.ts"
import type { ModelRoute } from "../prompts/Model.ts"
import type { LongText, Translation, ValidPrompt } from "../prompts/Prompt.ts"
import { doneOnThread, movable } from "../threads/BodyThreads.ts"
import { bufferOf } from "../threads/Task.ts"
import type { PromptRoute, ReadTask, WriteTask } from "./BodyTask.ts"
import type { Pair } from "./Translated.ts"

/** A valid prompt whose long members were not read on this thread. It replaces the parsed prompt in a call. */
export class LongPrompt {
  readonly valid: ValidPrompt

  constructor(valid: ValidPrompt) {
    this.valid = valid
  }

  /** The client's `stream` field. */
  get stream(): unknown {
    return this.valid.body.stream
  }
}

/** A prompt's identity on the thread. */
interface Known {
  readonly prompt: number
  readonly client: ClientProtocol
  readonly account: string
}

const known = new WeakMap<LongText, Known>()
let prompts = 0

/** Reads a prompt on the thread. The caller must not use the bytes afterwards. */
export const read = (
  route: PromptRoute,
  json: Buffer,
  account: string
): Effect.Effect<LongPrompt, InvalidRequest | Busy> => {
  const prompt = ++prompts
  const task: ReadTask = { how: "read", prompt, route, body: movable(json) }
  return Effect.flatMap(
    doneOnThread(task, account),
    ({ body, hash, parts, refusal }): Effect.Effect<LongPrompt, InvalidRequest> => {
      if (parts === undefined) return new InvalidRequest(refusal!)
      const { body: rest, prompt: figures, ...facts } = parts
      const long: LongText = { ...facts, json: bufferOf(body), hash, translations: new Map() }
      // A prompt that is only counted is never translated.
      if (route !== "count_tokens") known.set(long, { prompt, client: route, account })
      const value = JSON.parse(rest) as ValidPrompt["body"]
      return Effect.succeed(new LongPrompt({ ...figures, body: value, json: undefined, long }))
    }
  )
}

/** A route and its translation. */
export interface TranslatedRoute {
  readonly pair: Pair
  readonly route: ModelRoute
  /** Whether the upstream requires the translation's hash. */
  readonly hashes: boolean
}

/**
 * Translates a prompt for a route, unless the route's last translation has the same limit. `Translated.bodyFor` then returns the result. The prompt's
 * JSON is on the other thread meanwhile, so a call must not translate its prompt concurrently.
 */
export const translate = (
  long: LongText,
  { hashes, pair, route }: TranslatedRoute,
  stream: boolean,
  limit: number | undefined
): Effect.Effect<Translation["body"], Busy> => {
  const before = long.translations.get(route)
  if (before !== undefined && before.limit === limit) return Effect.succeed(before.body)
  const { account, ...about } = known.get(long)!
  const { limit_field, model } = route
  const task: WriteTask = {
    how: "write",
    ...about,
    vendor: pair.vendor.protocol,
    route: { limit_field, model },
    limit,
    stream,
    hashes,
    body: movable(long.json)
  }
  return Effect.map(doneOnThread(task, account), ({ body, bytes, refusal, sha256 }) => {
    long.json = bufferOf(body)
    const translated: Translation["body"] =
      bytes === undefined ? Either.left(new InvalidRequest(refusal!)) : Either.right([bufferOf(bytes)])
    // Only one translation is cached, because it is long. Refusals are short.
    for (const [other, { body }] of long.translations) if (Either.isRight(body)) long.translations.delete(other)
    long.translations.set(route, { limit, body: translated, sha256 })
    return translated
  })
}
