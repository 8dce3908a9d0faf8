/** Sends live figures as server-sent events once a second, for as long as the caller's credential is valid. */
import type { HttpServerRequest } from "@effect/platform"
import { Effect, Schema } from "effect"
import { eventText, served } from "../../http/transport/EventStream.ts"
import type { EventStream } from "../../http/transport/EventStream.ts"
import { Busy } from "../../kernel/Busy.ts"
import { write } from "../../kernel/Decimal.ts"
import { LiveFigures } from "./Figures.ts"
import type { OperatorWatchContract } from "./Watch.ts"

/** The maximum number of listeners per node. */
export const listenersMax = 16

/** The number of events between credential checks. */
const checkEvery = 5

const encode = Schema.encodeSync(LiveFigures)

/** Creates the request handler. `holderOf` must fail if the credential in the `Authorization` header is invalid. */
export const make = (
  holderOf: (authorization: string | undefined) => Effect.Effect<unknown, unknown>,
  { live }: OperatorWatchContract
) => {
  let listeners = 0

  const run = (request: HttpServerRequest.HttpServerRequest) =>
    Effect.fnUntraced(function* (stream: EventStream) {
      const isValid = Effect.isSuccess(holderOf(request.headers["authorization"]))
      for (let sent = 0; ; sent++) {
        if (sent % checkEvery === 0 && !(yield* isValid)) return "credential"
        const figures = { ...encode(yield* live), listeners }
        if (!(yield* stream.send(eventText("figures", write(figures))))) return "slow"
        yield* Effect.sleep("1 second")
      }
    })

  return Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
    if (listeners >= listenersMax) {
      return yield* new Busy({ message: "too many listeners; try again later", retry_after: 10 })
    }
    listeners += 1
    return yield* served(request, run(request), () => void listeners--)
  }, Effect.uninterruptible)
}
