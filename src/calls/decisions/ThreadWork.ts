/** The decisions' function on the long-body thread. */
import { Either } from "effect"
import { answerIn } from "../threads/Answer.ts"
import { bufferOf } from "../threads/Task.ts"
import type { Work } from "../threads/Task.ts"
import type { ReadDecisionTask } from "./BodyTask.ts"

const read: Work<ReadDecisionTask> = ({ body }) => {
  const answer = answerIn(bufferOf(body))
  if (Either.isLeft(answer)) return [{ fault: answer.left, own: {}, rest: new Uint8Array() }, []]
  const { id, model, provider, usage, ...others } = answer.right.value
  const rest = new TextEncoder().encode(JSON.stringify(others))
  return [{ fault: undefined, own: { id, model, provider, usage }, rest }, [rest]]
}

/** The functions by task name. */
export const decisionsWork = { read_decision: read }
