/** The functions that read image requests on the thread for long bodies. */
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

/** The length above which an end user's name is replaced here. Labels record such a name as its hash. */
const nameMax = 1_000

interface Named {
  readonly user?: string | undefined
  readonly safety_identifier?: string | undefined
}

/** Replaces a long name of the end user with its hash, as the call's labels do. The name is not sent upstream. */
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

/** The functions by the names of their tasks. */
export const imagesWork = { read_generation: generation, read_edit: edit }
