/**
 * Runs the service as the executable will, from the folder of its assets, until it answers; then writes beside each file what V8 has
 * compiled of it by then: `node <flags of the executable> record.cjs FOLDER DATA_FOLDER CONFIGURATION`
 */
const { writeFileSync } = require("node:fs")
const { get } = require("node:http")
const { join } = require("node:path")
const vm = require("node:vm")
const threads = require("node:worker_threads")

const [, , folder, data, configuration] = process.argv
const port = 20_000 + (process.pid % 10_000)
Object.assign(process.env, { PORT: String(port), DATA_DIR: data, LOG_LEVEL: "error" })
process.argv = [process.execPath, process.execPath, "serve", "--config", configuration]

/** Gives files of a folder for assets; it is run in the thread too, so it is all in itself. */
const pretend = (folder) => {
  const Module = require("node:module")
  const load = Module._load
  const getRawAsset = (name) => {
    const bytes = require("node:fs").readFileSync(`${folder}/${name}`)
    return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)
  }
  Module._load = (name, ...rest) => (name === "node:sea" ? { getRawAsset } : load(name, ...rest))
}
pretend(folder)

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
    super(`(${pretend})(${JSON.stringify(folder)})\n${text}\n${report}`, options)
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

require(join(folder, "loader.js"))
ask()
