/** V8 flags. `main` imports this file first, because the flags must apply to all other code. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

// Objects that survive the start would make V8 allocate similar objects in the old generation, where they and everything they reference stay until
// the next full collection. That kept a tenth of each call's objects and cost at least a tenth of the throughput.
setFlagsFromString("--no-allocation-site-pretenuring")

// Grow the young generation to its limit in one step. By doubling, a busy service needs half a minute after each idle period and runs one
// collection per megabyte until then.
setFlagsFromString("--semi-space-growth-factor=32")

/** Milliseconds after the start. The first collection frees the startup garbage. The second runs when the service is idle. */
const atRestAfter = [5_000, 12_000]

/**
 * Frees about 50 MB of startup garbage, because an idle service never collects. The second collection is necessary because V8 shrinks the young
 * generation only after allocating less than a megabyte per second since the last one. Newer versions of V8 keep its 64 MB unless the collection is
 * a last resort.
 */
export const collectSoon = (): void => {
  for (const after of atRestAfter) {
    setTimeout(() => {
      setFlagsFromString("--expose-gc")
      const gc = runInNewContext("gc") as (how: object) => void
      gc({ type: "major", execution: "sync", flavor: "last-resort" })
    }, after).unref()
  }
}
