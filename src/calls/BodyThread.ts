/** The long-body thread. It performs one task at a time, with the function that the task names. */
import { parentPort } from "node:worker_threads"
import { decisionsWork } from "./decisions/ThreadWork.ts"
import { embeddingsWork } from "./embeddings/ThreadWork.ts"
import { engineWork } from "./engine/ThreadWork.ts"
import { imagesWork } from "./images/ThreadWork.ts"
import { rerankWork } from "./rerank/ThreadWork.ts"
import { searchWork } from "./search/ThreadWork.ts"
import { transcriptionWork } from "./transcription/ThreadWork.ts"
import type { AnyWork, Failed, Outcome, Task } from "./threads/Task.ts"

const works: Readonly<Record<string, AnyWork>> = {
  ...engineWork,
  ...decisionsWork,
  ...embeddingsWork,
  ...imagesWork,
  ...rerankWork,
  ...searchWork,
  ...transcriptionWork
}

const reply = ([done, moved]: Outcome<object | Failed>): void =>
  parentPort!.postMessage(
    done,
    moved.map(({ buffer }) => buffer as ArrayBuffer)
  )

parentPort!.on("message", (task: Task<object>) => {
  try {
    reply(works[task.how]!(task as never))
  } catch (error) {
    reply([{ failed: error instanceof Error ? error.message : String(error) }, []])
  }
})
