/** The caller of the current request, as its credential says; provided by the middleware of `Security`. */
import { Context, Effect } from "effect"
import { mayCall } from "../../kernel/Caller.ts"
import type { Caller } from "../../kernel/Caller.ts"

export class CurrentCaller extends Context.Tag("tollgate/http/CurrentCaller")<CurrentCaller, Caller>() {}

/** Of a list of models those that the caller may call. `modelOf` says what usage records call one. */
export const callable = <Row extends { readonly id: string }>(
  rows: ReadonlyArray<Row>,
  modelOf = ({ id }: Row): string => id
): Effect.Effect<ReadonlyArray<Row>, never, CurrentCaller> =>
  Effect.map(CurrentCaller, (caller) => rows.filter((row) => mayCall(caller, modelOf(row))))
