/** Reads the image routes' requests. A separate thread reads long ones (`BodyThreads`). */
import { Effect, Either } from "effect"
import { json } from "../../http/transport/Body.ts"
import type { Busy } from "../../kernel/Busy.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { LongTexts } from "../../upstream/wire/LongText.ts"
import { doneOnThread, movable, parsedMax } from "../threads/BodyThreads.ts"
import { longTextsOf } from "../threads/LongStrings.ts"
import type { ReadEditTask, ReadGenerationTask } from "./BodyTask.ts"
import { editOf } from "./Edit.ts"
import type { Edit } from "./Edit.ts"
import { ImageRequest } from "./Image.ts"

const decode = json(ImageRequest)

/** A request to generate images. */
export interface Generation {
  readonly request: ImageRequest
  /** The request's long strings, if another thread has read it. */
  readonly texts?: LongTexts | undefined
}

/** An edit with its long strings, if another thread has read it. */
export interface ReadEdit extends Edit {
  readonly texts?: LongTexts | undefined
}

/** Reads a JSON request. The caller must not use the bytes afterwards. */
export const generation = (bytes: Buffer, account: string): Effect.Effect<Generation, InvalidRequest | Busy> => {
  if (bytes.length <= parsedMax) return Either.map(decode(bytes), (request) => ({ request }))
  const task: ReadGenerationTask = { how: "read_generation", body: movable(bytes) }
  return Effect.flatMap(
    doneOnThread(task, account),
    ({ refusal, request, texts }): Effect.Effect<Generation, InvalidRequest> =>
      request === undefined ? new InvalidRequest(refusal!) : Effect.succeed({ request, texts: longTextsOf(texts) })
  )
}

/**
 * Reads an edit's form with this content type. If `fingerprints` is true, its fingerprint is needed. The caller must not use the bytes afterwards.
 */
export const edit = (
  type: string,
  bytes: Buffer,
  fingerprints: boolean,
  account: string
): Effect.Effect<ReadEdit, InvalidRequest | Busy> => {
  if (bytes.length <= parsedMax) return editOf(type, bytes)
  const task: ReadEditTask = { how: "read_edit", type, fingerprints, body: movable(bytes) }
  return Effect.flatMap(
    doneOnThread(task, account),
    ({ creation, fingerprint, refusal, texts }): Effect.Effect<ReadEdit, InvalidRequest> =>
      creation === undefined
        ? new InvalidRequest(refusal!)
        : Effect.succeed({ creation, fingerprint: () => fingerprint!, texts: longTextsOf(texts) })
  )
}
