#!/usr/bin/env node
/** The process: the port of a service, flags of the engine and the service's thread, then the command line. */
import { addressOf } from "./http/server/Address.ts"
import { plain } from "./app/commands/Plain.ts"

/**
 * What a process is made of, from below: each takes a part of the time that loading takes. Imported dynamically: static imports of a bundle
 * are evaluated before the flags of the engine are set, and V8 would then allocate objects of each call among the long-lived.
 */
const pieces = [
  () => import("./app/V8.ts"),
  ...(process.argv[2] === "serve" ? [() => import("./books/ledger/Thread.ts").then(({ prepare }) => prepare())] : []),
  () => import("./kernel/Pieces.ts"),
  () => import("./kernel/Problem.ts"),
  () => import("./people/auth/Api.ts"),
  () => import("./people/tenants/Api.ts"),
  () => import("./app/Api.ts"),
  () => import("./app/App.ts"),
  () => import("./app/commands/Main.ts")
]

/** A turn of the loop for what has come to the port: its connection, then its request. */
const turn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

const run = async (): Promise<void> => {
  const serving = plain(process.argv.slice(2))
  const address = addressOf(process.env)
  // A sandbox looks at its address first.
  if (serving?.config !== undefined && address !== undefined) {
    const { prepare } = await import("./http/server/Front.ts")
    await prepare(address)
    await turn()
  }
  for (const load of pieces) {
    await load()
    await turn()
  }
}

void run()
