/**
 * Marks of accounts, tenants and applications, by which a cache sees that what it remembers is out of date. A change of an account
 * (its memberships, its pin, the end of one of its sign-ins) ends the account's mark, a change of a tenant (its plan, its billing
 * settings) the tenant's, the end of an application that one's: what is remembered of others stays. A cache takes the marks before
 * it reads, keeps them with what it read, and reads again once one of them ended; so a change holds at once in this process, and to
 * look costs a comparison. The other nodes over the database are told (`storage/engine/Signals`), and end their marks; a node that may have missed
 * it ends all of its own.
 *
 * Where the specification is silent:
 * - What is remembered of an account (who calls, who pays) is remembered with marks (`people/tenants/Belonging`) of the account and of the
 *   tenants that it belongs to. A change ends the marks of what it changed, and no others.
 */
import { Context, Effect, Layer } from "effect"
import type { AccountId, ApplicationId, TenantId } from "../../kernel/Ids.ts"
import { Signals } from "../../storage/engine/Signals.ts"

export interface Mark {
  /** Whether nothing has changed since the mark was given out. */
  current: boolean
}

/** Whether none of them has ended. A loop and no callback: it runs for every call. */
export const isCurrent = (marks: ReadonlyArray<Mark>): boolean => {
  for (const mark of marks) if (!mark.current) return false
  return true
}

type Marked = AccountId | TenantId | ApplicationId

export interface BelongingContract {
  /** Not an effect: it is taken in the middle of calls. */
  readonly markOf: (id: Marked) => Mark
  /** To be run after the commit of a change. It waits until the other nodes are told, for some seconds at most. */
  readonly changed: (...ids: ReadonlyArray<Marked>) => Effect.Effect<void>
}

/** How many marks are kept. The oldest ends before its time then: whoever holds it reads again. */
const marksMax = 100_000

const topic = "belonging"

export class Belonging extends Context.Tag("tollgate/tenants/Belonging")<Belonging, BelongingContract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(Belonging, make).pipe(Layer.provide(Signals.layer)))
}

const make = Effect.gen(function* () {
  const { publish, subscribe } = yield* Signals
  // Not Effect's `Cache`: marks are taken outside of effects, and have nothing that is looked up.
  const marks = new Map<string, Mark>()
  const end = (id: string) => {
    const mark = marks.get(id)
    if (mark === undefined) return
    mark.current = false
    marks.delete(id)
  }
  yield* subscribe(topic, (ids) => (ids ?? [...marks.keys()]).forEach(end))
  return {
    markOf: (id) => {
      let mark = marks.get(id)
      if (mark === undefined) {
        if (marks.size >= marksMax) end(marks.keys().next().value!)
        marks.set(id, (mark = { current: true }))
      }
      return mark
    },
    changed: (...ids) =>
      Effect.zipRight(
        Effect.sync(() => ids.forEach(end)),
        publish(topic, ids)
      )
  } satisfies BelongingContract
})
