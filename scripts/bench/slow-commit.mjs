// Simulates a slow disk. Each COMMIT of better-sqlite3 first blocks the committing thread for 5 ms. The floor and the service preload this file with
// `--import`. (A worker inherits its process's preloads.)
import { createRequire } from "node:module"

const held = 5
const Sqlite = createRequire(process.argv[1] ?? import.meta.url)("better-sqlite3")
const never = new Int32Array(new SharedArrayBuffer(4))

const { prepare } = Sqlite.prototype
Sqlite.prototype.prepare = function (text) {
  const statement = prepare.call(this, text)
  if (!/^\s*COMMIT\b/i.test(text)) return statement
  const { run } = statement
  statement.run = (...values) => {
    Atomics.wait(never, 0, 0, held)
    return run.apply(statement, values)
  }
  return statement
}
