/** The envelope `{ msg, result }` around the results of tenant, account, sign-in and price routes. */
import { Schema } from "effect"

export const Envelope = <A, I, R>(result: Schema.Schema<A, I, R>) => Schema.Struct({ msg: Schema.String, result })

export const envelope = <A>(result: A, msg = "ok") => ({ msg, result })
