/** Handles embedding and rerank requests and responses that are too long for the main thread. A separate thread reads them (`BodyThreads`). */
import { Effect } from "effect"
import type { Busy } from "../../kernel/Busy.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { LongMember } from "../prompts/Prompt.ts"
import { doneOnThread, movable, readOnThread } from "../threads/BodyThreads.ts"
import { bufferOf } from "../threads/Task.ts"
import type { CompleteTask, ReadTask, RequestParts, SingleProtocol } from "./BodyTask.ts"

/** A request whose long members were not read on this thread. It replaces the parsed request in a call and has not been validated. */
export class LongRequest {
  /** The request with short values of the same types instead of the long members. */
  readonly value: unknown
  readonly facts: unknown
  /** The request's JSON. */
  readonly json: Buffer
  readonly members: ReadonlyArray<LongMember>

  constructor({ facts, members, value }: RequestParts, json: Buffer) {
    this.value = JSON.parse(value)
    this.facts = facts
    this.json = json
    this.members = members
  }
}

/** Reads a request. The caller must not use the bytes afterwards. */
export const read = (
  protocol: SingleProtocol,
  json: Buffer,
  account: string
): Effect.Effect<LongRequest, InvalidRequest | Busy> => {
  const task: ReadTask = { how: `read_${protocol}`, body: movable(json) }
  return Effect.flatMap(
    doneOnThread(task, account),
    ({ body, parts, refusal }): Effect.Effect<LongRequest, InvalidRequest> =>
      parts === undefined ? new InvalidRequest(refusal!) : Effect.succeed(new LongRequest(parts, bufferOf(body)))
  )
}

/**
 * Adds requested parts that the upstream omitted to its response. `request` is the request's JSON, if it is needed. Returns `undefined` if the thread
 * failed. The caller must not use the bytes afterwards.
 */
export const completed = (
  protocol: SingleProtocol,
  response: Buffer,
  request: Buffer | undefined,
  account: string
): Effect.Effect<Buffer | undefined> => {
  const task: CompleteTask = {
    how: `complete_${protocol}`,
    body: movable(response),
    beside: request && movable(request)
  }
  return Effect.map(readOnThread(task, account), (done) => done && bufferOf(done.bytes))
}
