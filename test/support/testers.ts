/** Gives each test file its own testers on `it`. The files of a worker share one `it`, and `layer` of @effect/vitest replaces its testers. */
import { effect, it, live, scoped, scopedLive } from "@effect/vitest"

Object.assign(it, { effect, live, scoped, scopedLive })
