/** The number of notifications that an account keeps. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import type { AccountId } from "../../../src/kernel/Ids.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { notice } from "../../../src/people/notifications/Notification.ts"
import { Notifications } from "../../../src/people/notifications/Notifications.ts"
import { books } from "../auth/World.ts"

describe("notifications", () => {
  it.scoped("number 1,000 at most for an account: one more overwrites the oldest", () =>
    Effect.gen(function* () {
      const { submit } = yield* Writer
      const { list, read } = yield* Notifications
      const [ada, bob] = ["acc_ada" as AccountId, "acc_bob" as AccountId]
      let now = 1_000
      const write = (account_id: AccountId, title: string) =>
        submit({ postings: [], statements: [notice({ account_id, kind: "low_balance", title, text: "" }, now++)] })
      yield* TestClock.setTime(5_000)
      yield* write(bob, "Bob's")
      for (let i = 0; i < 1_000; i++) yield* write(ada, String(i))
      const [oldest] = (yield* list({ caller: { account_id: ada }, page: 1_000, per_page: 1 })).records
      yield* read({ caller: { account_id: ada }, id: oldest!.id })
      for (let i = 1_000; i < 1_003; i++) yield* write(ada, String(i))
      const page = yield* list({ caller: { account_id: ada }, page: 1, per_page: 200 })
      const last = yield* list({ caller: { account_id: ada }, page: 1_000, per_page: 1 })
      expect([page.total_records, page.unread, last.records[0]?.title]).toEqual([1_000, 1_000, "3"])
      expect(page.records.slice(0, 3).map(({ title }) => title)).toEqual(["1002", "1001", "1000"])
      expect((yield* list({ caller: { account_id: bob }, page: 1, per_page: 1 })).total_records).toBe(1)
    }).pipe(Effect.provide(Layer.provideMerge(Notifications.layer, books)))
  )
})
