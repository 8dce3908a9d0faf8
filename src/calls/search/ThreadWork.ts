/** The searches' function on the long-body thread. */
import { Either } from "effect"
import { answerIn } from "../threads/Answer.ts"
import { bufferOf } from "../threads/Task.ts"
import type { Work } from "../threads/Task.ts"
import type { ReadResultsTask } from "./BodyTask.ts"
import { searchVendors } from "./Provider.ts"

const read: Work<ReadResultsTask> = ({ body, max_results, vendor }) => {
  const answer = answerIn(bufferOf(body))
  const results = Either.isRight(answer) ? searchVendors[vendor].results(answer.right.value) : undefined
  return [{ results: results?.slice(0, max_results) }, []]
}

/** The functions by task name. */
export const searchWork = { read_results: read }
