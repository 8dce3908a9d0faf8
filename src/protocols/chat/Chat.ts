/** Chat completions of OpenAI and compatible servers. */
import type { Translation } from "../conversation/Translation.ts"
import { readAnswer, writeAnswer } from "./Answer.ts"
import { reader, writer } from "./Events.ts"
import { readRequest, writeRequest } from "./Request.ts"
import { usageOf, writeUsage } from "./Usage.ts"

export const chat: Translation = {
  protocol: "chat",
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
