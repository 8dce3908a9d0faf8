/** What a stream sends while nothing happens. */
import { expect, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, TestClock } from "effect"
import type { FeedEvent } from "../../../src/money/events/Event.ts"
import { Feed } from "../../../src/money/events/Feed.ts"
import type { AccountId, TenantId } from "../../../src/kernel/Ids.ts"
import { Notifications } from "../../../src/people/notifications/Notifications.ts"
import { Records } from "../../../src/money/usage/Records.ts"
import { layer as books } from "../usage/Scene.ts"

const world = Feed.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(Records.layer, Notifications.layer)),
  Layer.provideMerge(books)
)

layer(world)("an idle stream", (it) => {
  it.effect("gets a heartbeat every 15 seconds, although the job wakes it every two seconds", () =>
    Effect.gen(function* () {
      const { job, open } = yield* Feed
      const { close, run } = yield* open({
        account_id: "acc_ada" as AccountId,
        tenant_id: "ten_ada" as TenantId,
        notified: true
      })
      const sent: Array<FeedEvent["type"]> = []
      const running = yield* Effect.fork(
        run({
          after: undefined,
          holds: Effect.succeed(true),
          send: ({ type }) => Effect.sync(() => sent.push(type) > 0)
        })
      )
      // The database answers outside the test's clock.
      const settled = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))
      yield* settled
      for (let second = 0; second < 40; second++) {
        for (let i = 0; i < 2; i++) yield* job.turn
        yield* TestClock.adjust("1 second")
        yield* settled
      }
      expect(sent).toEqual(["ready", "beat", "beat"])
      close()
      expect(yield* Fiber.join(running)).toBe("displaced")
    })
  )
})
