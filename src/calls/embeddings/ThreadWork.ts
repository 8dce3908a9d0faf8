/** The embedding and rerank calls' functions on the long-body thread. */
import { Either } from "effect"
import { parse } from "../../http/transport/Json.ts"
import { JsonOutline } from "../../kernel/JsonOutline.ts"
import type { LongMembers } from "../../kernel/JsonOutline.ts"
import { isObject } from "../../upstream/wire/Failures.ts"
import { shortName } from "../metered/TextHash.ts"
import { separated } from "../prompts/Separated.ts"
import { hasTooManyParts } from "../threads/Answer.ts"
import { bufferOf, refusalOf } from "../threads/Task.ts"
import type { Work } from "../threads/Task.ts"
import type { CompleteTask, ReadDone, ReadTask } from "./BodyTask.ts"
import { base64Of, factsOf, longMembers } from "./Embedding.ts"

type Json = Readonly<Record<string, unknown>>

/** The members that the main thread reads: the model and the tags. */
const kept: ReadonlySet<string> = new Set(["model", "metadata"])

/** Returns an empty string, array or object, whichever is like the value. */
const emptied = (value: unknown): unknown => (typeof value === "string" ? "" : Array.isArray(value) ? [] : {})

/** Creates the function that reads requests. `long` is the member that can be long. */
export const reading =
  (long: string, factsOf: (request: unknown) => unknown): Work<ReadTask> =>
  ({ body }) => {
    const json = bufferOf(body)
    const parsed = parse(json)
    if (Either.isLeft(parsed)) return [{ body, parts: undefined, refusal: refusalOf(parsed.left) }, [body]]
    const request = parsed.right
    const { members, rest } = isObject(request)
      ? separated(request, json, {
          long,
          kept: (name) => kept.has(name),
          shortened: (name, value) => shortName(name, value) ?? emptied(value)
        })
      : { members: [], rest: undefined }
    const done: ReadDone = {
      body,
      parts: { value: JSON.stringify(rest ?? null), members, facts: factsOf(request) },
      refusal: undefined
    }
    return [done, [body, ...members.flatMap(({ bytes }) => bytes ?? [])]]
  }

/**
 * Parses a response, one long member at a time. `list` is the array that contains them. `valueOf` converts each value, so that not all parsed values
 * are in memory at the same time.
 */
export const responseOf = (
  bytes: Buffer,
  list: string,
  { depth, names }: LongMembers,
  valueOf: (value: unknown) => unknown
): Json => {
  const outline = new JsonOutline({ depth, names })
  outline.take(bytes)
  const response = outline.value!
  const [name] = names
  let next = 0
  const items = (response[list] as ReadonlyArray<Json>).map((item) => {
    const value = item[name!]
    const isEmpty = typeof value === "string" || (typeof value === "object" && value !== null)
    const place = isEmpty ? outline.emptied[next++] : undefined
    if (place === undefined) return item
    // The surrounding quotes or brackets are included.
    const json = bytes.subarray(place.from - 1, place.to + 1)
    if (hasTooManyParts(json)) throw new Error(`${name} has too many parts`)
    return { ...item, [name!]: valueOf(JSON.parse(json.toString())) }
  })
  return { ...response, [list]: items }
}

/** Creates the function that completes responses. */
export const completing =
  (completed: (response: Buffer, request: Buffer | undefined) => Json): Work<CompleteTask> =>
  ({ beside, body }) => {
    const response = completed(bufferOf(body), beside && bufferOf(beside))
    const bytes = new TextEncoder().encode(JSON.stringify(response))
    return [{ bytes }, [bytes]]
  }

/** The functions by task name. */
export const embeddingsWork = {
  read_embeddings: reading("input", factsOf),
  complete_embeddings: completing((response) => responseOf(response, "data", longMembers, base64Of))
}
