/** What the image routes refuse. */
import { Schema } from "effect"
import { Problem } from "../kernel/Problem.ts"

/** Unknown, or another account's. A client over HTTP knows the id by its own request: the body does not repeat it. */
export class ImageNotFound extends Problem<ImageNotFound>()("ImageNotFound", {
  status: 404,
  error: "no such image request",
  code: "image_not_found",
  fields: { request_id: Schema.optional(Schema.String) },
  details: {}
}) {}
