/** Handles prompts that are too long to parse on the main thread. A separate thread reads and translates them (`BodyThreads`). */
import { Effect, Either } from "effect"
import { Busy, busyFor } from "../../kernel/Busy.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { ClientProtocol } from "../../upstream/models/Protocol.ts"
import type { ModelRoute } from "../prompts/Model.ts"
import type { LongText, Translation, ValidPrompt } from "../prompts/Prompt.ts"
import type { Failed } from "./BodyTask.ts"
import { movable, onThread, returned } from "./BodyThreads.ts"
import type { Pair } from "./Translated.ts"

/** A valid prompt whose long members were not read on this thread. It takes the place of a parsed prompt in a call. */
export class LongPrompt {
  readonly valid: ValidPrompt

  constructor(valid: ValidPrompt) {
    this.valid = valid
  }

  /** Whether the client wants a stream. */
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

/** The prompt's bytes are gone, because the thread ended while it had them. */
export const lost = new Busy({
  message: "the request could not be read beside other large requests; try again shortly",
  retry_after: busyFor
})

/** Fails unless the thread has done its task. Like an error on this thread, an error on the other thread is a defect. */
const settled = <Done extends object>(done: Done | Failed | undefined): Effect.Effect<Done, Busy> => {
  if (done === undefined) return Effect.zipRight(Effect.logError("the thread for large bodies ended"), lost)
  return "failed" in done ? Effect.die(new Error(done.failed)) : Effect.succeed(done)
}

/** Reads a prompt of this account. The bytes must not be used afterwards. */
export const read = (
  client: ClientProtocol,
  json: Buffer,
  account: string
): Effect.Effect<LongPrompt, InvalidRequest | Busy> => {
  const prompt = ++prompts
  return onThread({ how: "read", prompt, client, body: movable(json) }, account).pipe(
    Effect.flatMap(settled),
    Effect.flatMap(({ body, hash, parts, refusal }): Effect.Effect<LongPrompt, InvalidRequest> => {
      if (parts === undefined) return new InvalidRequest(refusal!)
      const { body: rest, prompt: figures, ...facts } = parts
      const long: LongText = { ...facts, json: returned(body), hash, translations: new Map() }
      known.set(long, { prompt, client, account })
      const value = JSON.parse(rest) as ValidPrompt["body"]
      return Effect.succeed(new LongPrompt({ ...figures, body: value, json: undefined, long }))
    })
  )
}

/**
 * Translates a prompt for a route, unless that is the route's last translation. `Translated.bodyFor` then returns the result. The prompt's JSON is
 * elsewhere meanwhile, so a call translates its prompt for one route after the other.
 */
export const translate = (
  long: LongText,
  { vendor }: Pair,
  route: ModelRoute,
  stream: boolean,
  limit: number | undefined
): Effect.Effect<Translation["body"], Busy> => {
  const before = long.translations.get(route)
  if (before !== undefined && before.limit === limit) return Effect.succeed(before.body)
  const { account, ...about } = known.get(long)!
  const { limit_field, model } = route
  const task = {
    how: "write",
    ...about,
    vendor: vendor.protocol,
    route: { limit_field, model },
    limit,
    stream,
    body: movable(long.json)
  } as const
  return onThread(task, account).pipe(
    Effect.flatMap(settled),
    Effect.map(({ body, bytes, refusal }) => {
      long.json = returned(body)
      const translated: Translation["body"] =
        bytes === undefined ? Either.left(new InvalidRequest(refusal!)) : Either.right([returned(bytes)])
      // Only one translation is kept, because it is long. Refusals are short.
      for (const [other, { body }] of long.translations) if (Either.isRight(body)) long.translations.delete(other)
      long.translations.set(route, { limit, body: translated })
      return translated
    })
  )
}
