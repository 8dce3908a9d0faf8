/** What a route that knows its caller answers, in the envelope. */
import { Effect } from "effect"
import { envelope } from "../kernel/Envelope.ts"
import { Caller } from "./Caller.ts"
import type { CallerFacts } from "./Caller.ts"

export const answer = <A, E, R>(find: (caller: CallerFacts) => Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flatMap(Caller, find), (result) => envelope(result))
