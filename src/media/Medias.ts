/** The generic media route: quotes, submits, and shows what became of it. */
import { Context, Effect, Layer } from "effect"
import type { InsufficientCredits } from "../gate/Problems.ts"
import type { Caller } from "../kernel/Caller.ts"
import type { Inbound } from "../http/Inbound.ts"
import type { BodyProblem } from "../http/Incoming.ts"
import { parse } from "../http/Json.ts"
import * as Reply from "../http/Reply.ts"
import { Idempotency } from "../idempotency/Idempotency.ts"
import type { Beside, IdempotencyProblem } from "../idempotency/Idempotency.ts"
import { toJson } from "../kernel/Money.ts"
import * as Price from "../kernel/Price.ts"
import { retryAfter } from "../upstream/GenerationQueue.ts"
import type { NotTaken } from "../upstream/GenerationQueue.ts"
import { Jobs } from "./Jobs.ts"
import type { Job } from "./Jobs.ts"
import { MediaModels, quoteOf } from "./Media.ts"
import type { MediaModel, MediaResult, MediaStatus } from "./Media.ts"
import {
  MediaAlreadyCompleted,
  MediaNotCompleted,
  MediaNotFound,
  MediaRateLimited,
  MediaRejected,
  MediaUnavailable
} from "./Problems.ts"

type SubmitProblem =
  | BodyProblem
  | MediaRejected
  | MediaRateLimited
  | MediaUnavailable
  | InsufficientCredits
  | IdempotencyProblem

export interface Contract {
  readonly submit: (caller: Caller, inbound: Inbound) => Effect.Effect<Reply.Reply, SubmitProblem>
  readonly status: (caller: Caller, request_id: string) => Effect.Effect<MediaStatus, MediaNotFound>
  readonly result: (caller: Caller, request_id: string) => Effect.Effect<MediaResult, MediaNotFound | MediaNotCompleted>
  readonly cancel: (
    caller: Caller,
    request_id: string
  ) => Effect.Effect<MediaStatus, MediaNotFound | MediaAlreadyCompleted>
}

export const bodyBytesMax = 1024 * 1024

export class Medias extends Context.Tag("tollgate/media/Medias")<Medias, Contract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Medias, make))
}

const make = Effect.gen(function* () {
  const jobs = yield* Jobs
  const models = yield* MediaModels
  const idempotency = yield* Idempotency

  const call = Effect.fnUntraced(function* (caller: Caller, inbound: Inbound, beside: Beside | undefined) {
    const body = yield* parse(yield* inbound.read(bodyBytesMax))
    const { input, model, price, unit, units } = yield* quoteOf(models, body)
    const job = yield* jobs.submit(
      caller,
      {
        route: "media",
        type: model.type,
        model: model.id,
        provider: model.upstream,
        upstream: model.upstream,
        endpoint: model.endpoint,
        input,
        units,
        unit,
        price
      },
      beside,
      refusedBy
    )
    return submitted(job)
  })

  const submit: Contract["submit"] = (caller, inbound) =>
    idempotency.onceOf(
      caller,
      inbound,
      "media/generate",
      bodyBytesMax,
      (inbound, beside) => call(caller, inbound, beside),
      // Its first answer was not kept; the job is the same.
      (_, made) =>
        Effect.map(jobs.ofCall(caller.account_id, "media", made), (job) => (job === undefined ? job : submitted(job)))
    )

  const found = (job: Job | undefined) => (job === undefined ? new MediaNotFound() : Effect.succeed(job))

  const status: Contract["status"] = ({ account_id }, id) =>
    Effect.map(Effect.flatMap(jobs.look(account_id, "media", id), found), statusOf)

  const result: Contract["result"] = Effect.fn("Medias.result")(function* ({ account_id }, id) {
    const job = yield* Effect.flatMap(jobs.look(account_id, "media", id), found)
    if (job.status !== "COMPLETED" || !job.settled) return yield* new MediaNotCompleted()
    return {
      request_id: job.id,
      model: job.model,
      status: job.status,
      output: job.output ?? {},
      ...failureOf(job)
    }
  })

  const cancel: Contract["cancel"] = Effect.fn("Medias.cancel")(function* ({ account_id }, id) {
    const job = yield* Effect.flatMap(jobs.cancel(account_id, "media", id), found)
    if (job.status === "COMPLETED") return yield* new MediaAlreadyCompleted()
    return statusOf(job)
  })

  return { submit, status, result, cancel } satisfies Contract
})

const submitted = (job: Job): Reply.Reply =>
  Reply.json(200, {
    request_id: job.id,
    model: job.model,
    provider: job.provider,
    status: job.status,
    queue_position: job.queue_position ?? 0,
    cost_usd: toJson(job.quote),
    units: job.units,
    unit: job.unit
  })

const refusedBy = (no: NotTaken): MediaRejected | MediaRateLimited | MediaUnavailable => {
  if (no.how === "rejected") return new MediaRejected(no.words)
  return no.how === "busy" ? new MediaRateLimited(retryAfter(no)) : new MediaUnavailable()
}

const failureOf = ({ error, error_type }: Job) => ({
  ...(error !== null && { error }),
  ...(error_type !== null && { error_type })
})

const statusOf = (job: Job): MediaStatus => ({
  request_id: job.id,
  model: job.model,
  status: job.status,
  // A number at all times: vendors tell it at the end, if ever.
  metrics: { inference_time: job.inference_time ?? 0 },
  settled: job.settled,
  cost_usd: job.settled ? job.cost : job.quote,
  units: job.units,
  unit: job.unit,
  ...failureOf(job)
})

/** A model as the list shows it, at the price of its defaults. */
export const listed = (model: MediaModel) => {
  const price =
    model.type === "image"
      ? model.price
      : model.audio === "on"
        ? model.resolutions[0].price_with_audio
        : model.resolutions[0].price
  return {
    id: model.id,
    display_name: model.display_name,
    type: model.type,
    unit: model.type === "video" ? ("second" as const) : ("image" as const),
    unit_price_usd: Number(Price.toDecimal(price)),
    pricing_note: model.pricing_note,
    default: model.type === "image" && model.default
  }
}
