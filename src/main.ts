#!/usr/bin/env node
/** The process: opens the port of a service, sets V8 flags, starts the writer's thread, then runs the command line. */
import { addressOf } from "./http/server/Address.ts"
import { hear } from "./app/commands/Hangup.ts"
import { serveArguments, workersOf } from "./app/commands/ServeArguments.ts"
import { workerNumber } from "./app/workers/Number.ts"

/**
 * The modules in loading order. The event loop runs between them, so that `/healthz` is answered while they load. Imports are dynamic: a bundle
 * evaluates static imports before the V8 flags are set.
 */
const pieces = [
  () => import("./app/V8.ts"),
  ...(process.argv[2] === "serve" && workerNumber() === undefined
    ? [() => import("./books/ledger/write/Thread.ts").then(({ prepare }) => prepare())]
    : []),
  () => import("./kernel/Pieces.ts"),
  () => import("./kernel/Problem.ts"),
  () => import("./people/auth/Api.ts"),
  () => import("./people/tenants/Api.ts"),
  () => import("./app/Api.ts"),
  () => import("./app/App.ts"),
  () => import("./app/commands/Main.ts")
]

/** Two turns of the event loop: one for a new connection, one for its request. */
const turn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

const run = async (): Promise<void> => {
  const serving = serveArguments(process.argv.slice(2))
  const address = addressOf(process.env)
  if (serving?.config !== undefined) hear()
  // A sandbox checks its address first. An owner does not listen, and each of its workers does once it is loaded.
  if (serving?.config !== undefined && workersOf(serving.workers) === 1 && address !== undefined) {
    const { prepare } = await import("./http/server/Listener.ts")
    await prepare(address)
    await turn()
  }
  for (const load of pieces) {
    await load()
    await turn()
  }
}

void run()
