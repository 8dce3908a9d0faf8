/** Google's Gemini: `generateContent`, and `streamGenerateContent?alt=sse`. */
import type { Translation } from "../conversation/Translation.ts"
import { readAnswer, reader, writeAnswer } from "./Answer.ts"
import { readRequest, writeRequest } from "./Request.ts"
import { usageOf, writeUsage } from "./Usage.ts"
import { writer } from "./Writer.ts"

export const google: Translation = {
  protocol: "google",
  readRequest,
  writeRequest,
  marksCaches: () => false,
  readAnswer,
  writeAnswer,
  reader,
  writer,
  usageOf,
  writeUsage
}
