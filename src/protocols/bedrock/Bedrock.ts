/** Bedrock's Converse and ConverseStream. `upstream/wire/EventFrames` decodes their frames. */
import type { Translation } from "../conversation/Translation.ts"
import { readAnswer, writeAnswer } from "./Answer.ts"
import { reader, writer } from "./Events.ts"
import { readRequest, acceptsCacheMarks, writeRequest } from "./Request.ts"
import { usageOf, writeUsage } from "./Usage.ts"

export const bedrock: Translation = {
  protocol: "bedrock",
  readRequest,
  writeRequest,
  marksCaches: acceptsCacheMarks,
  readAnswer,
  writeAnswer,
  reader,
  writer,
  usageOf,
  writeUsage
}
