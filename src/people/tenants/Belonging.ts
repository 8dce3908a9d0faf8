/**
 * Invalidates caches with marks for accounts, tenants, applications and runs. A cache gets marks before it reads, saves them with the value, and
 * reloads once a mark is no longer current. A change invalidates only the mark of the changed row: an account (memberships, pinned payer, ended
 * sign-ins), a tenant (plan, billing settings), an application (limits, deletion) or a run (its end). The change takes effect immediately in this
 * process, and a signal notifies other nodes (`storage/engine/Signals`). A node that may have missed a signal invalidates all its marks.
 *
 * Where the specification is silent:
 * - Cached callers and payers contain marks for their account, tenants and application. A change invalidates only the marks of the changed rows.
 */
import { Context, Effect, Layer } from "effect"
import type { AccountId, ApplicationId, RunId, TenantId } from "../../kernel/Ids.ts"
import { Signals } from "../../storage/engine/Signals.ts"

export interface Mark {
  /** `false` once the marked row has changed. */
  current: boolean
}

/** Returns whether all marks are current. Uses a plain loop, because it runs on every call. */
export const isCurrent = (marks: ReadonlyArray<Mark>): boolean => {
  for (const mark of marks) if (!mark.current) return false
  return true
}

type Marked = AccountId | TenantId | ApplicationId | RunId

export interface BelongingContract {
  /** Returns the current mark. Synchronous, because calls get marks on the hot path. */
  readonly markOf: (id: Marked) => Mark
  /** Invalidates marks after a change is committed. Waits up to a few seconds for the other nodes. */
  readonly changed: (...ids: ReadonlyArray<Marked>) => Effect.Effect<void>
}

/** The maximum number of marks. A further mark invalidates the oldest, so caches that contain it reload. */
const marksMax = 100_000

const topic = "belonging"

export class Belonging extends Context.Tag("tollgate/tenants/Belonging")<Belonging, BelongingContract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(Belonging, make).pipe(Layer.provide(Signals.layer)))
}

const make = Effect.gen(function* () {
  const { publish, subscribe } = yield* Signals
  // A plain map instead of Effect's `Cache`, because `markOf` is synchronous.
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
