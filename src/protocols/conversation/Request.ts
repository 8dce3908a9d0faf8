/** Reads and writes requests in any protocol. Fields are checked in order, and the first finding is returned as `Left`. */
import { Either } from "effect"
import type { Conversation, JsonObject } from "./Conversation.ts"
import { Fields, isDeep, isObject } from "./Json.ts"
import type { RequestOptions, Translation } from "./Translation.ts"
import { Findings } from "./Uncarriable.ts"
import type { Uncarriable } from "./Uncarriable.ts"

/** Creates a function that reads a request. It rejects a value that is not a JSON object or is nested too deeply. */
export const reading =
  (read: (fields: Fields, body: JsonObject) => Conversation): Translation["readRequest"] =>
  (body) => {
    if (!isObject(body)) return Either.left({ field: "", why: "must be a JSON object" })
    if (isDeep(body)) return Either.left({ field: "", why: "must not be nested too deeply" })
    return found((fields) => read(fields, body))
  }

export const writing =
  (
    write: (fields: Fields, conversation: Conversation, options: RequestOptions) => JsonObject
  ): Translation["writeRequest"] =>
  (conversation, options) =>
    found((fields) => write(fields, conversation, options))

const found = <A>(make: (fields: Fields) => A): Either.Either<A, Uncarriable> => {
  const findings = new Findings()
  const made = make(new Fields(findings))
  return findings.first === undefined ? Either.right(made) : Either.left(findings.first)
}
