/** The caller of the current request, as its credential says; provided by the middleware of `Security`. */
import { Context } from "effect"
import type { Caller } from "../kernel/Caller.ts"

export class CurrentCaller extends Context.Tag("tollgate/http/CurrentCaller")<CurrentCaller, Caller>() {}
