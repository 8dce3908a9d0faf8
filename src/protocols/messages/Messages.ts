/** Anthropic's Messages, version 2023-06-01. */
import type { Translation } from "../conversation/Translation.ts"
import { readAnswer, writeAnswer } from "./Answer.ts"
import { reader, writer } from "./Events.ts"
import { readRequest, writeRequest } from "./Request.ts"
import { usageOf, writeUsage } from "./Usage.ts"

export const messages: Translation = {
  protocol: "messages",
  readRequest,
  writeRequest,
  marksCaches: () => true,
  readAnswer,
  writeAnswer,
  reader,
  writer,
  usageOf,
  writeUsage
}
