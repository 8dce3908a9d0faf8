/** Whom a node that is full of listeners lets in, and whose stream gives way. */
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Listener } from "../../../src/money/events/Event.ts"
import { Feed } from "../../../src/money/events/Feed.ts"
import { accountMax, nodeMax } from "../../../src/money/events/Places.ts"
import type { AccountId, TenantId } from "../../../src/kernel/Ids.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { Notifications } from "../../../src/people/notifications/Notifications.ts"
import { Records } from "../../../src/money/usage/Records.ts"
import { credit, layer as books, open as openAccount } from "../usage/Scene.ts"

const world = Feed.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(Records.layer, Notifications.layer)),
  Layer.provideMerge(books)
)

const listenerOf = (name: string): Listener => ({
  account_id: `acc_${name}` as AccountId,
  tenant_id: `ten_${name}` as TenantId,
  notified: true
})

/** Opens streams of accounts with these names, and answers what closes them. */
const openAll = (names: ReadonlyArray<string>) =>
  Effect.flatMap(Feed, ({ open }) => Effect.forEach(names, (name) => open(listenerOf(name))))

const times = (count: number, name: (i: number) => string) => Array.from({ length: count }, (_, i) => name(i))

/** Why a stream ended that listens to nothing but its end. */
const endOf = ({ run }: Effect.Effect.Success<ReturnType<typeof openAll>>[number]) =>
  run({ after: undefined, holds: Effect.succeed(true), send: () => Effect.succeed(true) })

layer(world)("a listener beside others", (it) => {
  it.effect("does not start a poll for all of them: the first one does", () =>
    Effect.gen(function* () {
      const { job } = yield* Feed
      const woken = Effect.raceFirst(Effect.as(job.waker!.woken, true), Effect.as(Effect.yieldNow(), false))
      const [first] = yield* openAll(["ada"])
      expect(yield* woken).toBe(true)
      const others = yield* openAll(["bob", "eve", "ada"])
      expect(yield* woken).toBe(false)
      for (const { close } of [first!, ...others]) close()
      const [next] = yield* openAll(["kim"])
      expect(yield* woken).toBe(true)
      next!.close()
    })
  )
})

layer(world)("a node whose places are all taken", (it) => {
  it.effect("lets accounts without a stream in, for the oldest streams of those that have most", () =>
    Effect.gen(function* () {
      const { open } = yield* Feed
      const crowd = yield* openAll(times(nodeMax, (i) => `crowd${i % (nodeMax / accountMax)}`))
      const first = yield* open(listenerOf("ada"))
      expect(yield* endOf(crowd[0]!)).toBe("displaced")
      // It had eight, and has seven now: nobody has two more than that, but for those with fewer.
      expect(yield* Effect.flip(open(listenerOf("crowd0")))).toMatchObject({
        _tag: "StreamsBusy",
        status: 503,
        retry_after: 10
      })
      expect(yield* Effect.flip(open(listenerOf("crowd1")))).toMatchObject({
        _tag: "TooManyStreams",
        status: 429,
        retry_after: 10
      })
      const more = yield* openAll(times(200, (i) => `person${i}`))
      for (const { close } of [first, ...crowd, ...more]) close()
    })
  )

  it.effect("one to each account, lets tenants in that have had credit, for those that never had", () =>
    Effect.gen(function* () {
      const { job, open } = yield* Feed
      for (const name of ["payer0", "payer1", "idle"]) yield* openAccount(listenerOf(name).tenant_id)
      yield* credit(listenerOf("payer0").tenant_id, usd)
      yield* credit(listenerOf("payer1").tenant_id, usd, "purchase", "pay_2")
      const crowd = yield* openAll(["payer0", ...times(nodeMax - 1, (i) => `free${i}`)])
      yield* job.turn
      expect((yield* Effect.flip(open(listenerOf("idle"))))._tag).toBe("StreamsBusy")
      const payer = yield* open(listenerOf("payer1"))
      expect(yield* endOf(crowd[1]!)).toBe("displaced")
      expect((yield* Effect.flip(open(listenerOf("free0"))))._tag).toBe("StreamsBusy")
      for (const { close } of [payer, ...crowd]) close()
      // Closing twice gives no place back twice.
      const again = yield* openAll(times(nodeMax, (i) => `free${i}`))
      expect((yield* Effect.flip(open(listenerOf("idle"))))._tag).toBe("StreamsBusy")
      for (const { close } of again) close()
    })
  )
})
