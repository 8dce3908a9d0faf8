import { Schema } from "effect"
import { Problem } from "../../kernel/Problem.ts"

/** The id is unknown or belongs to another account. The HTTP body does not repeat the id. */
export class ImageNotFound extends Problem<ImageNotFound>()("ImageNotFound", {
  status: 404,
  error: "no such image request",
  code: "image_not_found",
  fields: { request_id: Schema.optional(Schema.String) },
  details: {}
}) {}

/** OpenAI's clients retry a 5xx by default, and a retry would generate the images again. */
const once = { "x-should-retry": "false" } as const
const request_id = { request_id: Schema.String } as const

/** The images were not ready within `CreationPatience`. They are still being generated and will be charged. */
export class ImagesPending extends Problem<ImagesPending>()("ImagesPending", {
  status: 504,
  error: "the images are still being generated; GET /v1/images/status?request_id=… returns them when they are ready",
  code: "images_pending",
  fields: request_id,
  headers: () => once
}) {}

/** The images were generated and charged, but could not be fetched from the vendor. */
export class ImagesNotFetched extends Problem<ImagesNotFetched>()("ImagesNotFetched", {
  status: 502,
  error:
    "the images were generated, but could not be fetched; GET /v1/images/status?request_id=… returns their addresses",
  code: "images_not_fetched",
  fields: request_id,
  headers: () => once
}) {}

export class ImagesTooLarge extends Problem<ImagesTooLarge>()("ImagesTooLarge", {
  status: 413,
  error: "the images to edit exceed 20 MiB in total",
  code: "payload_too_large"
}) {}
