// Each of the service's threads loads this file before its own code (`--require`). On SIGUSR2, each thread reports its heap after a full collection.
const { appendFileSync } = require("node:fs")
const { setFlagsFromString, writeHeapSnapshot } = require("node:v8")
const { runInNewContext } = require("node:vm")
const { BroadcastChannel, isMainThread, threadId } = require("node:worker_threads")

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc")

const { SOAK_MEMORY: file, SOAK_SNAPSHOTS: snapshots } = process.env
/** The minutes of a life at which to write a heap snapshot. */
const snapshotsAt = (snapshots ?? "").split(",").filter((one) => one !== "")

const tell = () => {
  // Collect twice, because the second collection frees the objects that the first one finalizes.
  collect()
  collect()
  const { external, heapUsed } = process.memoryUsage()
  const line = { pid: process.pid, thread: threadId, retained: heapUsed + external }
  appendFileSync(file, `${JSON.stringify(line)}\n`)
  if (snapshotsAt.length > 0 && performance.now() >= 60_000 * Number(snapshotsAt[0]))
    writeHeapSnapshot(`${file}-${process.pid}-${threadId}-${snapshotsAt.shift()}.heapsnapshot`)
}

// Only the main thread receives signals.
const channel = new BroadcastChannel("soak")
if (isMainThread)
  process.on("SIGUSR2", () => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel of threads has no origins
    channel.postMessage(null)
    tell()
  })
else channel.addEventListener("message", tell)
channel.unref()
