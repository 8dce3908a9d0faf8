/** Gives each test file its own testers of `it`. `layer` of @effect/vitest replaces them on the only `it`, which the files of a worker share. */
import { effect, it, live, scoped, scopedLive } from "@effect/vitest"

Object.assign(it, { effect, live, scoped, scopedLive })
