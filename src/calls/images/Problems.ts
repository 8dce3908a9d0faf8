/** Refusals of the image routes. */
import { Schema } from "effect"
import { Problem } from "../../kernel/Problem.ts"

/** Unknown, or another account's. A client over HTTP knows the id by its own request: the body does not repeat it. */
export class ImageNotFound extends Problem<ImageNotFound>()("ImageNotFound", {
  status: 404,
  error: "no such image request",
  code: "image_not_found",
  fields: { request_id: Schema.optional(Schema.String) },
  details: {}
}) {}

/** OpenAI's clients try a 5xx again by themselves unless they are told not to, which here would make the images once more. */
const once = { "x-should-retry": "false" } as const
const request_id = { request_id: Schema.String } as const

/** The images take longer than `CreationPatience`. They are made and charged all the same. */
export class ImagesPending extends Problem<ImagesPending>()("ImagesPending", {
  status: 504,
  error: "the images are still being made; GET /v1/images/status?request_id=… has them once they are there",
  code: "images_pending",
  fields: request_id,
  headers: () => once
}) {}

/** The images were made and charged, and the vendor's address did not give them. */
export class ImagesNotFetched extends Problem<ImagesNotFetched>()("ImagesNotFetched", {
  status: 502,
  error: "the images were made, but could not be fetched; GET /v1/images/status?request_id=… has their addresses",
  code: "images_not_fetched",
  fields: request_id,
  headers: () => once
}) {}

export class ImagesTooLarge extends Problem<ImagesTooLarge>()("ImagesTooLarge", {
  status: 413,
  error: "the images to edit are larger than 20 MiB together",
  code: "payload_too_large"
}) {}
