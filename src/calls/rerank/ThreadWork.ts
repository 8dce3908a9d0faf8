/** The rerank calls' functions on the long-body thread. */
import { completing, reading, responseOf } from "../embeddings/ThreadWork.ts"
import { parse as parseObject } from "../../upstream/wire/Failures.ts"
import { factsOf, longMembers, withDocuments } from "./Ranking.ts"

/** The functions by task name. */
export const rerankWork = {
  read_rerank: reading("documents", factsOf),
  complete_rerank: completing((response, request) =>
    withDocuments(
      responseOf(response, "results", longMembers, (document) => document),
      parseObject(request!)!.documents as ReadonlyArray<unknown>
    )
  )
}
