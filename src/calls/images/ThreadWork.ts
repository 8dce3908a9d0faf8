/** The functions that read image requests on the long-body thread. */
import { Either } from "effect"
import { json } from "../../http/transport/Body.ts"
import { hashOf } from "../metered/TextHash.ts"
import { shortened } from "../threads/LongStrings.ts"
import type { Texts } from "../threads/LongStrings.ts"
import { bufferOf, refusalOf } from "../threads/Task.ts"
import type { Work } from "../threads/Task.ts"
import type { ReadEditTask, ReadGenerationTask } from "./BodyTask.ts"
import { editOf } from "./Edit.ts"
import { ImageRequest } from "./Image.ts"

const decode = json(ImageRequest)

const noTexts: Texts = new Map()

/** The buffers that move to the main thread. */
const moved = (texts: Texts): ReadonlyArray<Uint8Array> => [...texts.values()]

/** The maximum length of an end user's name. A longer name is replaced with its hash. */
const nameMax = 1_000

interface Named {
  readonly user?: string | undefined
  readonly safety_identifier?: string | undefined
}

/** Replaces an end user's long name with its hash, as the call's labels do. The name is not sent upstream. */
const withShortName = <A extends Named>(request: A): A => {
  const short = (name: string | undefined) => (name !== undefined && name.length > nameMax ? hashOf(name) : name)
  const { safety_identifier, user } = request
  return { ...request, user: short(user), safety_identifier: short(safety_identifier) }
}

const generation: Work<ReadGenerationTask> = ({ body }) => {
  const read = decode(bufferOf(body))
  if (Either.isLeft(read)) return [{ request: undefined, texts: noTexts, refusal: refusalOf(read.left) }, []]
  const { texts, value } = shortened(withShortName(read.right))
  return [{ request: value, texts, refusal: undefined }, moved(texts)]
}

const edit: Work<ReadEditTask> = ({ body, fingerprints, type }) => {
  const read = editOf(type, bufferOf(body))
  if (Either.isLeft(read)) {
    const refusal = refusalOf(read.left)
    return [{ creation: undefined, fingerprint: undefined, texts: noTexts, refusal }, []]
  }
  const { creation, fingerprint } = read.right
  const { texts, value } = shortened(withShortName(creation))
  const done = {
    creation: value,
    fingerprint: fingerprints ? fingerprint() : undefined,
    texts,
    refusal: undefined
  }
  return [done, moved(texts)]
}

/** The functions by task name. */
export const imagesWork = { read_generation: generation, read_edit: edit }
