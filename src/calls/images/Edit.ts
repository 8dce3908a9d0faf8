/** Reads the form of OpenAI's image edit route. */
import { Either, Schema } from "effect"
import { createHash } from "node:crypto"
import { formOf } from "../../http/transport/Multipart.ts"
import type { FilePart } from "../../http/transport/Multipart.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { imageTypeOf, OpenAiEditFields } from "./OpenAi.ts"
import type { Creation } from "./OpenAi.ts"

/** An edit with its content hash. The form differs on each retry, because clients choose a new boundary. */
export interface Edit {
  readonly creation: Creation
  readonly fingerprint: () => string
}

const decode = Schema.decodeUnknownEither(OpenAiEditFields)

/** Reads a form with this content type. `Left` holds the first violation. */
export const editOf = (type: string, bytes: Buffer): Either.Either<Edit, InvalidRequest> =>
  Either.flatMap(formOf(type, bytes), ({ files, texts }) =>
    Either.flatMap(Either.mapLeft(decode({ ...texts }), InvalidRequest.ofDecoding), (fields) =>
      Either.map(imagesIn(files), (images) => ({
        creation: { ...fields, ...images },
        fingerprint: () => fingerprintOf(fields, files)
      }))
    )
  )

const fingerprintOf = (fields: object, files: ReadonlyArray<FilePart>): string => {
  const hash = createHash("sha256").update(JSON.stringify(fields))
  for (const { bytes, field } of files) hash.update(`\0${field}\0${bytes.length}\0`).update(bytes)
  return hash.digest("hex")
}

/** Returns the form's images as data URIs. */
const imagesIn = (files: ReadonlyArray<FilePart>): Either.Either<Pick<Creation, "images" | "mask">, InvalidRequest> => {
  const images: Array<string> = []
  const masks: Array<string> = []
  for (const { bytes, field } of files) {
    const of = field === "image" || field === "image[]" ? images : field === "mask" ? masks : undefined
    if (of === undefined) return refused(field, "is not a file field of this form")
    const media = imageTypeOf(bytes)
    if (media === undefined) return refused(field, "must be a PNG, JPEG or WebP image")
    of.push(`data:${media};base64,${bytes.toString("base64")}`)
  }
  if (images.length === 0) return refused("image", "must be the image to edit")
  return masks.length > 1 ? refused("mask", "must be a single image") : Either.right({ images, mask: masks[0] })
}

const refused = (field: string, rule: string) => Either.left(InvalidRequest.of(field, rule))
