/** Sets V8's flags. `main` imports this file first, because the flags must be set before any other code runs. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

// If objects survive the start, V8 would allocate similar objects in the old generation, where they and everything they reference are kept until the
// next full collection. That retained a tenth of each call's objects and cost at least a tenth of the throughput.
setFlagsFromString("--no-allocation-site-pretenuring")

// Lets the young generation grow to its limit in one step. If it only doubled, a busy service would need half a minute after each idle period and
// would run one collection per megabyte until then.
setFlagsFromString("--semi-space-growth-factor=32")

/** Milliseconds after the start. The first collection frees the startup garbage, and the second runs once the service is idle. */
const atRestAfter = [5_000, 12_000]

/**
 * Frees about 50 MB of startup garbage, which an idle service would never collect. A second collection is necessary because V8 shrinks the young
 * generation only if less than a megabyte per second was allocated since the previous one. Newer versions of V8 keep 64 MB of it unless the
 * collection is requested as a last resort.
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
