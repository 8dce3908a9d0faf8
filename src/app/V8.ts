/** What is asked of V8. `main` imports this first, so that it holds for everything that comes after. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

// What V8 sees live on while the service starts it would allocate among the long-lived from then on, and whatever such an object
// points to is kept until the next full collection: of every call a tenth stayed, which cost a tenth of the throughput or more.
setFlagsFromString("--no-allocation-site-pretenuring")

// From little room for what is young to all that it may have in one step: by doubling it takes a busy service half a minute after each
// rest, and a collection for every megabyte until then.
setFlagsFromString("--semi-space-growth-factor=32")

/** The first collection drops what starting has left behind; the second finds the service at rest. */
const atRestAfter = [5_000, 12_000]

/**
 * Gives back what starting up has left behind, some 50 MB: by itself a service at rest has no reason to collect anything. Twice, since
 * V8 gives back the room for what is young only where less than a megabyte a second was allocated since it last collected. Newer
 * versions of V8 keep that room for themselves, 64 MB of it, unless it is the last resort.
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
