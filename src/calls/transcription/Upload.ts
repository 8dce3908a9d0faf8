/** Receives an audio file. The file is on disk during the call and is never entirely in memory. */
import { FileSystem, Path } from "@effect/platform"
import { Effect, Either, Schema } from "effect"
import type { Scope } from "effect"
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import type { Inbound } from "../../http/transport/Inbound.ts"
import { isForm, notForm } from "../../http/transport/Multipart.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { formFrom } from "./Form.ts"
import type { FormProblem } from "./Form.ts"
import { fileBytesMax } from "./Length.ts"

export interface Upload<Fields> {
  readonly fields: Fields
  readonly path: string
  readonly name: string
  readonly content_type: string
  readonly bytes: number
  /** The hash of the file and the fields. */
  readonly fingerprint: string
}

/** The maximum size of the form without its file, in bytes. */
const formBytesMax = 1024 * 1024

/** Reads a form with these fields and writes its file to disk. The file is deleted when the scope closes. */
export const receive = <Fields, I>(
  schema: Schema.Schema<Fields, I>
): ((
  inbound: Inbound
) => Effect.Effect<Upload<Fields>, FormProblem, Scope.Scope | FileSystem.FileSystem | Path.Path>) => {
  const readFields = Schema.decodeUnknownEither(schema)
  return Effect.fnUntraced(function* (inbound: Inbound) {
    const type = inbound.header("content-type") ?? ""
    if (!isForm(type)) return yield* notForm
    const files = yield* FileSystem.FileSystem
    const folder = yield* Effect.orDie(files.makeTempDirectoryScoped())
    // The client's file name is never used as a path.
    const path = (yield* Path.Path).join(folder, "audio")
    const source = yield* inbound.stream(fileBytesMax + formBytesMax)
    const { audio, texts } = yield* formFrom(source, type, path)
    if (audio === undefined) {
      return yield* new InvalidRequest({
        message: "file: must be an audio file",
        field: "file",
        rule: "must be an audio file"
      })
    }
    const fields = yield* Either.mapLeft(readFields(texts), InvalidRequest.ofDecoding)
    const { bytes, content_type, name } = audio
    if (bytes === 0) {
      return yield* new InvalidRequest({ message: "file: must not be empty", field: "file", rule: "must not be empty" })
    }
    const hash = createHash("sha256").update(JSON.stringify(fields))
    yield* Effect.promise(async () => {
      for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
    })
    return { fields, path, name, content_type, bytes, fingerprint: hash.digest("hex") }
  })
}
