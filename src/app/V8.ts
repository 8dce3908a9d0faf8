/** Sets V8's flags. `main` imports this file first, because the flags must be set before any other code runs. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

// If objects survive the start, V8 by default allocates similar objects in the old generation. They and everything they reference remain there until the next full collection. This default retained a tenth of each call's objects and cost at least a tenth of the throughput.
setFlagsFromString("--no-allocation-site-pretenuring")

// Lets the young generation grow to its limit in one step. If it only doubled, a busy service would need half a minute after each idle period to reach the limit, with one collection per megabyte until then.
setFlagsFromString("--semi-space-growth-factor=32")

/**
 * The times of the two collections, in milliseconds after the start. The first frees the startup garbage; the second runs once the service is idle.
 */
const atRestAfter = [5_000, 12_000]

/**
 * Frees about 50 MB of startup garbage, which an idle service would otherwise never collect. A second collection is necessary because V8 shrinks the
 * young generation only if less than a megabyte per second was allocated since the previous one. Newer versions of V8 keep 64 MB of the freed memory
 * unless the collection is requested as a last resort.
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
