/**
 * Runs the service from its packed files, like the executable, until it responds. Then writes V8's compiled code for each file into a folder: `node
 * <flags of the executable> record.cjs LOADER FOLDER PACKED_FILES DATA_FOLDER CONFIGURATION`
 */
const { writeFileSync } = require("node:fs")
const { get } = require("node:http")
const { join } = require("node:path")
const vm = require("node:vm")
const threads = require("node:worker_threads")

const [, , loader, folder, packed, data, configuration] = process.argv
const port = 20_000 + (process.pid % 10_000)
Object.assign(process.env, { PORT: String(port), DATA_DIR: data, LOG_LEVEL: "error" })
process.argv = [process.execPath, process.execPath, "serve", "--config", configuration]

/** Makes this process and the thread read the service's assets from the packed file. */
const pretend = `process.execPath = ${JSON.stringify(packed)}`
vm.runInThisContext(pretend)

const scripts = new Map()
vm.Script = class extends vm.Script {
  constructor(text, options) {
    super(text, options)
    scripts.set(options.filename, this)
  }
}
const workers = []
threads.Worker = class extends threads.Worker {
  constructor(text, options) {
    const report = `require("node:worker_threads").parentPort.once("message", function () { this.postMessage(script.createCachedData()) })`
    super(`${pretend}\n${text}\n${report}`, options)
    workers.push(this)
  }
}

const write = (name, bytes) => writeFileSync(join(folder, `${name}.cache`), bytes)

const finish = () => {
  for (const [name, script] of scripts) write(name, script.createCachedData())
  const [worker] = workers
  worker.once("message", (bytes) => {
    write("WriterThread.js", bytes)
    process.kill(process.pid, "SIGTERM")
  })
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker of node has no origin
  worker.postMessage("report")
}

const ask = () =>
  get({ port, path: "/readyz", agent: false }, (answer) => {
    answer.resume()
    if (answer.statusCode === 200) finish()
    else setTimeout(ask, 50)
  }).on("error", () => setTimeout(ask, 50))

require(loader)
ask()
