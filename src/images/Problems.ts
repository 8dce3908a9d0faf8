/** What the image routes refuse. */
import { Problem } from "../kernel/Problem.ts"

/** Unknown, or another account's. */
export class ImageNotFound extends Problem<ImageNotFound>()("ImageNotFound", {
  status: 404,
  error: "no such image request",
  code: "image_not_found"
}) {}
