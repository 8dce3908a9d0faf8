/** OpenAI's Responses protocol. */
import type { Translation } from "../conversation/Translation.ts"
import { readAnswer, writeAnswer } from "./Answer.ts"
import { reader } from "./Reader.ts"
import { readRequest, writeRequest } from "./Request.ts"
import { usageOf, writeUsage } from "./Usage.ts"
import { writer } from "./Writer.ts"

export const responses: Translation = {
  protocol: "responses",
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
