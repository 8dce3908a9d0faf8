// The service loads this file before its own code (`--require`). It measures how long the main thread's event loop is blocked. On
// SIGUSR2, it appends its measurements since the last signal to the file in `BENCH_LOOP`.
//
// It counts the main thread's CPU time instead of wall-clock time, because other processes on a busy machine also delay the event loop.
const { appendFileSync, readFileSync } = require("node:fs")
const { isMainThread } = require("node:worker_threads")

const path = `/proc/self/task/${process.pid}/schedstat`
const read = () => Number(readFileSync(path, "latin1").split(" ", 1)[0]) / 1e6

if (isMainThread && process.env.BENCH_LOOP !== undefined) {
  const limits = [10, 25, 50, 100]
  let longest = 0
  let over = limits.map(() => 0)
  let before = read()
  const tick = () => {
    const now = read()
    const busy = now - before
    before = now
    if (busy > longest) longest = busy
    for (let i = 0; i < limits.length && busy > limits[i]; i++) over[i]++
    setTimeout(tick, 1).unref()
  }
  tick()
  process.on("SIGUSR2", () => {
    appendFileSync(process.env.BENCH_LOOP, `${JSON.stringify({ longest, limits, over })}\n`)
    longest = 0
    over = limits.map(() => 0)
  })
}
