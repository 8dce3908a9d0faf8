#!/usr/bin/env node
/** The process: flags of the engine, the thread of a service, then the command line. */
import "./V8.ts"
import { prepare } from "./ledger/Thread.ts"

if (process.argv[2] === "serve") prepare()

// Imported dynamically: static imports of a bundle are evaluated before the flags above are set, and V8 would then allocate objects of
// each call among the long-lived.
void import("./commands/Main.ts")
