/**
 * Before each test file: the testers of `it` are its own. `layer` of @effect/vitest replaces them on the one `it` that there is, and the
 * files of a worker share it.
 */
import { effect, it, live, scoped, scopedLive } from "@effect/vitest"

Object.assign(it, { effect, live, scoped, scopedLive })
