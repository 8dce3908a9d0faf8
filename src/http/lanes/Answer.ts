/** Responds on an authenticated route, with the result inside the envelope. */
import { Effect } from "effect"
import type { Caller } from "../../kernel/Caller.ts"
import { envelope } from "../../kernel/Envelope.ts"
import { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { CurrentCaller } from "./Caller.ts"

export const answer = <A, E, R>(find: (caller: Caller) => Effect.Effect<A, E, R>) =>
  Effect.map(storable(Effect.flatMap(CurrentCaller, find)), (result) => envelope(result))

/**
 * Converts `BooksUnavailable` to a defect that `Fault` maps to a response. Contracts do not declare this error, because every route that writes can
 * fail with it.
 */
export const storable = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, Exclude<E, BooksUnavailable>, R> =>
  Effect.catchAll(effect, (error) =>
    error instanceof BooksUnavailable ? Effect.die(error) : Effect.fail(error as Exclude<E, BooksUnavailable>)
  )
