/** The transcriptions' function on the long-body thread. */
import { Either } from "effect"
import { answerIn } from "../threads/Answer.ts"
import { bufferOf } from "../threads/Task.ts"
import type { Work } from "../threads/Task.ts"
import type { ReadTranscriptTask, TranscriptDone } from "./BodyTask.ts"
import { faultIn, subtitlesOf } from "./Formats.ts"

const read = ({ body, detail }: ReadTranscriptTask): TranscriptDone => {
  const answer = answerIn(bufferOf(body))
  const faulty = (fault: string) => ({ fault, text: "", usage: undefined, subtitles: undefined, body })
  if (Either.isLeft(answer)) return faulty(answer.left)
  const { bytes, value } = answer.right
  const fault = faultIn(value, detail)
  if (fault !== undefined) return faulty(fault)
  return {
    fault: undefined,
    text: value.text as string,
    usage: value.usage,
    subtitles: detail === "segments" ? subtitlesOf(value) : undefined,
    // The bytes differ from the body if the body contains numbers that JSON does not allow.
    body: bytes.buffer === body.buffer ? body : new Uint8Array(bytes)
  }
}

const transcript: Work<ReadTranscriptTask> = (task) => {
  const done = read(task)
  return [done, [done.body]]
}

/** The functions by task name. */
export const transcriptionWork = { read_transcript: transcript }
