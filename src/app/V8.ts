/** Sets V8's flags. `main` imports this file first, because the flags must be set before any other code runs. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

// If objects survive the start, V8 by default allocates similar objects in the old generation. These objects and everything they reference remain
// there until the next full collection. This default retained a tenth of each call's objects and cost at least a tenth of the throughput.
setFlagsFromString("--no-allocation-site-pretenuring")

// Lets the young generation grow to its limit in one step. If this generation only doubled, a busy service would need half a minute after each idle
// period to reach the limit. Until then, it would run one collection per megabyte.
setFlagsFromString("--semi-space-growth-factor=32")

/**
 * The times of the two collections, in milliseconds after the call of `collectSoon`. The first frees the startup garbage; the second runs once the
 * service is idle.
 */
const atRestAfter = [5_000, 12_000]

/** Whether `gc` accepts options. V8 before version 12 (Node.js 20) ignores them and collects only the young generation. */
const hasOptions = Number(process.versions.v8.split(".")[0]) >= 12

/** A service is busy if it uses more than this share of a core. */
const busyShare = 0.25

/** More bytes than any process can have. */
const tooLarge = 2 ** 50

/**
 * Frees about 50 MB of startup garbage, which an idle service would never collect, and the 64 MB of the young generation. V8 keeps emptied pages
 * unless the collection is a last resort. In Node.js 20, only a failed allocation causes such a collection. This takes a tenth of a second, so a busy
 * service skips it.
 */
export const collectSoon = (): void => {
  for (const [i, after] of atRestAfter.entries()) {
    const before = process.cpuUsage()
    setTimeout(() => {
      if (hasOptions || i === 0) {
        setFlagsFromString("--expose-gc")
        const gc = runInNewContext("gc") as (how?: object) => void
        if (hasOptions) gc({ type: "major", execution: "sync", flavor: "last-resort" })
        else gc()
      } else if (millisOf(process.cpuUsage(before)) < after * busyShare) failToAllocate()
    }, after).unref()
  }
}

const failToAllocate = (): void => {
  try {
    return void new ArrayBuffer(tooLarge)
  } catch {
    // As intended.
  }
}

const millisOf = ({ system, user }: NodeJS.CpuUsage): number => (system + user) / 1_000
