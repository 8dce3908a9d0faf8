/** The caller of the current request. The middleware of `Security` derives it from the credential. */
import { HttpServerRequest } from "@effect/platform"
import { Context, Effect } from "effect"
import { mayCall } from "../../kernel/Caller.ts"
import type { Caller } from "../../kernel/Caller.ts"

export class CurrentCaller extends Context.Tag("tollgate/http/CurrentCaller")<CurrentCaller, Caller>() {}

/** The callers of requests in the router's lane, by request source, for the log. */
const callers = new WeakMap<object, Caller>()

/** Returns the request's caller, if its credential has been accepted. */
export const callerOf = ({ source }: HttpServerRequest.HttpServerRequest): Caller | undefined =>
  callers.get(source as object)

/** Stores the current request's caller for `callerOf`. */
export const remembered = <E, R>(caller: Effect.Effect<Caller, E, R>) =>
  Effect.zipWith(HttpServerRequest.HttpServerRequest, caller, ({ source }, caller) => {
    callers.set(source as object, caller)
    return caller
  })

/** Returns only the models that the caller may call. `modelOf` returns a model's name in usage records. */
export const callable = <Row extends { readonly id: string }>(
  rows: ReadonlyArray<Row>,
  modelOf = ({ id }: Row): string => id
): Effect.Effect<ReadonlyArray<Row>, never, CurrentCaller> =>
  Effect.map(CurrentCaller, (caller) => rows.filter((row) => mayCall(caller, modelOf(row))))
