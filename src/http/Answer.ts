/** What a route that knows its caller answers, in the envelope. */
import { Effect } from "effect"
import { envelope } from "../kernel/Envelope.ts"
import { CurrentCaller } from "./Caller.ts"
import type { Caller } from "../kernel/Caller.ts"

export const answer = <A, E, R>(find: (caller: Caller) => Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flatMap(CurrentCaller, find), (result) => envelope(result))
